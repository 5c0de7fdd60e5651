"""Category pooling of the OpenVINO operation specs."""

from __future__ import annotations

from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ops.declare import Attribute, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import images
from loopscope.ops.gradients import sliding_windows as gradients
from loopscope.ops.kernel_arithmetic import COMPUTED
from loopscope.ops.pooling.pooling_windows import infer_pool
from loopscope.ops.pooling.poolings import (
    adaptive_average_pool,
    adaptive_max_pool,
    average_pool,
    infer_adaptive_average_pool,
    infer_adaptive_max_pool,
    infer_max_pool_with_indices,
    max_pool,
    max_pool_with_indices,
)
from loopscope.ops.window import AUTO_PADS

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
_INDEX_TYPE = Attribute(
    "index_element_type", "type", ElementType.I64, allowed=(ElementType.I64, ElementType.I32)
)
_INDICES = (_DILATIONS, _INDEX_TYPE, Attribute("axis", "int", 0))

row = family("pooling", infer=infer_pool, types=(COMPUTED,))
with_indices = family("pooling", infer=infer_max_pool_with_indices, outputs=2, types=(COMPUTED,))
adaptive = family("pooling", inputs=(2, 2), types=(COMPUTED, INDEX_TYPES))

OPERATIONS: tuple[Operation, ...] = (
    row(
        "AvgPool",
        average_pool,
        opsets=(1, 13),
        attributes=(*_WINDOW, _EXCLUDE, _FLOOR_OR_CEIL),
        gradient=gradients.average_pool,
    ),
    row(
        "AvgPool",
        average_pool,
        version=14,
        opsets=(14, 15),
        attributes=(*_WINDOW, _EXCLUDE, _ROUNDING),
        gradient=gradients.average_pool,
    ),
    row(
        "AvgPool",
        average_pool,
        version=16,
        attributes=(*_WINDOW, _EXCLUDE, _ROUNDING, _DILATIONS),
        gradient=gradients.average_pool,
    ),
    row(
        "MaxPool",
        max_pool,
        opsets=(1, 7),
        attributes=(*_WINDOW, _FLOOR_OR_CEIL),
        gradient=gradients.max_pool,
    ),
    with_indices(
        "MaxPool",
        max_pool_with_indices,
        version=8,
        opsets=(8, 13),
        attributes=(*_WINDOW, _FLOOR_OR_CEIL, *_INDICES),
        gradient=gradients.max_pool,
    ),
    with_indices(
        "MaxPool",
        max_pool_with_indices,
        version=14,
        attributes=(*_WINDOW, _ROUNDING, *_INDICES),
        gradient=gradients.max_pool,
    ),
    adaptive(
        "AdaptiveAvgPool",
        adaptive_average_pool,
        version=8,
        infer=infer_adaptive_average_pool,
        gradient=images.adaptive_average_pool,
    ),
    adaptive(
        "AdaptiveMaxPool",
        adaptive_max_pool,
        version=8,
        infer=infer_adaptive_max_pool,
        outputs=2,
        attributes=(_INDEX_TYPE,),
        gradient=images.adaptive_max_pool,
    ),
)
