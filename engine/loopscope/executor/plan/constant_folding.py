"""Constant folding of a plan: constant slots, and kernels that store results of constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loopscope.executor.plan.computed_once import FoldedKernel
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import Program
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
