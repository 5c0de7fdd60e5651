"""Verdict on an adjoint over a backward loop, from the norms of its values.

It flows, vanishes, explodes, is cut off, or does not flow. It becomes 0 at an operation whose slope
was 0, or at a branch that did not run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.debug.result import as_public
from loopscope.debug.run import Run
from loopscope.errors import EngineError
from loopscope.executor.plan.analyses import backward_slice
from loopscope.executor.plan.body_ports import CarriedValue
from loopscope.executor.plan.plan import IfRegion, Instruction, Program
from loopscope.executor.plan.slots import Slot
from loopscope.explain.adjoint_pairs import PairedExecutions, RegionPair, outer_name, ties
from loopscope.ir.model import Node
from loopscope.ir.readable import iteration_words, significant
from loopscope.ops.values import is_tensor
from loopscope.timeline.vectorised import Columns, Recorded

FAR_FROM = 1e3
"""Factor by which an adjoint must shrink to have vanished, or grow to have exploded."""
_FACTOR_TOLERANCE = 0.05
"""Relative tolerance within which a factor counts as halving, staying or doubling."""

Kind = Literal["flows", "vanishes", "explodes", "is cut off", "does not flow", "is not a number"]


@dataclass(frozen=True, slots=True)
class AdjointFate:
    """Development of an adjoint, without the reason."""

    kind: Kind
    start: float
    """First norm that is not 0."""
    last: float
    """Norm at the earliest iteration reached."""
    begins: int
    """Place of ``start``: the iteration at whose beginning it is measured, or the count for the
    end.
    """
    last_place: int
    """Place of ``last``; for a cut-off adjoint, the iteration that cuts it off."""
    count: int
    """Iteration count of the forward loop."""
    factor: float | None
    """Factor per backward iteration, fitted to the logarithms of the norms.

    None if fewer than three norms are finite and not 0.
    """

    def words(self, reason: str = "") -> str:
        """Return the verdict; ``reason``: why the adjoint is cut off or does not flow."""
        because = f": {reason}" if reason else ""
        match self.kind:
            case "does not flow" if not self.count:
                return "does not flow: there was no iteration"
            case "does not flow":
                return f"does not flow{because or ': it is 0 in every iteration'}"
            case "is cut off":
                return f"is cut off in {iteration_words(self.last_place)}{because}"
            case "is not a number":
                return f"is not a number from {iteration_words(self.last_place)} back"
            case _:
                ends = ((self.start, self.begins), (self.last, self.last_place))
                way = " to ".join(
                    f"{significant(norm, 2)} {_place(place, self.count)}" for norm, place in ends
                )
                pace = (
                    ""
                    if self.factor is None or not math.isfinite(self.last)
                    else f"; {_pace(self.factor)}"
                )
                return f"{self.kind}: from {way}{pace}"


def fate(places: np.ndarray, norms: np.ndarray, count: int, smallest: float) -> AdjointFate:
    """Return the development of an adjoint with these norms.

    ``places``: iterations at whose beginning the norms are measured, from ``count`` (the end)
    downwards. ``smallest``: smallest normal number of the type. A 0 after numbers of that size is
    an underflow.

    >>> fate(np.arange(31)[::-1], 0.5 ** np.arange(31), 30, 1e-38).words()
    'vanishes: from 1 at the end to 9.3e-10 in iteration 0; it halves per iteration'

    ``places``: the iteration at whose beginning each stands, in the order of the way back, so from
    ``count``, the end, down. ``least``: the smallest normal number of its type; what is 0 after
    numbers about as small was too small for the type.

    >>> fate(np.arange(31)[::-1], 0.5 ** np.arange(31), 30, 1e-38).words()
    'vanishes: from 1 at the end to 9.3e-10 in iteration 0; it halves per iteration'
    """
    flowing = np.flatnonzero(norms != 0)
    if not len(flowing):
        return AdjointFate(
            "does not flow", 0.0, 0.0, count, int(places[-1]) if len(places) else count, count, None
        )
    first, end = int(flowing[0]), int(flowing[-1])
    start, begins = float(norms[first]), int(places[first])
    factor = _factor(places, norms)
    not_finite = np.flatnonzero(~np.isfinite(norms))
    if len(not_finite):
        place = int(places[not_finite[0]])
        kind: Kind = "explodes" if np.isinf(norms[not_finite[0]]) else "is not a number"
        return AdjointFate(kind, start, float(norms[not_finite[0]]), begins, place, count, factor)
    if end + 1 < len(norms):
        if norms[end] > FAR_FROM * smallest or (factor is not None and factor > 1):
            return AdjointFate(
                "is cut off", start, 0.0, begins, int(places[end + 1]), count, factor
            )
        return AdjointFate("vanishes", start, 0.0, begins, int(places[end + 1]), count, factor)
    last, place = float(norms[end]), int(places[end])
    ratio = last / start
    kind = "vanishes" if ratio < 1 / FAR_FROM else "explodes" if ratio > FAR_FROM else "flows"
    return AdjointFate(kind, start, last, begins, place, count, factor)


def _factor(places: np.ndarray, norms: np.ndarray) -> float | None:
    usable = np.isfinite(norms) & (norms > 0)
    if usable.sum() < 3:
        return None
    return float(np.exp(-np.polyfit(places[usable], np.log(norms[usable]), 1)[0]))


def _pace(factor: float) -> str:
    if abs(factor - 0.5) <= 0.5 * _FACTOR_TOLERANCE:
        return "it halves per iteration"
    if abs(factor - 2) <= 2 * _FACTOR_TOLERANCE:
        return "it doubles per iteration"
    if factor < 1 - _FACTOR_TOLERANCE / 10:
        return f"it shrinks to {significant(factor, 2)} of its size per iteration"
    if factor > 1 + _FACTOR_TOLERANCE / 10:
        return f"it grows {significant(factor, 3)} times per iteration"
    return "it stays about the same"


def _place(place: int, count: int) -> str:
    return "at the end" if place == count else f"in {iteration_words(place)}"


_SCOPE = "backward/"
"""Prefix of the names of backward operations; the name of the forward operation follows."""
_MAX_NAMES = 3


def what_cut_off(run: Run, passes: PairedExecutions, iteration: int, port: CarriedValue) -> str:
    """Return a clause about the operation that made an adjoint 0 while a forward iteration was
    walked back.

    The operation is the first on the path from the incoming to the outgoing adjoint whose result is
    0. Return an empty text if it is unknown.
    """
    assert passes.tie.loops is not None
    body, back = (region.program for region in passes.tie.loops)
    row = passes.forward[iteration]
    forward = {operation.node.name: operation for operation in body.instructions}
    by_backward = {
        tie.backward.node.id: tie
        for tie in ties(run.plan)
        if tie.program is back and tie.branches is not None
    }
    names: dict[str, str] = {}
    for instruction in _zeroing_instructions(
        run, back, passes.backward[len(passes.forward) - 1 - iteration], port
    ):
        if instruction.node.id in by_backward:
            return unused_inputs(run, by_backward[instruction.node.id], (row,))
        source = _forward_operation(instruction.node, forward)
        if source is not None:
            names.setdefault(source.node.name, _zero_slope_reason(run, body, row, source))
    return " and ".join(f"`{name}` {why}" for name, why in list(names.items())[:_MAX_NAMES])


def _zeroing_instructions(
    run: Run, program: Program, row: int, port: CarriedValue
) -> Iterator[Instruction]:
    """Yield the instructions that turn a nonzero adjoint into 0."""
    needed = set(backward_slice(program, port.result))
    alive, from_adjoint = {port.parameter}, {port.parameter}
    for instruction in program.instructions:
        if from_adjoint.isdisjoint(instruction.inputs) or needed.isdisjoint(instruction.outputs):
            continue
        outputs = {slot: value(run, program, row, slot) for slot in instruction.outputs}
        floats = {
            slot: array
            for slot, array in outputs.items()
            if array is not None and array.dtype.kind in "fV"
        }
        from_adjoint |= floats.keys()
        nonzero = {slot for slot, array in floats.items() if array.any()}
        if floats and not nonzero and not alive.isdisjoint(instruction.inputs):
            yield instruction
        alive |= nonzero


def _forward_operation(node: Node, forward: dict[str, Instruction]) -> Instruction | None:
    """Return the operation of the forward body that a backward node belongs to, found by name."""
    scope = node.name.removeprefix(_SCOPE)
    while "/" in scope:
        scope = scope.rpartition("/")[0]
        if scope in forward:
            return forward[scope]
    return None


def _zero_slope_reason(run: Run, program: Program, row: int, source: Instruction) -> str:
    """Return a clause that explains from the values of an operation why its slope is 0."""
    inputs = {slot: value(run, program, row, slot) for slot in source.inputs}
    zeros = [
        slot
        for slot, array in inputs.items()
        if array is not None and array.size and not array.any()
    ]
    if len(inputs) > 1 and len(zeros) == 1:
        return f"takes `{outer_name(program, zeros[0])}`, which was 0"
    if len(inputs) == 1 and all(
        array is not None and array.dtype.kind == "f" and (array <= 0).all()
        for array in inputs.values()
    ):
        output = value(run, program, row, source.outputs[0])
        if output is not None and not output.any():
            return "was not positive"
    return "did not change with it"


def why_unused(run: Run, program: Program, slots: Iterable[Slot], rows: Sequence[int]) -> str:
    """Return a clause about the forward branch that left results of the given slots unused in the
    given rows.
    """
    sources = set(slots)
    for tie in ties(run.plan):
        if tie.forward_program is program and (clause := unused_inputs(run, tie, rows, sources)):
            return clause
    return ""


def unused_inputs(
    run: Run, tie: RegionPair, rows: Sequence[int], sources: Collection[Slot] = ()
) -> str:
    """Return a clause about the inputs that only the other branch of an If uses, if one branch ran
    in all rows.

    ``sources``: only inputs computed from one of these slots; empty: all.
    """
    branches = _branches_taken(run, tie.branches, rows) if tie.branches is not None else set[str]()
    if len(branches) != 1:
        return ""
    branch = branches.pop()
    slots = [
        slot
        for slot in _inputs_unused_by(tie, branch)
        if not sources or not set(backward_slice(tie.forward_program, slot)).isdisjoint(sources)
    ]
    if not slots:
        return ""
    names = " and ".join(
        f"`{outer_name(tie.forward_program, slot)}`" for slot in slots[:_MAX_NAMES]
    )
    verb, other = "is" if len(slots) == 1 else "are", "else" if branch == "then" else "then"
    return f"only the {branch} branch ran, and {names} {verb} used in {other}"


def _inputs_unused_by(tie: RegionPair, branch: str) -> tuple[Slot, ...]:
    """Return the inputs of a forward If with a gradient that only the other branch uses."""
    region = tie.branches
    assert region is not None
    used, unused = (
        (region.then, region.otherwise) if branch == "then" else (region.otherwise, region.then)
    )
    used_slots = {outer for inner, outer in used.bindings if used.program.takes(inner)}
    numbers = {number for numbers in tie.inputs for number in numbers}
    unused_slots = {outer for inner, outer in unused.bindings if unused.program.takes(inner)}
    return tuple(
        slot
        for number, slot in enumerate(tie.forward.inputs)
        if number in numbers and slot in unused_slots - used_slots
    )


def _branches_taken(run: Run, region: IfRegion, rows: Sequence[int]) -> set[str]:
    branches, _ = run.timeline.executions.branch_rows(region)
    results = np.unique(branches[[row for row in rows if row < len(branches)]])
    return {"then" if is_then else "else" for is_then in results}


def norms(run: Run, program: Program, rows: Sequence[int], slot: Slot) -> list[float | None]:
    """Return the Euclidean norm of a value in each row; None if the value is unavailable."""
    return [None if array is None else norm(array) for array in values(run, program, rows, slot)]


def values(
    run: Run, program: Program, rows: Sequence[int], slot: Slot
) -> Iterator[np.ndarray | None]:
    """Yield a value in each row; None if it is unavailable."""
    if not len(rows):
        return
    column = (
        Columns(Recorded(run.timeline), program, np.asarray(rows)).column(slot)
        if program.parent is not None
        else None
    )
    if column is not None:
        yield from as_public(column.of(len(rows)))
        return
    for row in rows:
        yield value(run, program, row, slot)


def value(run: Run, program: Program, row: int, slot: Slot) -> np.ndarray | None:
    """Return a tensor in one row; None if it did not run or cannot be recomputed."""
    try:
        result = (
            run.values.get(run.timeline, program, row, slot)
            if run.has_run(program, row, slot)
            else None
        )
    except (EngineError, ValueError, TypeError):
        return None
    return as_public(result) if result is not None and is_tensor(result) else None


def norm(array: np.ndarray) -> float:
    """Return the Euclidean norm of all elements, in f64."""
    return float(np.linalg.norm(np.asarray(array).astype(np.float64).reshape(-1)))
