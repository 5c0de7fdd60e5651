"""Derivatives of ONNX's operations: those of the operations of OpenVINO that are the same
functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse, WithGaps, flat
from loopscope.ops.onnx import derivatives_of_attention as attention
from loopscope.ops.onnx import derivatives_of_formulas as formulas
from loopscope.ops.onnx import derivatives_of_losses as losses
from loopscope.ops.onnx import derivatives_of_movement as movement
from loopscope.ops.onnx import derivatives_of_norms as norms
from loopscope.ops.onnx import derivatives_of_recurrence as recurrence
from loopscope.ops.onnx import derivatives_of_resizing as resizing
from loopscope.ops.onnx import derivatives_of_spectra as spectra
from loopscope.ops.onnx import derivatives_of_windows as windows
from loopscope.ops.onnx.openvino_rules import by

_SAME: Mapping[str, str] = {
    **{
        name: name
        for name in (
            "Abs",
            "Acos",
            "Acosh",
            "Add",
            "Asin",
            "Asinh",
            "Atan",
            "Atanh",
            "Cos",
            "Cosh",
            "Erf",
            "Exp",
        )
    },
    **{
        name: name
        for name in (
            "Elu",
            "HSwish",
            "Log",
            "Mish",
            "Sigmoid",
            "Sin",
            "Sinh",
            "Softsign",
            "Sqrt",
            "Tan",
            "Tanh",
        )
    },
    "Div": "Divide",
    "HardSwish": "HSwish",
    "Max": "Maximum",
    "Min": "Minimum",
    "Mul": "Multiply",
    "Neg": "Negative",
    "Relu": "ReLU",
    "Softplus": "SoftPlus",
    "Sub": "Subtract",
}
"""By ONNX's name; what the attributes are called is the same."""
_SINCE = {"Add": 7, "Sub": 7, "Mul": 7, "Div": 7, "Max": 8, "Min": 8}
"""Before, operands broadcast in another way."""
_REDUCTIONS = (
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
)
_FROM_13 = 13
"""The opset since which Softmax and LogSoftmax go along one axis."""
_CLIP_BY_INPUTS = 11


@dataclass(frozen=True, slots=True)
class _Rule:
    """A derivative, and the versions of the operation that it is of."""

    gradient: Gradient
    first: int = 1


def gradient_of(name: str, version: int) -> Gradient | None:
    """The rule of an operation of the standard domain; None where it has none here."""
    last, older = _BEFORE.get(name, (0, None))
    if version <= last:
        return older
    rule = _RULES.get(name)
    return rule.gradient if rule is not None and version >= rule.first else None


def _same(openvino: str) -> Gradient:
    def gradient(at: Reverse, /) -> Adjoints:
        if openvino in ("Maximum", "Minimum") and len(at.inputs) != 2:
            raise ValueError(
                f"it has {len(at.inputs)} inputs, and only the one of two is an operation of OpenVINO's"
            )
        return by(
            openvino,
            at,
            at.inputs,
            {name: value for name, value in at.attributes.items() if value is not None},
        )

    return gradient


def _sum(at: Reverse, /) -> Adjoints:
    """Of any number of terms."""
    return [at.sum_to(at.adjoint, one) for one in at.inputs]


def _mean(at: Reverse, /) -> Adjoints:
    return [at.sum_to(at.adjoint / float(len(at.inputs)), one) for one in at.inputs]


def _leaky_relu(at: Reverse, /) -> Adjoints:
    data = at.inputs[0]
    return (at.ops.select(data < 0.0, at.adjoint * at.attributes["alpha"], at.adjoint),)


def _power(at: Reverse, /) -> Adjoints:
    base, exponent = at.inputs
    if base.element_type is not exponent.element_type:
        exponent = at.ops.convert_like(exponent, base)
        return [*by("Power", at, (base, exponent), {})[:1], None]
    return by("Power", at, at.inputs, {})


def _reciprocal(at: Reverse, /) -> Adjoints:
    return (-at.adjoint * at.outputs[0] * at.outputs[0],)


def _matmul(at: Reverse, /) -> Adjoints:
    return by("MatMul", at, at.inputs, {"transpose_a": False, "transpose_b": False})


def _gemm(at: Reverse, /) -> Adjoints:
    """``alpha A B + beta C``, each operand transposed where it is asked for."""
    alpha, beta = at.attributes["alpha"], at.attributes["beta"]
    transposes = {
        "transpose_a": bool(at.attributes["transA"]),
        "transpose_b": bool(at.attributes["transB"]),
    }
    factors = by("MatMul", replace(at, adjoints=(at.adjoint * alpha,)), at.inputs[:2], transposes)[
        :2
    ]
    return [*factors, *(at.sum_to(at.adjoint * beta, one) for one in at.inputs[2:])]


def _same_elements(at: Reverse, /) -> Adjoints:
    return [at.reshaped(at.adjoint, at.inputs[0]), *[None] * (len(at.inputs) - 1)]


def _identity(at: Reverse, /) -> Adjoints:
    return (at.adjoint,)


def _cast(at: Reverse, /) -> Adjoints:
    return [at.ops.convert_like(at.adjoint, at.inputs[0]), *[None] * (len(at.inputs) - 1)]


def _transpose(at: Reverse, /) -> Adjoints:
    order = at.constant(np.array(at.attributes["perm"] or (), np.int64))
    return by("Transpose", at, (*at.inputs, order), {})


def _concat(at: Reverse, /) -> Adjoints:
    return by("Concat", at, at.inputs, {"axis": at.attributes["axis"]})


def _split(at: Reverse, /) -> Adjoints:
    parts = [at.adjoint_of(number) for number in range(len(at.outputs))]
    return [at.ops.concat(*parts, axis=at.attributes["axis"] or 0), *[None] * (len(at.inputs) - 1)]


def _gather(at: Reverse, /) -> Adjoints:
    return by(
        "Gather",
        at,
        (*at.inputs, at.constant(np.array(at.attributes["axis"] or 0, np.int64))),
        {"batch_dims": 0},
    )


def _gather_elements(at: Reverse, /) -> Adjoints:
    return by("GatherElements", at, at.inputs, {"axis": at.attributes["axis"] or 0})


def _slice(at: Reverse, /) -> Adjoints:
    data, starts, ends, *rest = at.inputs
    if not starts.shape.is_static:
        raise ValueError("it is not known how many axes it slices")
    count = starts.shape.lengths[0]
    axes = rest[0] if rest else at.constant(np.arange(count))
    steps = rest[1] if len(rest) > 1 else at.constant(np.ones(count, np.int64))
    return [
        by("Slice", at, (data, starts, ends, steps, axes), {})[0],
        *[None] * (len(at.inputs) - 1),
    ]


def _where(at: Reverse, /) -> Adjoints:
    return by("Select", at, at.inputs, {})


def _expand(at: Reverse, /) -> Adjoints:
    return [at.sum_to(at.adjoint, at.inputs[0]), None]


def _along_an_axis(openvino: str) -> Gradient:
    return lambda at: by(
        openvino,
        at,
        at.inputs,
        {"axis": -1 if at.attributes["axis"] is None else at.attributes["axis"]},
    )


def _reduction(openvino: str) -> Gradient:
    def gradient(at: Reverse, /) -> Adjoints:
        data = at.inputs[0]
        if len(at.inputs) > 1:
            axes = at.inputs[1]
        elif at.attributes.get("axes"):
            axes = at.constant(np.array(at.attributes["axes"], np.int64))
        elif at.attributes.get("noop_with_empty_axes"):
            raise ValueError("it folds nothing, and says so by noop_with_empty_axes")
        elif data.rank is None:
            rank = at.ops.reshape(
                at.ops.shape_of(at.shape_of(data)), np.zeros(0, np.int64), special_zero=False
            )
            axes = at.ops.range(np.array(0), rank, np.array(1), output_type="i64")
        else:
            axes = at.constant(np.arange(data.rank))
        found = by(openvino, at, (data, axes), {"keep_dims": bool(at.attributes["keepdims"])})
        return [found[0], *[None] * (len(at.inputs) - 1)]

    return gradient


_FLAT = (
    *(
        "Bernoulli",
        "Ceil",
        "DynamicQuantizeLinear",
        "EyeLike",
        "Floor",
        "Hardmax",
        "MelWeightMatrix",
        "RandomNormalLike",
    ),
    *("RandomUniformLike", "Round", "Sign"),
)
"""What they give does not change with what they are given, or only in steps."""
_RULES: Mapping[str, _Rule] = {
    **{name: _Rule(flat) for name in _FLAT},
    **{name: _Rule(_same(openvino), _SINCE.get(name, 1)) for name, openvino in _SAME.items()},
    **{name: _Rule(_reduction(name)) for name in _REDUCTIONS},
    "Attention": _Rule(WithGaps(attention.attention)),
    "AveragePool": _Rule(windows.average_pool, 7),
    "BatchNormalization": _Rule(norms.batch_normalization, 9),
    "Cast": _Rule(_cast, 6),
    "CastLike": _Rule(_cast),
    "Celu": _Rule(formulas.celu),
    "Clip": _Rule(WithGaps(formulas.clip), _CLIP_BY_INPUTS),
    "Concat": _Rule(_concat, 4),
    "Conv": _Rule(windows.conv),
    "ConvTranspose": _Rule(windows.conv_transpose),
    "Compress": _Rule(formulas.compress, 9),
    "Col2Im": _Rule(movement.blocks_laid),
    "CumProd": _Rule(formulas.cumulative_product),
    "CumSum": _Rule(movement.cumulative_sum),
    "DFT": _Rule(WithGaps(spectra.dft)),
    "DepthToSpace": _Rule(movement.depth_to_space, 11),
    "Det": _Rule(formulas.determinant),
    "Dropout": _Rule(WithGaps(movement.dropout), 7),
    "Einsum": _Rule(formulas.einsum),
    "Expand": _Rule(_expand),
    "Flatten": _Rule(_same_elements),
    "Gather": _Rule(_gather),
    "GRU": _Rule(WithGaps(recurrence.gru), 7),
    "GatherElements": _Rule(_gather_elements),
    "GridSample": _Rule(movement.grid_sample),
    "GatherND": _Rule(movement.gather_nd, 12),
    "Gelu": _Rule(formulas.gelu),
    "Gemm": _Rule(_gemm, 7),
    "GlobalAveragePool": _Rule(partial(windows.over_all_places, "ReduceMean")),
    "GlobalMaxPool": _Rule(partial(windows.over_all_places, "ReduceMax")),
    "GlobalLpPool": _Rule(windows.global_lp_pool),
    "GroupNormalization": _Rule(norms.group_normalization, 21),
    "HardSigmoid": _Rule(formulas.hard_sigmoid, 6),
    "Identity": _Rule(_identity),
    "InstanceNormalization": _Rule(norms.instance_normalization, 6),
    "LSTM": _Rule(WithGaps(recurrence.lstm), 7),
    "LRN": _Rule(norms.local_response_normalization),
    "LayerNormalization": _Rule(norms.layer_normalization),
    "LeakyRelu": _Rule(_leaky_relu, 6),
    "LogSoftmax": _Rule(_along_an_axis("LogSoftmax"), _FROM_13),
    "LpNormalization": _Rule(norms.lp_normalization),
    "LpPool": _Rule(windows.lp_pool),
    "MatMul": _Rule(_matmul),
    "MaxPool": _Rule(windows.max_pool),
    "Mean": _Rule(_mean, 8),
    "MeanVarianceNormalization": _Rule(norms.mean_variance_normalization, 9),
    "PRelu": _Rule(formulas.prelu, 7),
    "Mod": _Rule(formulas.modulo),
    "NegativeLogLikelihoodLoss": _Rule(WithGaps(losses.negative_log_likelihood_loss)),
    "OneHot": _Rule(formulas.one_hot, 11),
    "Pad": _Rule(WithGaps(movement.pad), 11),
    "Pow": _Rule(_power, 7),
    "RMSNormalization": _Rule(norms.rms_normalization),
    "RNN": _Rule(WithGaps(recurrence.rnn), 7),
    "Range": _Rule(movement.numbers_between),
    "Reciprocal": _Rule(_reciprocal, 6),
    "ReduceLogSum": _Rule(formulas.logarithm_of_sum(_reduction("ReduceSum"))),
    "ReduceLogSumExp": _Rule(formulas.logarithm_of_exponentials(_reduction("ReduceSum"))),
    "ReduceSumSquare": _Rule(formulas.sum_of_squares(_reduction("ReduceSum"))),
    "Resize": _Rule(WithGaps(resizing.resize), 11),
    "ReverseSequence": _Rule(movement.reverse_sequence),
    "RoiAlign": _Rule(windows.roi_align, 10),
    "RotaryEmbedding": _Rule(WithGaps(attention.rotary_embedding)),
    "Reshape": _Rule(_same_elements, 5),
    "Scatter": _Rule(movement.scatter_elements),
    "ScatterElements": _Rule(movement.scatter_elements),
    "ScatterND": _Rule(movement.scatter_nd),
    "STFT": _Rule(WithGaps(spectra.stft)),
    "Selu": _Rule(formulas.selu, 6),
    "Shrink": _Rule(formulas.shrink),
    "Slice": _Rule(_slice, 10),
    "Softmax": _Rule(_along_an_axis("Softmax"), _FROM_13),
    "SoftmaxCrossEntropyLoss": _Rule(WithGaps(losses.softmax_cross_entropy_loss)),
    "SpaceToDepth": _Rule(movement.space_to_depth),
    "Split": _Rule(_split, 2),
    "Squeeze": _Rule(_same_elements),
    "Sum": _Rule(_sum, 8),
    "Swish": _Rule(formulas.swish),
    "ThresholdedRelu": _Rule(formulas.thresholded_relu),
    "Tile": _Rule(movement.tile, 6),
    "TopK": _Rule(movement.top_k, 10),
    "Transpose": _Rule(_transpose),
    "Trilu": _Rule(movement.triangle),
    "Unsqueeze": _Rule(_same_elements),
    "Where": _Rule(_where),
}
_BEFORE: Mapping[str, tuple[int, Gradient]] = {
    "Clip": (_CLIP_BY_INPUTS - 1, formulas.clip_by_attributes),
    "LogSoftmax": (_FROM_13 - 1, partial(formulas.along_the_rest, True)),
    "Resize": (10, resizing.upsample),
    "Softmax": (_FROM_13 - 1, partial(formulas.along_the_rest, False)),
    "Upsample": (10, resizing.upsample),
}
"""Up to a version an operation was another function."""
