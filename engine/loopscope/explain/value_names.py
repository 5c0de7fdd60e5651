"""Names of values in sentences, as the model carries them."""

from __future__ import annotations

from dataclasses import replace

from loopscope.executor.plan.body_ports import CarriedValue
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import LoopRegion, Program
from loopscope.explain.provenance import ProvenanceWalk, SlotPart
from loopscope.ir.address import decode

SIGNS = {"==": "=", "!=": "≠", "<=": "≤", ">=": "≥"}
"""Signs of comparisons in sentences; the other signs are shown unchanged."""


def value_name(walk: ProvenanceWalk, place: SlotPart) -> str:
    """Return the quoted name of a value.

    The output of a loop or If is named after the Parameter that carries it to the next iteration.
    Without one, it is ``output 1 of `loop```.
    """
    address = walk.address(place)
    number = place.program.producer.get(place.slot)
    if number is None or place.program.instructions[number].region is None:
        return quoted(address)
    parameter = _carrying_parameter(place.program, place.slot)
    if parameter is not None:
        return quoted(walk.address(replace(place, slot=parameter)))
    outputs = place.program.instructions[number].outputs
    name = quoted(address.partition(":")[0])
    return (
        f"output {outputs.index(place.slot)} of {name}"
        if len(outputs) > 1
        else f"the output of {name}"
    )


def quoted(address: str) -> str:
    """Return the last name of an address in backticks.

    >>> quoted("main/loop[2]/body/a%2Fb")
    '`a/b`'
    """
    return f"`{decode(address.rpartition('/')[2])}`"


def _carrying_parameter(program: Program, slot: Slot) -> Slot | None:
    """Return the body Parameter that receives a value in the next iteration; None without one."""
    region = program.region
    carried: tuple[CarriedValue, ...] = region.carried if isinstance(region, LoopRegion) else ()
    return next((port.parameter for port in carried if port.result == slot), None)
