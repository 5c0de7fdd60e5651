"""Pattern of a loop as far as the model and its inputs determine it: the five of Loop-5, and
iteration over slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.debug.lookup import region_number
from loopscope.debug.run import Run
from loopscope.executor.machine.regions import is_true, iteration_bound, trip_count
from loopscope.executor.plan.analyses import backward_slice
from loopscope.executor.plan.plan import Instruction, LoopRegion, Plan, Program
from loopscope.executor.plan.slots import Slot
from loopscope.ir.model import LOOP, LayerId

LARGEST_COUNTS = frozenset({2**31 - 1, 2**63 - 1})
"""Trip counts that some frameworks use for "no limit": the largest i32 and i64."""

_NAMES = {
    ("unlimited", "true", "true"): "infinite loop",
    ("unlimited", "computed", "computed"): "while loop",
    ("unlimited", "true", "computed"): "do-while loop",
    ("limited", "true", "true"): "for loop",
    ("limited", "computed", "computed"): "for loop with a condition",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Properties of a loop that are known before it runs, from the model and its inputs."""

    name: str
    """Name, such as ``for loop``."""
    trip_count: int | None
    """Trip count if it is a constant or an input, -1 for no limit; None if it is computed."""
    condition: bool | None
    """Constant condition Result; None if the body computes it."""
    sliced_inputs: int
    certain: bool
    """False if the pattern depends on values that only a run computes."""

    @property
    def sentence(self) -> str:
        """Readable description."""
        parts = [self.name]
        if self.trip_count is not None and self.trip_count >= 0:
            parts.append(f"at most {self.trip_count:,} iterations")
        if self.sliced_inputs:
            ending = "s" if self.sliced_inputs > 1 else ""
            parts.append(f"walks over {self.sliced_inputs} sliced input{ending}")
        if not self.certain:
            parts.append("as far as is known before it runs")
        return ", ".join(parts)


def pattern(run: Run, static: str) -> Pattern:
    """Return the pattern of the Loop, TensorIterator or Scan at a static address.

    Raise ``ValueError`` if the address is not a loop.
    """
    program, instruction = region_at(run.plan, static)
    region = instruction.region
    if not isinstance(region, LoopRegion):
        raise ValueError(f"{static} is not a loop")
    if region.kind != LOOP:
        return _sliced_pattern(region)
    always = _constant(run, program, region.trip_count)
    trips = _input_value(run, program, region.trip_count) if always is None else always
    initial = np.True_ if region.condition is None else _constant(run, program, region.condition)
    condition = (
        np.True_
        if _is_condition_invariant(run, region)
        else _constant(run, region.program, region.condition_result)
    )
    count = (
        None
        if trips is None
        else trip_count(trips, negative_is_no_limit=region.negative_is_no_limit)
    )
    if region.trip_count is None or count in LARGEST_COUNTS:
        count = -1
    first, again = _known_condition(initial), _known_condition(condition)
    limit = "unlimited" if count == -1 and not region.sliced else "limited"
    key = (limit, "true" if first else "computed", "true" if again else "computed")
    name = (
        "loop that never starts" if count == 0 and always is not None else _name(key, first, again)
    )
    return Pattern(name, count, again, len(region.sliced), certain=count is not None)


def _known_condition(condition: Any) -> bool | None:
    """Return a known condition; None if it is unknown.

    A value that is not a single element is unknown too; the run reports it.
    """
    return is_true(condition) if np.size(condition) == 1 and condition is not None else None


def _sliced_pattern(region: LoopRegion) -> Pattern:
    """Return the pattern of a loop over slices.

    A TensorIterator without slices runs as often as its outputs require, or once.
    """
    if region.sliced:
        return Pattern("sliced iteration", None, True, len(region.sliced), certain=True)
    count, _ = iteration_bound(region, None, ())
    return Pattern(
        "single pass" if count == 1 else "for loop",
        None if count == 1 else count,
        True,
        0,
        certain=True,
    )


def _is_condition_invariant(run: Run, region: LoopRegion) -> bool:
    """Return True if the body passes its condition on unchanged, so that it stays true once the
    loop has started.

    Return True for a loop without a condition.
    """
    if region.condition_result is None:
        return True
    program, changed = region.program, run.overrides.slots
    slot = _without_identities(program, region.condition_result)
    carried = next((port for port in region.carried if port.parameter == slot), None)
    if (
        carried is None
        or carried.initial is None
        or _without_identities(program, carried.result) != slot
    ):
        return False
    if not changed.isdisjoint(backward_slice(program, slot)):
        return False
    assert program.parent is not None
    is_left_out = region.condition is None and carried.initial not in program.parent.owned
    return is_left_out or carried.initial == region.condition


def _without_identities(program: Program, slot: Slot) -> Slot:
    while (number := program.producer.get(slot)) is not None and program.instructions[
        number
    ].is_identity:
        slot = program.instructions[number].inputs[0]
    return slot


def _name(key: tuple[str, str, str], first: bool | None, again: bool | None) -> str:
    if again is False:
        return "single pass"
    if first is False:
        return "loop that never starts"
    limit, start, next_condition = key
    name = _NAMES.get((limit, start, next_condition))
    if name:
        return name
    if next_condition == "true":
        return (
            "for loop that may not start"
            if limit == "limited"
            else "infinite loop that may not start"
        )
    return "for loop with a condition"


def _constant(run: Run, program: Program, slot: Slot | None) -> object | None:
    """Return the value of a slot that is or folds to a constant; None if it is computed or set by
    hand.
    """
    if slot is None or (not run.overrides.slots.isdisjoint(backward_slice(program, slot))):
        return None
    layer, output = layer_of(program, _without_identities(program, slot))
    return run.plan.propagated.output(program.address, layer, output).value


def _input_value(run: Run, program: Program, slot: Slot | None) -> object | None:
    """Return the run's input that feeds a slot; None for every other slot, and if it is set by
    hand.
    """
    if (
        slot is None
        or program.parent is not None
        or not run.overrides.slots.isdisjoint(backward_slice(program, slot))
    ):
        return None
    source = _without_identities(program, slot)
    return (
        run.values.get(run.timeline, program, 0, source)
        if source in program.parameter_slots
        else None
    )


def layer_of(program: Program, slot: Slot) -> tuple[LayerId, int]:
    """Return the node and output index of a slot."""
    results = set(program.results)
    return next(
        (layer, output)
        for (layer, output), candidate in program.slots.items()
        if candidate == slot and layer not in results
    )


def region_at(plan: Plan, static: str) -> tuple[Program, Instruction]:
    """Return the node with bodies at a static address, and the program that contains it.

    Raise ``ValueError`` if there is none.
    """
    graph, _, label = static.rpartition("/")
    program = plan.program_by_address.get(graph)
    number = region_number(program, label) if program is not None else None
    if program is None or number is None:
        raise ValueError(f"there is no node with bodies at {static}")
    return program, program.instructions[number]
