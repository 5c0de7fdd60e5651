"""The pattern of a loop, as far as the model and its inputs determine it: the five of Loop-5,
and iterating over slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.debug.run import Run
from loopscope.debug.suggestions import region_number
from loopscope.executor.machine.regions import is_true, iteration_bound, trip_count
from loopscope.executor.plan.dependencies import backward_slice
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Instruction, LoopRegion, Plan, Program
from loopscope.ir.model import LOOP, LayerId

LARGEST_COUNTS = frozenset({2**31 - 1, 2**63 - 1})
"""Trip counts by which some frameworks mean no limit: the greatest i32 and i64."""

_NAMES = {
    ("unlimited", "true", "true"): "infinite loop",
    ("unlimited", "computed", "computed"): "while loop",
    ("unlimited", "true", "computed"): "do-while loop",
    ("limited", "true", "true"): "for loop",
    ("limited", "computed", "computed"): "for loop with a condition",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is known about a loop before it runs, from the model and its inputs."""

    name: str
    """Such as ``for loop``."""
    trip_count: int | None
    """The trip count that is a constant or an input, -1 for no limit; None when it is computed."""
    condition: bool | None
    """The constant condition Result; None when the body computes it."""
    sliced_inputs: int
    certain: bool
    """False when it depends on values that only a run computes."""

    @property
    def sentence(self) -> str:
        """One readable line."""
        parts = [self.name]
        if self.trip_count is not None and self.trip_count >= 0:
            parts.append(f"at most {self.trip_count:,} iterations")
        if self.sliced_inputs:
            parts.append(
                f"walks over {self.sliced_inputs} sliced input{'s' if self.sliced_inputs > 1 else ''}"
            )
        if not self.certain:
            parts.append("as far as is known before it runs")
        return ", ".join(parts)


def pattern(run: Run, static: str) -> Pattern:
    """The pattern of the Loop, TensorIterator or Scan at a static address; ``ValueError`` when
    there is none.
    """
    program, instruction = region_at(run.plan, static)
    region = instruction.region
    if not isinstance(region, LoopRegion):
        raise ValueError(f"{static} is not a loop")
    if region.kind != LOOP:
        return _of_parts(region)
    always = _constant(run, program, region.trip_count)
    trips = _given(run, program, region.trip_count) if always is None else always
    initial = np.True_ if region.condition is None else _constant(run, program, region.condition)
    condition = (
        np.True_
        if _is_asked_once(run, region)
        else _constant(run, region.program, region.condition_result)
    )
    count = (
        None
        if trips is None
        else trip_count(trips, negative_is_no_limit=region.negative_is_no_limit)
    )
    if region.trip_count is None or count in LARGEST_COUNTS:
        count = -1
    first, again = _decided(initial), _decided(condition)
    limit = "unlimited" if count == -1 and not region.sliced else "limited"
    key = (limit, "true" if first else "computed", "true" if again else "computed")
    name = (
        "loop that never starts" if count == 0 and always is not None else _name(key, first, again)
    )
    return Pattern(name, count, again, len(region.sliced), certain=count is not None)


def _decided(condition: Any) -> bool | None:
    """A condition that is known; None when it is not, or is no condition, which the run says
    where it asks it.
    """
    return is_true(condition) if np.size(condition) == 1 and condition is not None else None


def _of_parts(region: LoopRegion) -> Pattern:
    """The pattern of a loop over slices; a TensorIterator without slices runs as often as its
    outputs say, or once.
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


def _is_asked_once(run: Run, region: LoopRegion) -> bool:
    """Whether the body passes its condition on unchanged, so that it stays true once the loop
    has started; True without a condition.
    """
    if region.condition_result is None:
        return True
    program, changed = region.program, run.overrides.slots
    slot = _without_identities(program, region.condition_result)
    carried = next((one for one in region.carried if one.parameter == slot), None)
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
    limit, start, go = key
    found = _NAMES.get((limit, start, go))
    if found:
        return found
    if go == "true":
        return (
            "for loop that may not start"
            if limit == "limited"
            else "infinite loop that may not start"
        )
    return "for loop with a condition"


def _constant(run: Run, program: Program, slot: Slot | None) -> object | None:
    """The value of a slot that is a Const or folds to a constant; None when it is computed at
    run time, or set by hand.
    """
    if slot is None or (not run.overrides.slots.isdisjoint(backward_slice(program, slot))):
        return None
    layer, output = layer_of(program, _without_identities(program, slot))
    return run.plan.propagated.output(program.address, layer, output).value


def _given(run: Run, program: Program, slot: Slot | None) -> object | None:
    """The run's input for a slot that an input of the model feeds; None for every other slot,
    and when it is set by hand.
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
    """The node and output that a slot belongs to."""
    results = set(program.results)
    return next(
        (layer, output)
        for (layer, output), one in program.slots.items()
        if one == slot and layer not in results
    )


def region_at(plan: Plan, static: str) -> tuple[Program, Instruction]:
    """The node with bodies at a static address, and the program that holds it; ``ValueError``
    when there is none.
    """
    graph, _, label = static.rpartition("/")
    program = plan.program_by_address.get(graph)
    number = region_number(program, label) if program is not None else None
    if program is None or number is None:
        raise ValueError(f"there is no node with bodies at {static}")
    return program, program.instructions[number]
