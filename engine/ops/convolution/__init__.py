"""Category convolution of the OpenVINO operation specs."""

from __future__ import annotations

from engine.ir.element_type import INDEX_TYPES, ElementType
from engine.ops.convolution.binary import binary_convolution, infer_binary_convolution
from engine.ops.convolution.deformable import deformable_convolution, infer_deformable_convolution
from engine.ops.convolution.dense import convolution, group_convolution, infer_convolution, infer_group_convolution
from engine.ops.convolution.transposed import (
    convolution_backprop_data,
    group_convolution_backprop_data,
    infer_convolution_backprop_data,
    infer_group_convolution_backprop_data,
)
from engine.ops.declare import Attribute, Operation
from engine.ops.elements import COMPUTED, COMPUTED_INTEGERS
from engine.ops.window import AUTO_PADS

_WINDOW = (
    Attribute("strides", "ints", (), least=1),
    Attribute("pads_begin", "ints", (), least=0),
    Attribute("pads_end", "ints", (), least=0),
    Attribute("dilations", "ints", (), least=1),
    Attribute("auto_pad", "str", "explicit", allowed=AUTO_PADS),
)
_TRANSPOSED = (*_WINDOW, Attribute("output_padding", "ints", (), least=0))
_DEFORMABLE = (*_WINDOW, Attribute("group", "int", 1, least=1), Attribute("deformable_group", "int", 1, least=1))

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="Convolution",
        version=1,
        opsets=(1, 16),
        page="convolution/convolution-1",
        kernel=convolution,
        infer=infer_convolution,
        inputs=(2, 2),
        attributes=_WINDOW,
        types=(COMPUTED,),
    ),
    Operation(
        name="GroupConvolution",
        version=1,
        opsets=(1, 16),
        page="convolution/group-convolution-1",
        kernel=group_convolution,
        infer=infer_group_convolution,
        inputs=(2, 2),
        attributes=_WINDOW,
        types=(COMPUTED,),
    ),
    Operation(
        name="ConvolutionBackpropData",
        version=1,
        opsets=(1, 16),
        page="convolution/convolution-backprop-data-1",
        kernel=convolution_backprop_data,
        infer=infer_convolution_backprop_data,
        inputs=(2, 3),
        attributes=_TRANSPOSED,
        types=(COMPUTED, COMPUTED, COMPUTED_INTEGERS),
    ),
    Operation(
        name="GroupConvolutionBackpropData",
        version=1,
        opsets=(1, 16),
        page="convolution/group-convolution-backprop-data-1",
        kernel=group_convolution_backprop_data,
        infer=infer_group_convolution_backprop_data,
        inputs=(2, 3),
        attributes=_TRANSPOSED,
        types=(COMPUTED, COMPUTED, INDEX_TYPES),
    ),
    Operation(
        name="BinaryConvolution",
        version=1,
        opsets=(1, 16),
        page="convolution/binary-convolution-1",
        kernel=binary_convolution,
        infer=infer_binary_convolution,
        inputs=(2, 2),
        attributes=(*_WINDOW, Attribute("mode", "str", allowed=("xnor-popcount",)), Attribute("pad_value", "float")),
        types=(COMPUTED, frozenset({ElementType.U1})),
    ),
    Operation(
        name="DeformableConvolution",
        version=1,
        opsets=(1, 7),
        page="convolution/deformable-convolution-1",
        kernel=deformable_convolution,
        infer=infer_deformable_convolution,
        inputs=(3, 3),
        attributes=_DEFORMABLE,
        types=(COMPUTED,),
    ),
    Operation(
        name="DeformableConvolution",
        version=8,
        opsets=(8, 16),
        page="convolution/deformable-convolution-8",
        kernel=deformable_convolution,
        infer=infer_deformable_convolution,
        inputs=(3, 4),
        attributes=(*_DEFORMABLE, Attribute("bilinear_interpolation_pad", "bool", False)),
        types=(COMPUTED,),
    ),
)
