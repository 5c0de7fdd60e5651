"""Translation rules of convolutions and poolings, whose tensors have the channels last."""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.errors import shorten
from loopscope.ir.element_type import ElementType
from loopscope.read.tflite.drafts import DraftValue
from loopscope.read.tflite.operator_nodes import NUMPY, Operator, declared

_CHANNELS_SECOND = (0, 3, 1, 2)
_CHANNELS_LAST = (0, 2, 3, 1)
_PADDINGS = {0: "same_upper", 1: "valid"}


def convolution(operator: Operator) -> list[DraftValue]:
    """Translate CONV_2D, with weights [output channels, height, width, input channels]."""
    images = _moved(operator, operator.value(0), _CHANNELS_SECOND)
    weights = _moved(operator, operator.value(1), _CHANNELS_SECOND)
    attributes = _window(operator) | _dilations(operator, 4)
    sums = operator.add("Convolution", "opset1", (images, weights), attributes)
    return _with_bias(operator, sums, 2, activation=3)


def depthwise_convolution(operator: Operator) -> list[DraftValue]:
    """Translate DEPTHWISE_CONV_2D, with weights [1, height, width, channels x multiplier]."""
    shape = operator.tensor(1).shape
    multiplier = operator.info.whole(3)
    count = shape.at(3).length if shape.rank == 4 and shape.at(3).is_static else None
    if count is None or multiplier < 1 or count % multiplier:
        raise ValueError(
            f"{operator.info.name} {shorten(operator.name, 60)!r} has weights of shape {shape} and"
            f" multiplier {multiplier}, expected rank 4 and a multiple of the multiplier in axis 3"
        )
    images = _moved(operator, operator.value(0), _CHANNELS_SECOND)
    weights = _moved(operator, operator.value(1), (3, 0, 1, 2))
    height, width = (shape.at(axis).length if shape.at(axis).is_static else -1 for axis in (1, 2))
    groups = operator.constant([count // multiplier, multiplier, 1, height, width])
    weights = operator.add("Reshape", "opset1", (weights, groups), {"special_zero": "false"})
    attributes = _window(operator) | _dilations(operator, 5)
    sums = operator.add("GroupConvolution", "opset1", (images, weights), attributes)
    return _with_bias(operator, sums, 2, activation=4)


def average_pooling(operator: Operator) -> list[DraftValue]:
    """Translate AVERAGE_POOL_2D, which does not count the padding."""
    return _pooling(operator, "AvgPool", {"exclude-pad": "true"})


def max_pooling(operator: Operator) -> list[DraftValue]:
    """Translate MAX_POOL_2D."""
    return _pooling(operator, "MaxPool", {})


def _pooling(operator: Operator, operation: str, attributes: Mapping[str, str]) -> list[DraftValue]:
    """Add a pooling.

    Quantized integers are not dequantized, because the scales of input and output are equal and
    an average that is halfway between two integers is rounded away from the integer 0.
    """
    info, output = operator.info, operator.outputs[0]
    window = {"kernel": f"{info.whole(4)},{info.whole(3)}", "rounding_type": "floor"}
    attributes = {**_window(operator), **window, **attributes}
    whole = output.quantization is not None and not info.whole(5, "<b")
    value = operator.stored(0) if whole else operator.value(0)
    if whole:
        value = operator.add("Convert", "opset1", (value,), {"destination_type": "f32"})
    images = _moved(operator, value, _CHANNELS_SECOND)
    pooled = operator.add(operation, "opset1", (images,), attributes)
    if not whole:
        return _last(operator, pooled, 5)
    moved = _moved(operator, pooled, _CHANNELS_LAST)
    rounded = operator.add("Round", "opset5", (moved,), {"mode": "half_away_from_zero"})
    kind = {"destination_type": str(output.element_type or ElementType.F32)}
    return list(
        operator.draft.add("Convert", "opset1", operator.name, (rounded,), [declared(output)], kind)
    )


def _window(operator: Operator) -> dict[str, str]:
    """Return padding and strides, which all these operators have as their first options."""
    info = operator.info
    padding = _PADDINGS.get(info.whole(0, "<b"))
    strides = info.whole(2), info.whole(1)
    if padding is None or min(strides) < 1:
        raise ValueError(
            f"{info.name} {shorten(operator.name, 60)!r} has padding {info.whole(0, '<b')} and"
            f" strides {strides[0]}, {strides[1]}, expected padding 0 or 1 and positive strides"
        )
    return {
        "auto_pad": padding,
        "strides": f"{strides[0]},{strides[1]}",
        "pads_begin": "0,0",
        "pads_end": "0,0",
    }


def _dilations(operator: Operator, option: int) -> dict[str, str]:
    """Return the dilations; the one of the width is at ``option``, the one of the height next."""
    width, height = (int(operator.info.option(option + place, "<i", 1)) for place in (0, 1))
    return {"dilations": f"{height},{width}"}


def _moved(operator: Operator, value: DraftValue, axes: tuple[int, ...]) -> DraftValue:
    return operator.add("Transpose", "opset1", (value, operator.constant(list(axes))))


def _with_bias(
    operator: Operator, sums: DraftValue, bias: int, activation: int
) -> list[DraftValue]:
    """Add the bias input, if the operator has it, to sums [batch, channels, height, width]."""
    if not operator.has(bias):
        return _last(operator, sums, activation)
    moved = _moved(operator, sums, _CHANNELS_LAST)
    code = operator.info.whole(activation, "<b")
    return operator.give("Add", "opset1", (moved, operator.value(bias)), NUMPY, code)


def _last(operator: Operator, value: DraftValue, activation: int) -> list[DraftValue]:
    """Return the outputs: the channels of ``value`` moved last, then the activation."""
    axes = operator.constant(list(_CHANNELS_LAST))
    code = operator.info.whole(activation, "<b")
    return operator.give("Transpose", "opset1", (value, axes), activation=code)
