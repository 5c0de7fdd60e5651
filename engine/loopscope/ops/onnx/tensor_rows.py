"""Rows of the ONNX operations on tensors: elementwise, movement, images, random numbers, spectra,
strings.

Movement operations move, join, cut or count elements. Images include boxes, and spectra include
window functions.
"""

from __future__ import annotations

import numpy as np

from loopscope.ops import activation, arithmetic, random_numbers, shape, strings
from loopscope.ops.declare import Attribute
from loopscope.ops.derivative import WithGaps, flat
from loopscope.ops.movement import joining
from loopscope.ops.onnx import (
    casts,
    element_movement,
    elementwise,
    images,
    placement,
    resizing,
    spectra,
)
from loopscope.ops.onnx import derivatives as rules
from loopscope.ops.onnx import derivatives_of_formulas as formula_rules
from loopscope.ops.onnx import derivatives_of_images as resizing_rules
from loopscope.ops.onnx.row import OnnxRow, row

ELEMENTWISE: tuple[OnnxRow, ...] = (
    row("Abs", until=5, gradient=rules.same_as("Abs")),
    row("Abs", np.abs, since=6, symbol="abs({0})", gradient=rules.same_as("Abs")),
    row("Acos", np.arccos, since=7, float_symbol="np.arccos({0})", gradient=rules.same_as("Acos")),
    row(
        "Acosh",
        np.arccosh,
        since=9,
        float_symbol="np.arccosh({0})",
        gradient=rules.same_as("Acosh"),
    ),
    row("Add", elementwise.old_add, until=6, convert=True),
    row("Add", np.add, since=7, symbol="{0} + {1}", gradient=rules.same_as("Add")),
    row(
        "Affine",
        elementwise.affine,
        until=9,
        attributes=(Attribute("alpha", "float", 1.0), Attribute("beta", "float", 0.0)),
    ),
    row("And", elementwise.old_logical_and, until=6, convert=True),
    row("And", np.logical_and, since=7, symbol="{0} & {1}"),
    row("Asin", np.arcsin, since=7, float_symbol="np.arcsin({0})", gradient=rules.same_as("Asin")),
    row(
        "Asinh",
        np.arcsinh,
        since=9,
        float_symbol="np.arcsinh({0})",
        gradient=rules.same_as("Asinh"),
    ),
    row("Atan", np.arctan, since=7, float_symbol="np.arctan({0})", gradient=rules.same_as("Atan")),
    row(
        "Atanh",
        np.arctanh,
        since=9,
        float_symbol="np.arctanh({0})",
        gradient=rules.same_as("Atanh"),
    ),
    row("Cast", casts.cast_by_name, until=5, convert=True),
    row("Cast", since=6, prepare=casts.cast, gradient=rules.cast),
    row("CastLike", prepare=casts.cast_like, gradient=rules.cast),
    row("Ceil", until=5, gradient=flat),
    row("Ceil", np.ceil, since=6, float_symbol="np.ceil({0})", gradient=flat),
    row("Celu", gradient=formula_rules.celu),
    row("Clip", until=5, gradient=formula_rules.clip_by_attributes),
    row("Clip", elementwise.clip, since=6, until=10, gradient=formula_rules.clip_by_attributes),
    row("Clip", elementwise.clip, since=11, gradient=WithGaps(formula_rules.clip)),
    row("Cos", np.cos, since=7, float_symbol="np.cos({0})", gradient=rules.same_as("Cos")),
    row("Cosh", np.cosh, since=9, float_symbol="np.cosh({0})", gradient=rules.same_as("Cosh")),
    row("Div", elementwise.old_divide, until=6, convert=True),
    row(
        "Div",
        elementwise.divide,
        since=7,
        float_symbol="{0} / {1}",
        gradient=rules.same_as("Divide"),
    ),
    row("Elu", until=5, gradient=rules.same_as("Elu")),
    row("Elu", elementwise.elu, since=6, gradient=rules.same_as("Elu")),
    row("Equal", elementwise.old_equal, until=6, convert=True),
    row("Equal", np.equal, since=7, symbol="{0} == {1}"),
    row("Erf", elementwise.erf, since=9, gradient=rules.same_as("Erf")),
    row("Exp", until=5, gradient=rules.same_as("Exp")),
    row("Exp", np.exp, since=6, float_symbol="np.exp({0})", gradient=rules.same_as("Exp")),
    row("Floor", until=5, gradient=flat),
    row("Floor", np.floor, since=6, float_symbol="np.floor({0})", gradient=flat),
    row("Gelu", elementwise.gelu, since=20, convert=True, gradient=formula_rules.gelu),
    row("Greater", elementwise.old_greater, until=6, convert=True),
    row("Greater", np.greater, since=7, symbol="{0} > {1}"),
    row("GreaterOrEqual", np.greater_equal, since=12, symbol="{0} >= {1}"),
    row("HardSigmoid", elementwise.hard_sigmoid, since=6, gradient=formula_rules.hard_sigmoid),
    row("HardSwish", elementwise.hard_swish, since=14, gradient=rules.same_as("HSwish")),
    row("IsInf", elementwise.is_infinite, since=10),
    row("IsNaN", np.isnan, since=9, float_symbol="np.isnan({0})"),
    row("LeakyRelu", elementwise.leaky_relu, since=6, gradient=rules.leaky_relu),
    row("Less", elementwise.old_less, until=6, convert=True),
    row("Less", np.less, since=7, symbol="{0} < {1}"),
    row("LessOrEqual", np.less_equal, since=12, symbol="{0} <= {1}"),
    row("Log", until=5, gradient=rules.same_as("Log")),
    row("Log", np.log, since=6, float_symbol="np.log({0})", gradient=rules.same_as("Log")),
    row(
        "Max",
        elementwise.maximum,
        since=8,
        float_symbol="np.maximum({0}, {1})",
        integer_symbol=arithmetic.GREATER,
        gradient=rules.same_as("Maximum"),
    ),
    row("Mean", elementwise.mean, since=6, until=7, convert=True),
    row("Mean", elementwise.mean, since=8, convert=True, gradient=rules.mean),
    row(
        "Min",
        elementwise.minimum,
        since=8,
        float_symbol="np.minimum({0}, {1})",
        integer_symbol=arithmetic.LESSER,
        gradient=rules.same_as("Minimum"),
    ),
    row("Mish", activation.mish, since=18, gradient=rules.same_as("Mish")),
    row(
        "Mod",
        elementwise.remainder,
        since=10,
        until=27,
        symbol="{0} % {1}",
        symbol_when={"fmod": 0},
        gradient=formula_rules.modulo,
    ),
    row("Mod", since=28, gradient=formula_rules.modulo),
    row("Mul", elementwise.old_multiply, until=6, convert=True),
    row("Mul", np.multiply, since=7, symbol="{0} * {1}", gradient=rules.same_as("Multiply")),
    row("Neg", until=5, gradient=rules.same_as("Negative")),
    row("Neg", np.negative, since=6, symbol="-{0}", gradient=rules.same_as("Negative")),
    row("Not", np.logical_not, symbol="~{0}"),
    row("Or", elementwise.old_logical_or, until=6, convert=True),
    row("Or", np.logical_or, since=7, symbol="{0} | {1}"),
    row(
        "ParametricSoftplus",
        elementwise.parametric_softplus,
        until=9,
        attributes=(Attribute("alpha", "float"), Attribute("beta", "float")),
    ),
    row("Pow", elementwise.old_power, until=6, convert=True),
    row("Pow", elementwise.power, since=7, gradient=rules.power),
    row("PRelu", since=7, gradient=formula_rules.prelu),
    row(
        "Reciprocal",
        np.reciprocal,
        since=6,
        float_symbol="np.reciprocal({0})",
        gradient=rules.reciprocal,
    ),
    row("Relu", until=5, gradient=rules.same_as("ReLU")),
    row(
        "Relu",
        activation.relu,
        since=6,
        float_symbol="np.maximum({0}, 0)",
        gradient=rules.same_as("ReLU"),
    ),
    row("Round", np.rint, since=11, float_symbol="np.rint({0})", gradient=flat),
    row("Scale", elementwise.scaled, until=9, attributes=(Attribute("scale", "float", 1.0),)),
    row(
        "ScaledTanh",
        elementwise.scaled_tanh,
        until=9,
        attributes=(Attribute("alpha", "float"), Attribute("beta", "float")),
    ),
    row("Selu", since=6, gradient=formula_rules.selu),
    row("Shrink", gradient=formula_rules.shrink),
    row("Sigmoid", until=5, gradient=rules.same_as("Sigmoid")),
    row(
        "Sigmoid",
        activation.sigmoid,
        since=6,
        float_symbol="1 / (1 + np.exp(-{0}))",
        gradient=rules.same_as("Sigmoid"),
    ),
    row("Sign", np.sign, since=9, float_symbol="np.sign({0})", gradient=flat),
    row("Sin", np.sin, since=7, float_symbol="np.sin({0})", gradient=rules.same_as("Sin")),
    row("Sinh", np.sinh, since=9, float_symbol="np.sinh({0})", gradient=rules.same_as("Sinh")),
    row("Softplus", activation.softplus, gradient=rules.same_as("SoftPlus")),
    row("Softsign", elementwise.softsign, convert=True, gradient=rules.same_as("Softsign")),
    row("Sqrt", until=5, gradient=rules.same_as("Sqrt")),
    row("Sqrt", np.sqrt, since=6, float_symbol="np.sqrt({0})", gradient=rules.same_as("Sqrt")),
    row("Sub", elementwise.old_subtract, until=6, convert=True),
    row("Sub", np.subtract, since=7, symbol="{0} - {1}", gradient=rules.same_as("Subtract")),
    row("Sum", elementwise.total, since=8, float_symbol="{0} + {1}", gradient=rules.total),
    row("Swish", gradient=formula_rules.swish),
    row("Tan", np.tan, since=7, float_symbol="np.tan({0})", gradient=rules.same_as("Tan")),
    row("Tanh", until=5, gradient=rules.same_as("Tanh")),
    row("Tanh", np.tanh, since=6, float_symbol="np.tanh({0})", gradient=rules.same_as("Tanh")),
    row("ThresholdedRelu", since=10, gradient=formula_rules.thresholded_relu),
    row(
        "ThresholdedRelu",
        elementwise.thresholded_relu,
        until=9,
        attributes=(Attribute("alpha", "float", 1.0),),
    ),
    row("Where", elementwise.where, since=9, gradient=rules.where),
    row("Xor", elementwise.old_logical_xor, until=6, convert=True),
    row("Xor", np.logical_xor, since=7, symbol="{0} ^ {1}"),
)


MOVEMENT: tuple[OnnxRow, ...] = (
    row("Col2Im", placement.col2im, since=18, gradient=rules.col_to_im),
    row("Compress", since=9, gradient=formula_rules.compress),
    row("Concat", element_movement.old_concat, until=3, convert=True),
    row("Concat", joining.concat, since=4, gradient=rules.concat),
    row("ConstantOfShape", element_movement.constant_of_shape, since=9),
    row("DepthToSpace", since=11, gradient=rules.depth_to_space),
    row("Expand", element_movement.expanded, since=8, gradient=rules.expand),
    row("EyeLike", gradient=flat),
    row("Flatten", element_movement.flattened, gradient=rules.same_elements),
    row("Gather", element_movement.gathered, gradient=rules.gather),
    row(
        "GatherElements",
        element_movement.gather_elements,
        since=11,
        convert=True,
        gradient=rules.gather_elements,
    ),
    row("GatherND", element_movement.gather_nd, since=11, until=11, convert=True),
    row(
        "GatherND",
        element_movement.gather_nd,
        since=12,
        convert=True,
        gradient=rules.gather_nd,
    ),
    row(
        "Identity", element_movement.identity, symbol="{0}", identity=True, gradient=rules.identity
    ),
    row("OneHot", element_movement.one_hot, since=9, until=10, convert=True),
    row("OneHot", element_movement.one_hot, since=11, convert=True, gradient=formula_rules.one_hot),
    row("Optional", element_movement.optional, since=15, tensor_result=False),
    row("OptionalGetElement", element_movement.optional_get_element, since=15, tensor_result=False),
    row("OptionalHasElement", element_movement.optional_has_element, since=15),
    row("Pad", placement.old_pad, until=10, convert=True),
    row("Pad", placement.pad, since=11, convert=True, gradient=WithGaps(rules.pad)),
    row(
        "Range",
        element_movement.numbers_between,
        since=11,
        until=26,
        gradient=rules.number_range,
    ),
    row("Range", since=27, gradient=rules.number_range),
    row("Reshape", element_movement.old_reshape, until=4, convert=True),
    row("Reshape", element_movement.reshaped, since=5, gradient=rules.same_elements),
    row("ReverseSequence", gradient=rules.reverse_sequence),
    row("Scatter", placement.scatter_elements, since=9, gradient=rules.scatter_elements),
    row(
        "ScatterElements",
        placement.scatter_elements,
        since=11,
        gradient=rules.scatter_elements,
    ),
    row("ScatterND", placement.scatter_nd, since=11, gradient=rules.scatter_nd),
    row("Shape", element_movement.shape_of),
    row("Size", element_movement.size_of),
    row("Slice", element_movement.sliced, since=10, gradient=rules.slice_),
    row("SpaceToDepth", gradient=rules.space_to_depth),
    row("Split", element_movement.old_split, until=1, convert=True, counts_outputs=True),
    row("Split", element_movement.split, since=2, counts_outputs=True, gradient=rules.split),
    row(
        "Squeeze",
        element_movement.old_squeeze,
        until=12,
        convert=True,
        gradient=rules.same_elements,
    ),
    row("Squeeze", element_movement.squeezed, since=13, gradient=rules.same_elements),
    row("Tile", element_movement.old_tile, until=5, convert=True),
    row("Tile", since=6, gradient=rules.tile),
    row("TopK", element_movement.best_elements, since=10, gradient=rules.top_k),
    row("Transpose", element_movement.transposed, gradient=rules.transpose),
    row("Trilu", gradient=rules.triangle),
    row("Unique", element_movement.distinct, since=11, convert=True),
    row(
        "Unsqueeze",
        element_movement.old_unsqueeze,
        until=12,
        convert=True,
        gradient=rules.same_elements,
    ),
    row("Unsqueeze", shape.unsqueeze, since=13, gradient=rules.same_elements),
)


IMAGE: tuple[OnnxRow, ...] = (
    row("AffineGrid", images.affine_grid, since=20, convert=True),
    row(
        "Crop",
        images.crop,
        until=9,
        attributes=(Attribute("border", "ints"), Attribute("scale", "ints", None)),
        infer=images.cropped_shape,
    ),
    row("GridSample", prepare_part=images.images_sampled, gradient=rules.grid_sample),
    row("ImageDecoder", images.image_decoder, since=20, convert=True),
    row(
        "ImageScaler",
        images.image_scaler,
        until=9,
        attributes=(Attribute("bias", "floats"), Attribute("scale", "float", 1.0)),
    ),
    row("NonMaxSuppression", images.non_max_suppression, since=10, convert=True),
    row("Resize", resizing.upsample, until=10, convert=True, gradient=resizing_rules.upsample),
    row(
        "Resize", resizing.resize, since=11, convert=True, gradient=WithGaps(resizing_rules.resize)
    ),
    row("Upsample", resizing.upsample, until=10, convert=True, gradient=resizing_rules.upsample),
)


GENERATION: tuple[OnnxRow, ...] = (
    row("Bernoulli", gradient=flat),
    row("Multinomial", random_numbers.multinomial_of_logits, stateful=True),
    row("RandomNormalLike", gradient=flat),
    row("RandomUniformLike", gradient=flat),
)


SIGNALS: tuple[OnnxRow, ...] = (
    row("BlackmanWindow", spectra.blackman_window, convert=True),
    row("DFT", spectra.dft, convert=True, gradient=WithGaps(spectra.dft_gradient)),
    row("HammingWindow", spectra.hamming_window, convert=True),
    row("HannWindow", spectra.hann_window, convert=True),
    row("MelWeightMatrix", gradient=flat),
    row("STFT", spectra.stft, convert=True, gradient=WithGaps(spectra.stft_gradient)),
)


STRING: tuple[OnnxRow, ...] = (
    row("RegexFullMatch", strings.regex_full_match, since=20),
    row("StringNormalizer", strings.string_normalizer, convert=True),
    row("StringSplit", strings.string_split, convert=True),
)
