"""Common subexpression elimination: equal operations of one graph are computed once, and each
retains its value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Instruction, Plan, Program
from loopscope.ir.model import Node

_MAX_COMPARED_ELEMENTS = 64
"""Maximum number of elements of constants and lists that are compared. Larger ones are equal only
if they are the same Const.
"""


def share(plan: Plan) -> None:
    """Let each instruction that repeats an earlier one of its graph reuse the earlier result."""
    same_constant = _equal_constants(plan)
    for program in plan.programs:
        program.instructions = _shared(plan, program, dict(same_constant))


def _shared(plan: Plan, program: Program, first_of: dict[Slot, Slot]) -> tuple[Instruction, ...]:
    """Return the instructions with ``same_as`` set. ``first_of`` maps a slot to the first slot with
    the same value.
    """
    first_by_key: dict[Hashable, Instruction] = {}
    instructions: list[Instruction] = []
    for instruction in program.instructions:
        key = _key(plan, program, instruction, first_of)
        first = instruction if key is None else first_by_key.setdefault(key, instruction)
        if first is not instruction:
            first_of.update(zip(instruction.outputs, first.outputs, strict=True))
            instruction = replace(instruction, same_as=first.outputs)
        instructions.append(instruction)
    return tuple(instructions)


def _key(
    plan: Plan, program: Program, instruction: Instruction, first_of: Mapping[Slot, Slot]
) -> Hashable | None:
    """Return a key that is equal for instructions with equal results; None for an instruction that
    cannot be shared.
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
    """Return an attribute as text that differs if the value does (0.0 and -0.0, 1 and True); None
    for tensors and long lists.
    """
    if isinstance(value, tuple):
        # For example the nodes of a tree ensemble, which take longer to print than to compute.
        if len(value) > _MAX_COMPARED_ELEMENTS:
            return None
        texts = [_exact(item) for item in value]
        return None if None in texts else repr(texts)
    return repr(value) if isinstance(value, (str, bytes, int, float)) else None


def _equal_constants(plan: Plan) -> Mapping[Slot, Slot]:
    """Map small Consts of one graph to the first Const with the same type, shape and bits."""
    graph_of = {slot: program.index for program in plan.programs for slot in program.owned}
    first_by_bits: dict[Hashable, Slot] = {}
    first_of: dict[Slot, Slot] = {}
    for slot, node in plan.constant_slots:
        bits = _bits(node)
        if bits is not None:
            first_of[slot] = first_by_bits.setdefault((graph_of.get(slot), bits), slot)
    return first_of


def _bits(node: Node) -> Hashable | None:
    constant = node.constant
    if constant is None or constant.elements > _MAX_COMPARED_ELEMENTS:
        return None
    array = constant.array()
    return None if array.dtype == object else (constant.element_type, array.shape, array.tobytes())
