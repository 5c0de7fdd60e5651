"""Which instructions only unpack weights that a file keeps in a narrower type: conversions, zero
points and scales between constants.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.executor.plan.plan import Plan, Program
from loopscope.ir.element_type import ElementType

_UNPACKS = frozenset({
    *("Convert", "ConvertLike", "Subtract", "Multiply", "Reshape", "Transpose", "Unsqueeze", "Squeeze"),
    *("Cast", "CastLike", "Sub", "Mul", "DequantizeLinear"),
})  # fmt: skip
_BITS = 16
"""The most that an element of packed weights has."""


def unpacking(plan: Plan, program: Program) -> Mapping[int, ElementType]:
    """The numbers of those instructions of a graph, each with the type of the weights that it
    unpacks.
    """
    nodes = {slot: node for slot, node in plan.constant_slots if slot in program.owned}
    packed = {
        slot: of
        for slot, node in nodes.items()
        if node.constant and (of := node.constant.element_type) and _is_packed(of)
    }
    found: dict[int, ElementType] = {}
    made = set(nodes)
    for number, one in enumerate(program.instructions):
        read = [slot for slot in one.inputs if slot]
        kept_in = next((packed[slot] for slot in read if slot in packed), None)
        if kept_in is not None and one.node.type in _UNPACKS and made.issuperset(read):
            found[number] = kept_in
            packed |= dict.fromkeys(one.outputs, kept_in)
            made.update(one.outputs)
    return found


def _is_packed(element_type: ElementType) -> bool:
    return 0 < element_type.bits <= _BITS and element_type is not ElementType.BOOLEAN
