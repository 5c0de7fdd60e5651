"""Values of what was never computed: zeros of the shape and type that inference gives, dynamic
dimensions counted as 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from loopscope.executor.plan.plan import Plan, settle
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId, Port
from loopscope.ir.shape import PartialShape
from loopscope.ir.walk import graphs
from loopscope.ops.bounds import check_whole


@dataclass(frozen=True, eq=False)
class Defaults:
    """Asks shape inference when a value is needed that no operation computed."""

    plan: Plan

    def known_result(self, address: str, layer: LayerId) -> tuple[ElementType | None, PartialShape]:
        """Type and shape of a Result of the graph at a static address."""
        known = self.plan.propagated.output(address, layer)
        said = self._said.get((address, layer))
        if said is None:
            return known.element_type, known.shape
        if known.element_type is None:
            return said.element_type, said.shape
        return known.element_type, known.shape.intersect(said.shape) or known.shape

    @cached_property
    def _said(self) -> dict[tuple[str, LayerId], Port]:
        """What an ONNX file says of its graphs' outputs."""
        if self.plan.model.dialect != "onnx":
            return {}
        return {
            (place.address, node.id): node.inputs[0]
            for place in graphs(self.plan.model)
            for node in place.graph.results
            if node.inputs
        }

    def is_small(self, address: str, layer: LayerId, most: int) -> bool:
        """Whether inference knows that an output of a node never has more than so many elements."""
        shape = self.plan.propagated.output(address, layer).shape
        return shape.is_static and math.prod(shape.lengths) <= most

    def parameter(self, address: str, layer: LayerId) -> Any:
        """Defaults for a Parameter that nothing feeds."""
        return self.result(address, layer)

    def result(self, address: str, layer: LayerId) -> Any:
        """Defaults for a Result (or Parameter) that was never computed."""
        element_type, shape = self.known_result(address, layer)
        lengths = shape.lengths_or_zeros()
        check_whole(int(np.prod(lengths, dtype=object)), "a value that was never computed")
        dtype = (element_type or ElementType.F32).dtype
        return settle(
            np.full(lengths, "", dtype)
            if element_type is ElementType.STRING
            else np.zeros(lengths, dtype)
        )
