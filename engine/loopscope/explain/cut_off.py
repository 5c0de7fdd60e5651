"""Reasons why an adjoint became 0: an operation whose slope was 0, or a branch that did not run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from loopscope.debug.run import Run
from loopscope.executor.plan.body_ports import CarriedValue
from loopscope.executor.plan.dependencies import backward_slice
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import IfRegion, Instruction, Program
from loopscope.explain.adjoint_pairs import RegionPair, outer_name, ties
from loopscope.explain.norms import value
from loopscope.explain.paired_executions import PairedExecutions
from loopscope.ir.model import Node

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
