"""Category pooling of the OpenVINO operation specs."""

from __future__ import annotations

from engine.ir.element_type import INDEX_TYPES, ElementType
from engine.ops.declare import Attribute, Operation
from engine.ops.elements import COMPUTED
from engine.ops.pooling.adaptive import (
    adaptive_average_pool,
    adaptive_max_pool,
    infer_adaptive_average_pool,
    infer_adaptive_max_pool,
)
from engine.ops.pooling.average import average_pool
from engine.ops.pooling.frame import infer_pool
from engine.ops.pooling.maximum import infer_max_pool_with_indices, max_pool, max_pool_with_indices
from engine.ops.window import AUTO_PADS

_WINDOW = (
    Attribute("kernel", "ints", least=1),
    Attribute("strides", "ints", (), least=1),
    Attribute("pads_begin", "ints", (), least=0),
    Attribute("pads_end", "ints", (), least=0),
    Attribute("auto_pad", "str", "explicit", allowed=AUTO_PADS),
)
_FLOOR_OR_CEIL = Attribute("rounding_type", "str", "floor", allowed=("floor", "ceil"))
_ROUNDING = Attribute("rounding_type", "str", "floor", allowed=("floor", "ceil", "ceil_torch"))
_DILATIONS = Attribute("dilations", "ints", (), least=1)
_EXCLUDE = Attribute("exclude-pad", "bool")
_INDICES = (
    _DILATIONS,
    Attribute("index_element_type", "type", ElementType.I64, allowed=(ElementType.I64, ElementType.I32)),
    Attribute("axis", "int", 0),
)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="AvgPool",
        version=1,
        opsets=(1, 13),
        page="pooling/avg-pool-1",
        kernel=average_pool,
        infer=infer_pool,
        attributes=(*_WINDOW, _EXCLUDE, _FLOOR_OR_CEIL),
        types=(COMPUTED,),
    ),
    Operation(
        name="AvgPool",
        version=14,
        opsets=(14, 15),
        page="pooling/avg-pool-14",
        kernel=average_pool,
        infer=infer_pool,
        attributes=(*_WINDOW, _EXCLUDE, _ROUNDING),
        types=(COMPUTED,),
    ),
    Operation(
        name="AvgPool",
        version=16,
        opsets=(16, 16),
        page="pooling/avg-pool-16",
        kernel=average_pool,
        infer=infer_pool,
        attributes=(*_WINDOW, _EXCLUDE, _ROUNDING, _DILATIONS),
        types=(COMPUTED,),
    ),
    Operation(
        name="MaxPool",
        version=1,
        opsets=(1, 7),
        page="pooling/max-pool-1",
        kernel=max_pool,
        infer=infer_pool,
        attributes=(*_WINDOW, _FLOOR_OR_CEIL),
        types=(COMPUTED,),
    ),
    Operation(
        name="MaxPool",
        version=8,
        opsets=(8, 13),
        page="pooling/max-pool-8",
        kernel=max_pool_with_indices,
        infer=infer_max_pool_with_indices,
        outputs=2,
        attributes=(*_WINDOW, _FLOOR_OR_CEIL, *_INDICES),
        types=(COMPUTED,),
    ),
    Operation(
        name="MaxPool",
        version=14,
        opsets=(14, 16),
        page="pooling/max-pool-14",
        kernel=max_pool_with_indices,
        infer=infer_max_pool_with_indices,
        outputs=2,
        attributes=(*_WINDOW, _ROUNDING, *_INDICES),
        types=(COMPUTED,),
    ),
    Operation(
        name="AdaptiveAvgPool",
        version=8,
        opsets=(8, 16),
        page="pooling/adaptive-avg-pool-8",
        kernel=adaptive_average_pool,
        infer=infer_adaptive_average_pool,
        inputs=(2, 2),
        types=(COMPUTED, INDEX_TYPES),
    ),
    Operation(
        name="AdaptiveMaxPool",
        version=8,
        opsets=(8, 16),
        page="pooling/adaptive-max-pool-8",
        kernel=adaptive_max_pool,
        infer=infer_adaptive_max_pool,
        inputs=(2, 2),
        outputs=2,
        attributes=(Attribute("index_element_type", "type", ElementType.I64, allowed=(ElementType.I64, ElementType.I32)),),
        types=(COMPUTED, INDEX_TYPES),
    ),
)
