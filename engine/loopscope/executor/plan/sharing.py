"""Common subexpressions: operations of one graph that compute the very same are computed once,
and each still has its value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Instruction, Plan, Program
from loopscope.ir.model import Node

_MOST_ELEMENTS = 64
"""Constants and lists of so few elements are compared; larger ones are the same only where it is
one Const.
"""


def share(plan: Plan) -> None:
    """Lets each instruction that computes what an earlier one of its graph has computed take
    that.
    """
    same_constant = _equal_constants(plan)
    for program in plan.programs:
        program.instructions = _shared(plan, program, dict(same_constant))


def _shared(plan: Plan, program: Program, first_of: dict[Slot, Slot]) -> tuple[Instruction, ...]:
    """``first_of``: the slot that stands for a slot with the same value."""
    found: dict[Hashable, Instruction] = {}
    made: list[Instruction] = []
    for instruction in program.instructions:
        key = _key(plan, program, instruction, first_of)
        first = instruction if key is None else found.setdefault(key, instruction)
        if first is not instruction:
            first_of.update(zip(instruction.outputs, first.outputs, strict=True))
            instruction = replace(instruction, same_as=first.outputs)
        made.append(instruction)
    return tuple(made)


def _key(
    plan: Plan, program: Program, instruction: Instruction, first_of: Mapping[Slot, Slot]
) -> Hashable | None:
    """What is equal for instructions that compute the same; None for one that is not to be
    shared.
    """
    node = instruction.node
    operation = plan.operations[program.index, node.id]
    has_effects = (
        operation.stateful
        or not operation.pure
        or instruction.variable is not None
        or instruction.shows is not None
    )
    if instruction.region or has_effects or instruction.is_identity:
        return None
    inputs = tuple(first_of.get(slot, slot) for slot in instruction.inputs)
    attributes = [(name, _exact(value)) for name, value in node.attributes.items()]
    if any(text is None for _, text in attributes):
        return None
    return (
        operation.name,
        operation.opset,
        operation.version,
        frozenset(attributes),
        inputs,
        len(instruction.outputs),
    )


def _exact(value: object) -> str | None:
    """An attribute as text that differs wherever the value does (0.0 and -0.0, 1 and True); None
    for tensors, long lists and the like.
    """
    if isinstance(value, tuple):
        if (
            len(value) > _MOST_ELEMENTS
        ):  # such as the nodes of a forest, which take longer to write than to compute with
            return None
        texts = [_exact(one) for one in value]
        return None if None in texts else repr(texts)
    return repr(value) if isinstance(value, (str, bytes, int, float)) else None


def _equal_constants(plan: Plan) -> Mapping[Slot, Slot]:
    """For small Consts of one graph with the same type, shape and bits, the first of them."""
    graph_of = {slot: program.index for program in plan.programs for slot in program.owned}
    first: dict[Hashable, Slot] = {}
    found: dict[Slot, Slot] = {}
    for slot, node in plan.constant_slots:
        bits = _bits(node)
        if bits is not None:
            found[slot] = first.setdefault((graph_of.get(slot), bits), slot)
    return found


def _bits(node: Node) -> Hashable | None:
    constant = node.constant
    if constant is None or constant.elements > _MOST_ELEMENTS:
        return None
    array = constant.array()
    return None if array.dtype == object else (constant.element_type, array.shape, array.tobytes())
