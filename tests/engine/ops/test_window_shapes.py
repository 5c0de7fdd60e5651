"""What is inferred of convolutions and pools from partly known shapes is what OpenVINO infers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import openvino as ov
import pytest
from openvino.utils.node_factory import NodeFactory

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import Dimension, PartialShape
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Known, typed

DATA = (
    "?,3,?,?",
    "?,3,2..,5..",
    "1..4,3,5..20,0..7",
    "1..4,?,..9,10..",
    "2,3,9,?",
    "2,3,0..8,20..30",
    "2,3,9,11",
    "...",
)
FILTERS = {
    "Convolution": (
        "4,3,3,3",
        "4,3,?,2..3",
        "?,3,3,3",
        "4,?,3,3",
        "2..4,1..3,3,3",
        "4,3,2..,..3",
        "...",
    ),
    "GroupConvolution": (
        "3,4,1,3,3",
        "3,4,1,?,2..3",
        "?,4,1,3,3",
        "3,4,?,3,3",
        "?,2..4,1..3,3,3",
        "...",
    ),
    "ConvolutionBackpropData": (
        "3,4,3,3",
        "3,4,?,2..3",
        "3,?,3,3",
        "?,4,3,3",
        "2..4,1..3,3,3",
        "3,2..,..3,?",
        "...",
    ),
    "GroupConvolutionBackpropData": (
        "3,1,4,3,3",
        "3,1,4,?,2..3",
        "?,1,4,3,3",
        "3,?,4,3,3",
        "?,1..3,2..4,3,3",
        "...",
    ),
}
WINDOWS: dict[str, dict[str, list[int] | str | bool]] = {
    "plain": {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]},
    "padded": {"strides": [2, 3], "pads_begin": [1, 2], "pads_end": [0, 1], "dilations": [2, 1]},
    "same": {
        "strides": [2, 3],
        "pads_begin": [0, 0],
        "pads_end": [0, 0],
        "dilations": [1, 1],
        "auto_pad": "same_upper",
    },
    "valid": {
        "strides": [2, 3],
        "pads_begin": [0, 0],
        "pads_end": [0, 0],
        "dilations": [2, 2],
        "auto_pad": "valid",
    },
}
POOLS = [
    ("MaxPool", 1),
    ("MaxPool", 8),
    ("MaxPool", 14),
    ("AvgPool", 1),
    ("AvgPool", 14),
    ("AvgPool", 16),
]
Attributes = Mapping[str, list[int] | str | bool]


def openvinos(
    name: str,
    version: int,
    shapes: Sequence[str],
    attributes: Attributes,
    output_shape: Sequence[int] = (),
) -> list[str]:
    inputs: list[ov.Node] = [
        ov.opset13.parameter(ov.PartialShape(shape), ov.Type.f32) for shape in shapes
    ]
    inputs += [ov.opset13.constant(np.array(output_shape, np.int64))] if output_shape else []
    node = NodeFactory(f"opset{version}").create(
        name, [one.output(0) for one in inputs], dict(attributes)
    )
    return [_text(output.get_partial_shape()) for output in node.outputs()]


def _text(shape: ov.PartialShape) -> str:
    if shape.rank.is_dynamic:
        return "..."
    lengths = [(one.get_min_length(), one.get_max_length()) for one in shape]
    return str(
        PartialShape.of([Dimension(least, None if most < 0 else most) for least, most in lengths])
    )


def ours(
    name: str,
    version: int,
    shapes: Sequence[str],
    attributes: Attributes,
    output_shape: Sequence[int] = (),
) -> list[str]:
    operation = next(one for one in CATALOGUE.versions(name) if one.version == version)
    assert operation.infer is not None
    texts = {
        key: ",".join(map(str, value)) if isinstance(value, list) else str(value).lower()
        for key, value in attributes.items()
    }
    known = [Known(ElementType.F32, PartialShape.parse(shape)) for shape in shapes]
    known += [Known.of(np.array(output_shape, np.int64))] if output_shape else []
    return [str(one.shape) for one in operation.infer(known, typed(operation, texts))]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", FILTERS)
def test_convolutions(name: str, data: str, window: str) -> None:
    attributes: Attributes = WINDOWS[window]
    for filters in FILTERS[name]:
        for extra in ({}, {"output_padding": [1, 1]}) if name.endswith("Data") else ({},):
            given = {**attributes, **extra}
            assert ours(name, 1, [data, filters], given) == openvinos(
                name, 1, [data, filters], given
            ), f"{filters} {extra}"
        if name.endswith("Data"):
            assert ours(name, 1, [data, filters], attributes, [7, 6]) == openvinos(
                name, 1, [data, filters], attributes, [7, 6]
            ), filters


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("name", "version"), POOLS)
def test_pools(name: str, version: int, data: str, window: str) -> None:
    for rounding in ("floor", "ceil", "ceil_torch")[: 3 if version >= 14 else 2]:
        attributes: dict[str, list[int] | str | bool] = {
            **WINDOWS[window],
            "kernel": [3, 2],
            "rounding_type": rounding,
        }
        if (name, version) not in (("MaxPool", 8), ("MaxPool", 14), ("AvgPool", 16)):
            del attributes["dilations"]
        attributes |= {"exclude-pad": False} if name == "AvgPool" else {}
        mine, theirs = (
            ours(name, version, [data], attributes),
            openvinos(name, version, [data], attributes),
        )
        if (
            window == "same"
        ):  # OpenVINO gives up on lengths that are not fixed; what we know besides lies within
            for one, other in zip(mine, theirs, strict=True):
                both = PartialShape.parse(one).intersect(PartialShape.parse(other))
                assert str(both) == one, f"{other} {rounding}"
        else:
            assert mine == theirs, rounding


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("Convolution", ["2,3,0..2,20", "4,3,3,3"]),
        ("ConvolutionBackpropData", ["2,3,9,9", "4,3,3,3"]),
        ("GroupConvolutionBackpropData", ["2,3,9,9", "3,4,1,3,3"]),
    ],
)
def test_what_no_run_can_compute_is_refused(name: str, shapes: list[str]) -> None:
    with pytest.raises(ValueError):
        ours(name, 1, shapes, WINDOWS["plain"])


@pytest.mark.parametrize("name", ["ConvolutionBackpropData", "GroupConvolutionBackpropData"])
def test_a_length_of_0_spreads_like_one_of_1(name: str) -> None:
    filters = "3,4,3,3" if name == "ConvolutionBackpropData" else "3,1,4,3,3"
    assert ours(name, 1, ["1,3,0,5", filters], WINDOWS["plain"]) == openvinos(
        name, 1, ["1,3,0,5", filters], WINDOWS["plain"]
    )
    operation = next(one for one in CATALOGUE.versions(name) if one.version == 1)
    assert operation.kernel is not None
    weights = np.ones([int(length) for length in filters.split(",")], np.float32)
    made = operation.kernel(np.zeros((1, 3, 0, 5), np.float32), weights, **typed(operation, {}))
    assert made.shape == (1, 4 if name == "ConvolutionBackpropData" else 12, 3, 7)
    assert not made.any()
