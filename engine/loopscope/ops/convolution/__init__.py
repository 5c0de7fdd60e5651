"""Category convolution of the OpenVINO operation specs."""

from __future__ import annotations

from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ops.convolution.deformable_and_binary import (
    binary_convolution,
    deformable_convolution,
    infer_binary_convolution,
    infer_deformable_convolution,
)
from loopscope.ops.convolution.dense import (
    convolution,
    group_convolution,
    infer_convolution,
    infer_group_convolution,
)
from loopscope.ops.convolution.transposed import (
    convolution_backprop_data,
    group_convolution_backprop_data,
    infer_convolution_backprop_data,
    infer_group_convolution_backprop_data,
)
from loopscope.ops.declare import Attribute, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import sliding_windows as gradients
from loopscope.ops.kernel_arithmetic import COMPUTED, COMPUTED_INTEGERS
from loopscope.ops.window import AUTO_PADS

_WINDOW = (
    Attribute("strides", "ints", (), least=1),
    Attribute("pads_begin", "ints", (), least=0),
    Attribute("pads_end", "ints", (), least=0),
    Attribute("dilations", "ints", (), least=1),
    Attribute("auto_pad", "str", "explicit", allowed=AUTO_PADS),
)
_TRANSPOSED = (*_WINDOW, Attribute("output_padding", "ints", (), least=0))
_DEFORMABLE = (
    *_WINDOW,
    Attribute("group", "int", 1, least=1),
    Attribute("deformable_group", "int", 1, least=1),
)

row = family("convolution", types=(COMPUTED,))

OPERATIONS: tuple[Operation, ...] = (
    row(
        "Convolution",
        convolution,
        infer=infer_convolution,
        inputs=(2, 2),
        attributes=_WINDOW,
        gradient=gradients.convolution,
    ),
    row(
        "GroupConvolution",
        group_convolution,
        infer=infer_group_convolution,
        inputs=(2, 2),
        attributes=_WINDOW,
        gradient=gradients.group_convolution,
    ),
    row(
        "ConvolutionBackpropData",
        convolution_backprop_data,
        infer=infer_convolution_backprop_data,
        inputs=(2, 3),
        attributes=_TRANSPOSED,
        types=(COMPUTED, COMPUTED, COMPUTED_INTEGERS),
        gradient=gradients.convolution_backprop_data,
    ),
    row(
        "GroupConvolutionBackpropData",
        group_convolution_backprop_data,
        infer=infer_group_convolution_backprop_data,
        inputs=(2, 3),
        attributes=_TRANSPOSED,
        types=(COMPUTED, COMPUTED, INDEX_TYPES),
        gradient=gradients.group_convolution_backprop_data,
    ),
    row(
        "BinaryConvolution",
        binary_convolution,
        infer=infer_binary_convolution,
        inputs=(2, 2),
        attributes=(
            *_WINDOW,
            Attribute("mode", "str", allowed=("xnor-popcount",)),
            Attribute("pad_value", "float"),
        ),
        types=(COMPUTED, frozenset({ElementType.U1})),
    ),
    row(
        "DeformableConvolution",
        deformable_convolution,
        opsets=(1, 7),
        infer=infer_deformable_convolution,
        inputs=(3, 3),
        attributes=_DEFORMABLE,
    ),
    row(
        "DeformableConvolution",
        deformable_convolution,
        version=8,
        infer=infer_deformable_convolution,
        inputs=(3, 4),
        attributes=(*_DEFORMABLE, Attribute("bilinear_interpolation_pad", "bool", False)),
    ),
)
