"""Why an adjoint became 0: the operation whose slope was 0 there, or the branch that did not
run.
"""

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
"""Before the names of operations that walk back the one whose name follows."""
_MOST_NAMED = 3


def what_cut_off(run: Run, passes: PairedExecutions, iteration: int, port: CarriedValue) -> str:
    """What made an adjoint 0 where an iteration of the forward loop was walked back, as a clause;
    empty where it cannot be told.

    It is where a value that is computed from the adjoint, and on the way to what is left of it, is
    0 for the first time.
    """
    assert passes.tie.loops is not None
    body, back = (region.program for region in passes.tie.loops)
    row = passes.forward[iteration]
    forward = {one.node.name: one for one in body.instructions}
    by_backward = {
        one.backward.node.id: one
        for one in ties(run.plan)
        if one.program is back and one.branches is not None
    }
    names: dict[str, str] = {}
    for instruction in _where_it_ends(
        run, back, passes.backward[len(passes.forward) - 1 - iteration], port
    ):
        if instruction.node.id in by_backward:
            return unused_inputs(run, by_backward[instruction.node.id], (row,))
        source = _walked_back(instruction.node, forward)
        if source is not None:
            names.setdefault(source.node.name, _why(run, body, row, source))
    return " and ".join(f"`{name}` {why}" for name, why in list(names.items())[:_MOST_NAMED])


def _where_it_ends(
    run: Run, program: Program, row: int, port: CarriedValue
) -> Iterator[Instruction]:
    """The instructions that make 0 of an adjoint that is not."""
    needed = set(backward_slice(program, port.result))
    alive, from_adjoint = {port.parameter}, {port.parameter}
    for instruction in program.instructions:
        if from_adjoint.isdisjoint(instruction.inputs) or needed.isdisjoint(instruction.outputs):
            continue
        made = {slot: value(run, program, row, slot) for slot in instruction.outputs}
        floats = {
            slot: one for slot, one in made.items() if one is not None and one.dtype.kind in "fV"
        }
        from_adjoint |= floats.keys()
        some = {slot for slot, one in floats.items() if one.any()}
        if floats and not some and not alive.isdisjoint(instruction.inputs):
            yield instruction
        alive |= some


def _walked_back(node: Node, forward: dict[str, Instruction]) -> Instruction | None:
    """The operation of the forward body that a node helps to walk back, by its name."""
    scope = node.name.removeprefix(_SCOPE)
    while "/" in scope:
        scope = scope.rpartition("/")[0]
        if scope in forward:
            return forward[scope]
    return None


def _why(run: Run, program: Program, row: int, source: Instruction) -> str:
    """What the values of an operation say of why its slope is 0."""
    inputs = {slot: value(run, program, row, slot) for slot in source.inputs}
    zeros = [slot for slot, one in inputs.items() if one is not None and one.size and not one.any()]
    if len(inputs) > 1 and len(zeros) == 1:
        return f"takes `{outer_name(program, zeros[0])}`, which was 0"
    if len(inputs) == 1 and all(
        one is not None and one.dtype.kind == "f" and (one <= 0).all() for one in inputs.values()
    ):
        made = value(run, program, row, source.outputs[0])
        if made is not None and not made.any():
            return "was not positive"
    return "did not change with it"


def why_unused(run: Run, program: Program, slots: Iterable[Slot], rows: Sequence[int]) -> str:
    """The branch of a forward graph that left what was computed from some values unused in some
    of its rows; as a clause.
    """
    wanted = set(slots)
    for tie in ties(run.plan):
        if tie.home is program and (found := unused_inputs(run, tie, rows, wanted)):
            return found
    return ""


def unused_inputs(
    run: Run, tie: RegionPair, rows: Sequence[int], wanted: Collection[Slot] = ()
) -> str:
    """Where an If took one branch in all of some rows, the inputs that only the other one uses; as
    a clause.

    ``wanted``: only inputs that are computed from one of these; empty: all.
    """
    taken = _taken(run, tie.branches, rows) if tie.branches is not None else set[str]()
    if len(taken) != 1:
        return ""
    ran = taken.pop()
    slots = [
        slot
        for slot in _unused_by(tie, ran)
        if not wanted or not set(backward_slice(tie.home, slot)).isdisjoint(wanted)
    ]
    if not slots:
        return ""
    named = " and ".join(f"`{outer_name(tie.home, slot)}`" for slot in slots[:_MOST_NAMED])
    return f"only the {ran} branch ran, and {named} {'is' if len(slots) == 1 else 'are'} used in {'else' if ran == 'then' else 'then'}"


def _unused_by(tie: RegionPair, ran: str) -> tuple[Slot, ...]:
    """The inputs of a forward If that have a gradient, and that only the other branch uses."""
    region = tie.branches
    assert region is not None
    used, unused = (
        (region.then, region.otherwise) if ran == "then" else (region.otherwise, region.then)
    )
    taken = {outer for inner, outer in used.bindings if used.program.takes(inner)}
    numbers = {number for numbers in tie.inputs for number in numbers}
    there = {outer for inner, outer in unused.bindings if unused.program.takes(inner)}
    return tuple(
        slot
        for number, slot in enumerate(tie.forward.inputs)
        if number in numbers and slot in there - taken
    )


def _taken(run: Run, region: IfRegion, rows: Sequence[int]) -> set[str]:
    branches, _ = run.timeline.executions.branch_rows(region)
    found = np.unique(branches[[row for row in rows if row < len(branches)]])
    return {"then" if one else "else" for one in found}
