"""Reduction of a model to the smallest one that still shows a fault."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from loopscope.cases.candidate import Candidate
from loopscope.cases.faults import Fault
from loopscope.cases.search import ReductionSearch, TimeUp
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
from loopscope.ir.model import Model
from loopscope.native.run_once import CallStopped

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
