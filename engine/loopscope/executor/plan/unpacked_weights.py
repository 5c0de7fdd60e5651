"""Instructions that only unpack weights stored in a narrower type: conversions, zero points and
scales between constants.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.executor.plan.plan import Plan, Program
from loopscope.ir.element_type import ElementType

_UNPACKING_OPERATIONS = frozenset(
    {
        *("Convert", "ConvertLike", "Subtract", "Multiply", "Reshape", "Transpose"),
        *("Unsqueeze", "Squeeze", "Cast", "CastLike", "Sub", "Mul", "DequantizeLinear"),
    }
)
_MAX_PACKED_BITS = 16
"""Maximum bits of an element of packed weights."""


def unpacking(plan: Plan, program: Program) -> Mapping[int, ElementType]:
    """Return the numbers of the unpacking instructions of a graph, each with the type of the
    weights it unpacks.
    """
    nodes = {slot: node for slot, node in plan.constant_slots if slot in program.owned}
    packed = {
        slot: element_type
        for slot, node in nodes.items()
        if node.constant
        and (element_type := node.constant.element_type)
        and _is_packed(element_type)
    }
    result: dict[int, ElementType] = {}
    constants = set(nodes)
    for number, instruction in enumerate(program.instructions):
        inputs = [slot for slot in instruction.inputs if slot]
        packed_type = next((packed[slot] for slot in inputs if slot in packed), None)
        if (
            packed_type is not None
            and instruction.node.type in _UNPACKING_OPERATIONS
            and constants.issuperset(inputs)
        ):
            result[number] = packed_type
            packed |= dict.fromkeys(instruction.outputs, packed_type)
            constants.update(instruction.outputs)
    return result


def _is_packed(element_type: ElementType) -> bool:
    return 0 < element_type.bits <= _MAX_PACKED_BITS and element_type is not ElementType.BOOLEAN
