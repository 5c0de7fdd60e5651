"""Kernels that run only once: those with constant inputs, and equal operations of one graph.

Constant folding covers, for example, weights that are stored in a smaller type and converted.
Common subexpression elimination keeps the value of each of the equal operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any

import numpy as np

from loopscope.executor.plan.plan import Instruction, Plan, Program
from loopscope.executor.plan.slots import Slot, settle
from loopscope.ir.model import ModelGraph, Node, OutputRef
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Known, Operation

_MAX_STORED_BYTES = 1 << 30


@dataclass(eq=False)
class ConstantFolding:
    """Slots with constant values, and the bytes that kernels may use to store results."""

    enabled: bool
    """False to store nothing except constants in the form that a kernel prepares."""
    steady: set[Slot] = field(default_factory=set[Slot])
    """Slots with the same value in all runs: Consts, values computed from them, and body Parameters
    bound to them.
    """
    reserved_bytes: int = 0
    """Bytes that kernels may use to store results of constants."""

    def mark_parameters(self, bindings: Iterable[tuple[Slot, Slot]]) -> None:
        """Mark the Parameters that always equal a steady slot of the enclosing graph as steady."""
        self.steady.update(parameter for parameter, outer in bindings if outer in self.steady)

    def fold(
        self,
        program: Program,
        graph: ModelGraph,
        node: Node,
        operation: Operation,
        keywords: Mapping[str, Any],
        kernel: Callable[..., Any],
    ) -> Callable[..., Any] | None:
        """Return a kernel that stores results of its constant inputs, within a bound for all
        kernels; None for other inputs.
        """
        sources = graph.sources[node.id]
        constant_source = (
            sources[operation.kept_input] if len(sources) > operation.kept_input else None
        )
        foldable = self.enabled and operation.pure and not operation.stateful
        if (
            operation.kernel is not None
            and foldable
            and sources
            and all(self._is_steady(program, source) for source in sources)
        ):
            size = _bytes([Known(port.element_type, port.shape) for port in node.outputs])
            if self._reserve(size):
                self.steady.update(
                    program.slots[node.id, index] for index in range(len(node.outputs))
                )
                return FoldedKernel(kernel, size)
        elif operation.by_constant is not None and self._is_steady(program, constant_source):
            prepared = operation.by_constant(_known(graph, constant_source), **keywords)
            if prepared is not None and self._reserve(prepared.most_bytes):
                return prepared
        return None

    def _is_steady(self, program: Program, source: OutputRef | None) -> bool:
        return source is not None and program.slots[source.layer, source.output] in self.steady

    def _reserve(self, size: int) -> bool:
        """Reserve bytes to store results. Return False if the bound does not allow them."""
        if self.reserved_bytes + size > _MAX_STORED_BYTES:
            return False
        self.reserved_bytes += size
        return True


def _known(graph: ModelGraph, source: OutputRef | None) -> Known:
    """Return the type and shape of the steady tensor ``source``."""
    assert source is not None
    node = graph.by_id[source.layer]
    if node.constant is not None:
        return Known(node.constant.element_type, PartialShape.of(node.constant.shape))
    port = node.outputs[source.output]
    return Known(port.element_type, port.shape)


def _bytes(tensors: Sequence[Known]) -> int:
    """Return the bytes of all tensors together; more than the bound if a type or length is
    unknown.
    """
    total = 0
    for known in tensors:
        if known.element_type is None or not known.shape.is_static:
            return _MAX_STORED_BYTES + 1
        total += math.prod(known.shape.lengths) * known.element_type.dtype.itemsize
    return total


_STORED_AT_FIRST_CALL = 1 << 20
"""Bytes up to which outputs are stored at the first call."""


class FoldedKernel:
    """A kernel with constant inputs. It stores its outputs, unless they are larger than expected,
    and returns them for identical inputs.

    Large outputs are stored at the second call, so that a single run does not use memory in vain.
    Stored outputs are the inputs of the next operation in a chain, so that one run folds the whole
    chain. An override is a different array and is not folded.
    """

    def __init__(self, kernel: Callable[..., Any], most_bytes: int) -> None:
        self._kernel, self._most_bytes = kernel, most_bytes
        self._last: tuple[Any, ...] | None = None
        """Inputs of the last call; None before the first."""
        self._stored: tuple[tuple[Any, ...], Any] | None = None
        """Inputs and stored outputs, assigned together because threads share a plan."""

    def stored_outputs(self, arguments: tuple[Any, ...]) -> Any | None:
        """Return the stored outputs for identical inputs; None if none are stored."""
        stored = self._stored
        return stored[1] if stored is not None and _are_same(stored[0], arguments) else None

    def __call__(self, *arguments: Any) -> Any:
        stored = self._stored
        if stored is not None and _are_same(stored[0], arguments):
            return stored[1]
        result = self._kernel(*arguments)
        repeated = self._last is not None and _are_same(self._last, arguments)
        if (stored is None or repeated) and all(map(_never_changes, arguments)):
            outputs = result if isinstance(result, tuple) else (result,)
            limit = (
                min(self._most_bytes, _STORED_AT_FIRST_CALL)
                if self._last is None
                else self._most_bytes
            )
            if sum(getattr(output, "nbytes", math.inf) for output in outputs) <= limit:
                result = (
                    tuple(map(_freeze, result)) if isinstance(result, tuple) else _freeze(result)
                )
                self._stored = arguments, result
        self._last = arguments
        return result


def _are_same(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))


def _never_changes(value: Any) -> bool:
    return isinstance(value, np.generic) or (
        isinstance(value, np.ndarray) and not value.flags.writeable
    )


def _freeze(value: Any) -> Any:
    """Return the value in the machine's representation, read-only, so that every reader gets the
    same object.
    """
    value = settle(value)
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value


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
