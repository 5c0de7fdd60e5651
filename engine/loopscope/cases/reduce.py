"""Reduction of a model to the smallest one that still shows a fault, and the folder for it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from loopscope.cases.case import Case, code_span, refuse_folder, write_case
from loopscope.cases.fault_search import Candidate, Fault, ReductionSearch, TimeUp
from loopscope.cases.structure_steps import (
    bypass_nodes,
    enter_bodies,
    keep_one_output,
    reduce_iterations,
    remove_nodes,
    remove_unused_parts,
)
from loopscope.cases.value_steps import randomise_weights, shorten_axes, simplify_inputs
from loopscope.debug.inputs import Inputs, bind
from loopscope.errors import counted, elided
from loopscope.ir.address import nodes
from loopscope.ir.model import Model, Node
from loopscope.ir.readable import readable
from loopscope.native.run_once import CallStopped
from loopscope.peers import TOLERANCE

Step = Callable[[ReductionSearch], None]
STRUCTURE: Mapping[str, Step] = {
    "entering bodies": enter_bodies,
    "removing outputs": keep_one_output,
    "removing unused parts": remove_unused_parts,
    "removing operations": remove_nodes,
    "removing iterations": reduce_iterations,
    "bypassing operations": bypass_nodes,
    "shortening axes": shorten_axes,
}
"""Steps that are repeated in this order until none makes the model smaller."""
VALUES: Mapping[str, Step] = {
    "replacing weights by random numbers": randomise_weights,
    "simplifying inputs": simplify_inputs,
}
"""Steps that follow once."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """The smallest model that was found, and how it was found."""

    candidate: Candidate
    original: Candidate
    source: Model
    """The model that was reduced, with its file."""
    attempts: int
    """Number of smaller models that ran in the runtime."""
    seconds: float
    ended: str
    """Reason why the search ended early; empty if no step makes the model smaller."""
    was_stopped: bool
    """True if a ``KeyboardInterrupt`` ended the search."""


def reduce(
    model: Model,
    inputs: Inputs,
    fault: Fault,
    *,
    seconds: float = float("inf"),
    report: Callable[[str, ReductionSearch], None] = lambda step, search: None,
) -> Reduced:
    """Return the smallest model with inputs that still shows a fault.

    ``report`` is called with the name of the current step after each attempt. After ``seconds``,
    or at a ``KeyboardInterrupt``, the best model so far is returned. Raise ``EngineError`` if the
    whole model does not show the fault, and the errors of ``Debugger`` if it cannot run.
    """
    begin = time.monotonic()
    bound = bind(model, inputs)
    values: tuple[Any, ...] = tuple(bound[signature.layer] for signature in model.inputs)
    original = Candidate(replace(model, file=""), values)
    fault.expect(original)
    search = ReductionSearch(fault, original, begin + seconds)
    ended, was_stopped = "", False
    try:
        _repeat_steps(search, report)
    except TimeUp:
        ended = f"the time limit of {seconds:g} seconds was reached"
    except (KeyboardInterrupt, CallStopped):
        ended, was_stopped = "it was stopped", True
    taken = time.monotonic() - begin
    return Reduced(search.best, original, model, search.attempts, taken, ended, was_stopped)


def _repeat_steps(search: ReductionSearch, report: Callable[[str, ReductionSearch], None]) -> None:
    """Run the steps until a round leaves the structure as it is, then simplify the values."""
    before = -1
    while before != search.accepted:
        before = search.accepted
        _run(STRUCTURE, search, report)
    _run(VALUES, search, report)


def _run(
    steps: Mapping[str, Step],
    search: ReductionSearch,
    report: Callable[[str, ReductionSearch], None],
) -> None:
    for name, step in steps.items():
        search.report = partial(report, name)
        step(search)


_MAX_LISTED = 12
"""Maximum number of operations that a description names one by one."""


def reproduction_folder(
    reduced: Reduced,
    fault: Fault,
    folder: str | os.PathLike[str],
    *,
    tolerance: float = TOLERANCE,
) -> list[Path]:
    """Write the smallest model of a fault to a folder; return the files.

    Raise ``WriteError`` if the model cannot be written, or if the opened one lies in the folder.
    """
    refuse_folder(folder, reduced.source)
    candidate = reduced.candidate
    expected = candidate.outputs if fault.goal in ("compare", "test") else ()
    case = Case(
        candidate.model,
        dict(zip((node.name for node in candidate.model.inputs), candidate.inputs, strict=True)),
        dict(zip((node.name for node in candidate.model.outputs), expected, strict=False)),
        candidate.place,
    )
    return write_case(
        case,
        folder,
        title=_TITLES[fault.goal].format(runtime=fault.process.title),
        paragraphs=[f"{fault.sentence(candidate)} {operations_sentence(candidate)}"],
        goal=fault.goal,
        tolerance=tolerance,
        runtime=fault.process.runtime,
    )


_TITLES = {
    "compare": "A model that {runtime} computes differently",
    "nan": "A model whose output becomes NaN",
    "fails": "A model that {runtime} does not run",
    "test": "A model that does not do what is expected of it",
}


def size_sentence(reduced: Reduced) -> str:
    """Return a sentence about how much smaller a model became."""
    before, after = reduced.original, reduced.candidate
    text = (
        f"{counted(before.node_count, 'operation')} became {after.node_count:,}, and "
        f"{counted(before.element_count, 'element')} of inputs and weights became "
        f"{after.element_count:,}, in {counted(reduced.attempts, 'attempt')} and "
        f"{reduced.seconds:.1f} s"
    )
    return f"{text}; {reduced.ended}." if reduced.ended else f"{text}."


def operations_sentence(candidate: Candidate) -> str:
    """Return a sentence with the operations of a model, and where they come from."""
    operations = [
        node
        for _, node in nodes(candidate.model)
        if node.type not in ("Parameter", "Result") and node.constant is None
    ]
    origin = f", cut out at {code_span(readable(candidate.place))}" if candidate.place else ""
    return f"The model has {_listed(operations)}{origin}."


def _listed(operations: list[Node]) -> str:
    if len(operations) <= _MAX_LISTED:
        names = ", ".join(f"{code_span(node.name)} ({elided(node.type)})" for node in operations)
        return f"{counted(len(operations), 'operation')}: {names}"
    types = Counter(elided(node.type) for node in operations)
    words = [f"{count} {name}" if count > 1 else name for name, count in types.most_common()]
    return f"{len(operations):,} operations: {', '.join(words[:20])}"
