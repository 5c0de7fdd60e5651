"""The folder of a reduced model: ready to be attached to a report of a fault."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from loopscope.cases.candidate import Candidate
from loopscope.cases.case import Case
from loopscope.cases.case_folder import code_span, refuse_folder, write_case
from loopscope.cases.faults import Fault
from loopscope.cases.reduce import Reduced
from loopscope.errors import counted, elided
from loopscope.ir.model import Node
from loopscope.ir.readable import readable
from loopscope.ir.walk import nodes
from loopscope.peers import TOLERANCE

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
