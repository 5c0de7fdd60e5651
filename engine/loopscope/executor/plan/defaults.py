"""Values that were never computed: zeros of the inferred shape and type, with length 0 for dynamic
dimensions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.executor.plan.plan import Plan, settle
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope.ir.shape import PartialShape
from loopscope.ops.bounds import check_whole


@dataclass(frozen=True, eq=False)
class Defaults:
    """Default values of tensors that no operation computed, from shape inference."""

    plan: Plan

    def known_result(self, address: str, layer: LayerId) -> tuple[ElementType | None, PartialShape]:
        """Return the type and shape of a Result of the graph at a static address."""
        inferred = self.plan.propagated.output(address, layer)
        declared = self.plan.declared_results.get((address, layer))
        if declared is None:
            return inferred.element_type, inferred.shape
        if inferred.element_type is None:
            return declared.element_type, declared.shape
        return inferred.element_type, inferred.shape.intersect(declared.shape) or inferred.shape

    def is_small(self, address: str, layer: LayerId, limit: int) -> bool:
        """Return True if inference proves that an output of a node has at most ``limit``
        elements. Shapes of ONNX models do not prove it, because a file may declare wrong ones.
        """
        if self.plan.model.dialect == "onnx":
            return False
        shape = self.plan.propagated.output(address, layer).shape
        return shape.is_static and math.prod(shape.lengths) <= limit

    def parameter(self, address: str, layer: LayerId) -> Any:
        """Return the default value of a Parameter that nothing feeds."""
        return self.result(address, layer)

    def result(self, address: str, layer: LayerId) -> Any:
        """Return the default value of a Result or Parameter that was never computed."""
        element_type, shape = self.known_result(address, layer)
        lengths = shape.lengths_or_zeros()
        check_whole(int(np.prod(lengths, dtype=object)), "a value that was never computed")
        dtype = (element_type or ElementType.F32).dtype
        return settle(
            np.full(lengths, "", dtype)
            if element_type is ElementType.STRING
            else np.zeros(lengths, dtype)
        )
