"""Movement of elements against OpenVINO and the examples of the spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino as ov
import pytest

from loopscope.ir.element_type import ElementType
from tests.engine.ops.oracle import agree, ours, references

RANDOM = np.random.default_rng(11)
DATA = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
COUNT = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


def i64(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def scalar(value: float, dtype: type[np.generic] = np.int64) -> np.ndarray:
    return np.array(value, dtype)


def random(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def masks(
    begin: str = "", end: str = "", new: str = "", shrink: str = "", ellipsis: str = ""
) -> dict[str, list[int]]:
    names = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
    return {
        name: [int(bit) for bit in bits]
        for name, bits in zip(names, (begin, end, new, shrink, ellipsis), strict=True)
    }


Case = tuple[str, int, Sequence[np.ndarray], dict[str, Any], tuple[int, ...]]

JOINING: list[Case] = [
    ("Concat", 1, [DATA, DATA, DATA[:, :1]], {"axis": 1}, ()),
    ("Concat", 1, [DATA, DATA], {"axis": -1}, ()),
    ("Concat", 1, [DATA], {"axis": 0}, ()),
    ("Split", 1, [DATA, scalar(2)], {"num_splits": 2}, (1,)),
    ("Split", 1, [DATA, scalar(-2)], {"num_splits": 3}, (1,)),
    ("VariadicSplit", 1, [DATA, scalar(1), i64(1, -1)], {}, (1, 2)),
    ("VariadicSplit", 1, [DATA, scalar(-1), i64(2, 1, 1)], {}, (1, 2)),
]
FAR = 2**31 - 1
SLICING: list[Case] = [
    ("Slice", 8, [DATA, i64(-1, 0), i64(-100, 3), i64(-2, 2), i64(2, -2)], {}, ()),
    ("Slice", 8, [DATA, i64(0, 1), i64(2, 3), i64(1, 1)], {}, ()),
    ("Slice", 8, [DATA, i64(3), i64(3), i64(1), i64(2)], {}, ()),
    ("Slice", 8, [DATA, i64(-10), i64(-20), i64(-1), i64(2)], {}, ()),
    ("Slice", 8, [DATA, i64(FAR), i64(-FAR), i64(-1), i64(2)], {}, ()),
    (
        "StridedSlice",
        1,
        [DATA, i64(0, 1), i64(1, 3), i64(1, 2)],
        masks("00", "00", "00", "10", "00"),
        (),
    ),
    ("StridedSlice", 1, [DATA, i64(1, 0, 1), i64(2, 1, 3), i64(1, -1, 2)], masks("111", "111"), ()),
    (
        "StridedSlice",
        1,
        [DATA, i64(0, 0, 1), i64(1, 0, 3), i64(1, 1, 2)],
        masks("000", "000", "001", "100", "010"),
        (1, 2, 3),
    ),
    (
        "StridedSlice",
        1,
        [DATA, i64(-1, 0, 1), i64(0, 0, 3), i64(1, 1, 2)],
        masks("100", "000", "000", "100", "010"),
        (1, 2, 3),
    ),
    (
        "SliceScatter",
        15,
        [DATA, random(2, 2, 4), i64(-1), i64(-100), i64(-2), i64(1)],
        {},
        (2, 3, 4, 5),
    ),
    ("SliceScatter", 15, [DATA, random(1, 2, 4), i64(1, 0), i64(9, 2), i64(1, 1)], {}, (2, 3, 4)),
]
GROWING: list[Case] = [
    ("Broadcast", 3, [DATA[:, :1], i64(2, 5, 4)], {"mode": "numpy"}, ()),
    ("Broadcast", 3, [DATA[:, :1], i64(7, 1, 1, 4)], {"mode": "bidirectional"}, ()),
    ("Broadcast", 3, [DATA[0], i64(3, 2, 4, 5), i64(0, 2)], {"mode": "explicit"}, ()),
    ("Broadcast", 1, [DATA[0], i64(3, 2, 4, 5), i64(0, 2)], {"mode": "explicit"}, ()),
    ("Broadcast", 1, [DATA[0], i64(3, 2, 4, 5), i64(0, 2)], {"mode": "none"}, ()),
    ("Broadcast", 1, [DATA, i64(2, 2, 3, 4)], {}, ()),
    ("Tile", 1, [DATA, i64(2, 1, 3)], {}, ()),
    ("Tile", 1, [DATA, i64(2, 1, 1, 3)], {}, ()),
    ("Tile", 1, [DATA, i64(2)], {}, ()),
    (
        "Pad",
        12,
        [DATA, i64(0, 2, -1), i64(-1, 1, 3), scalar(3, np.float32)],
        {"pad_mode": "constant"},
        (),
    ),
    *[
        ("Pad", 12, [DATA, i64(0, 2, -1), i64(-1, 1, 3)], {"pad_mode": mode}, ())
        for mode in ("constant", "edge", "reflect", "symmetric")
    ],
    *[
        ("Pad", 1, [DATA, i64(1, 2, 0), i64(0, 1, 3)], {"pad_mode": mode}, ())
        for mode in ("constant", "edge", "reflect", "symmetric")
    ],
]
GATHERING: list[Case] = [
    ("Gather", 8, [DATA, i64([0, -1], [2, 1]), scalar(1)], {"batch_dims": 0}, (2,)),
    ("Gather", 8, [DATA, i64([0, -1], [2, 1]), scalar(-1)], {"batch_dims": 1}, (2,)),
    ("Gather", 8, [DATA, i64([0, -1], [2, 1]), scalar(1)], {"batch_dims": -1}, (2,)),
    ("Gather", 8, [DATA, i64(0, 7, -9), scalar(1)], {}, (2,)),
    ("Gather", 8, [DATA, i64([0, 7], [-9, 1]), scalar(1)], {"batch_dims": 1}, (2,)),
    ("Gather", 8, [DATA, scalar(2), i64(2)], {}, (2,)),
    ("Gather", 7, [DATA, i64([0, 1], [2, 1]), scalar(2)], {"batch_dims": 1}, (2,)),
    ("Gather", 1, [DATA, scalar(1), scalar(0)], {}, (2,)),
    ("GatherElements", 6, [DATA, RANDOM.integers(-3, 3, (2, 5, 4))], {"axis": 1}, ()),
    ("GatherND", 8, [DATA, i64([1, 2], [0, -1])], {"batch_dims": 0}, ()),
    ("GatherND", 8, [DATA, RANDOM.integers(0, 4, (2, 3, 2, 1))], {"batch_dims": 2}, ()),
    ("GatherND", 8, [DATA, RANDOM.integers(0, 3, (2, 5, 1))], {"batch_dims": 1}, ()),
    ("GatherND", 5, [DATA, RANDOM.integers(0, 4, (2, 3, 2, 1))], {"batch_dims": 2}, ()),
    ("GatherND", 5, [DATA, RANDOM.integers(0, 3, (2, 2))], {"batch_dims": 1}, ()),
    (
        "GatherTree",
        1,
        [
            RANDOM.integers(0, 9, (5, 2, 3)).astype(np.int32),
            RANDOM.integers(0, 3, (5, 2, 3)).astype(np.int32),
            np.array([4, 5], np.int32),
            scalar(7, np.int32),
        ],
        {},
        (),
    ),
]
SCATTERING: list[Case] = [
    ("ScatterUpdate", 3, [DATA, i64([0, 1]), random(2, 1, 2, 4), scalar(1)], {}, ()),
    ("ScatterUpdate", 3, [DATA, i64(2), random(2, 1, 4), scalar(-2)], {}, ()),
    (
        "ScatterElementsUpdate",
        3,
        [DATA, i64([[0, 1, 2], [2, 2, 1]]), random(1, 2, 3), scalar(1)],
        {},
        (3,),
    ),
    ("ScatterNDUpdate", 4, [DATA, i64([1, 2], [0, 1]), random(2, 4)], {}, ()),
    ("ScatterNDUpdate", 15, [DATA, i64([1], [0]), random(2, 3, 4)], {}, ()),
    *[
        (
            "ScatterElementsUpdate",
            12,
            (DATA, RANDOM.integers(-3, 3, (2, 4, 3)), random(2, 4, 3), scalar(1)),
            {"reduction": kind, "use_init_val": use},
            (3,),
        )
        for kind in ("sum", "prod", "min", "max", "mean")
        for use in (True, False)
    ],
    *[
        (
            "ScatterNDUpdate",
            15,
            [DATA, i64([1, 2], [0, -1], [1, 2]), random(3, 4)],
            {"reduction": kind},
            (),
        )
        for kind in ("sum", "sub", "prod", "min", "max")
    ],
]
ORDERING: list[Case] = [
    ("Transpose", 1, [DATA, i64(2, 0, 1)], {}, ()),
    ("Transpose", 1, [DATA, i64()], {}, (1,)),
    ("Reverse", 1, [DATA, i64(0, -1)], {"mode": "index"}, (1,)),
    ("Reverse", 1, [DATA, np.array([True, False, True])], {"mode": "mask"}, (1,)),
    ("ReverseSequence", 1, [DATA, i64(3, 1)], {"batch_axis": 0, "seq_axis": 2}, ()),
    ("ReverseSequence", 1, [DATA, i64(2, 1, 0, 2)], {"batch_axis": 2, "seq_axis": 0}, ()),
    ("ReverseSequence", 1, [DATA, i64(3, 2)], {}, ()),
    ("Roll", 7, [DATA, i64(1, 2, 5), i64(0, 2, -1)], {}, ()),
    ("Roll", 7, [DATA, i64(-1), i64(2)], {}, ()),
    ("ShuffleChannels", 1, [random(1, 6, 2, 2)], {"axis": 1, "group": 3}, ()),
    ("ShuffleChannels", 1, [random(1, 2, 2, 6)], {"axis": -1, "group": 2}, ()),
]
BLOCKS: list[Case] = [
    *[
        ("DepthToSpace", 1, [random(2, 8, 3, 2)], {"mode": mode, "block_size": 2}, ())
        for mode in ("blocks_first", "depth_first")
    ],
    *[
        ("DepthToSpace", 1, [random(1, 8, 3, 2, 2)], {"mode": mode, "block_size": 2}, ())
        for mode in ("blocks_first", "depth_first")
    ],
    *[
        ("SpaceToDepth", 1, [random(2, 3, 4, 6)], {"mode": mode, "block_size": 2}, ())
        for mode in ("blocks_first", "depth_first")
    ],
    *[
        ("SpaceToDepth", 1, [random(1, 3, 4, 2, 2)], {"mode": mode, "block_size": 2}, ())
        for mode in ("blocks_first", "depth_first")
    ],
    (
        "BatchToSpace",
        2,
        [random(12, 2, 3, 2), i64(1, 2, 3, 1), i64(0, 1, 0, 0), i64(0, 0, 2, 0)],
        {},
        (1, 2, 3),
    ),
    (
        "SpaceToBatch",
        2,
        [random(2, 3, 4, 2), i64(1, 2, 3, 1), i64(0, 1, 0, 0), i64(0, 0, 2, 0)],
        {},
        (1, 2, 3),
    ),
    *[
        (
            "ExtractImagePatches",
            3,
            [random(2, 3, 10, 9)],
            {"sizes": [3, 2], "strides": [4, 5], "rates": [2, 1], "auto_pad": mode},
            (),
        )
        for mode in ("valid", "same_upper", "same_lower")
    ],
]
KINDS = RANDOM.integers(0, 3, (4, 3, 2))
DISTINCT: list[Case] = [
    (
        "Unique",
        10,
        [KINDS.astype(dtype), *axis],
        {"sorted": arranged, "index_element_type": "i32"},
        (1,) if axis else (),
    )
    for dtype in (np.float32, np.int32)
    for axis in ([], [scalar(0)], [scalar(1)], [scalar(-1)])
    for arranged in (True, False)
]


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes", "constant"),
    [*JOINING, *SLICING, *GROWING, *GATHERING, *SCATTERING, *ORDERING, *BLOCKS, *DISTINCT],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_as_openvino(
    name: str,
    version: int,
    inputs: list[np.ndarray],
    attributes: dict[str, Any],
    constant: tuple[int, ...],
) -> None:
    agree(name, version, inputs, attributes, constant=constant)


@pytest.mark.parametrize(
    ("shape", "output", "kernel", "settings"),
    [
        ((2, 12, 225), (16, 16), (2, 2), {}),
        ((12, 225), (16, 16), (2, 2), {}),
        (
            (1, 27, 49),
            (16, 16),
            (3, 3),
            {"strides": [2, 2], "dilations": [2, 2], "pads_begin": [1, 1], "pads_end": [1, 1]},
        ),
        ((2, 6, 9), (4, 5), (2, 3), {}),
    ],
)
def test_col2im(
    shape: tuple[int, ...],
    output: tuple[int, int],
    kernel: tuple[int, int],
    settings: dict[str, list[int]],
) -> None:
    data = random(*shape)
    parameter = ov.opset15.parameter(list(shape), ov.Type.f32)
    node = ov.opset15.col2im(
        parameter, ov.opset15.constant(i64(*output)), ov.opset15.constant(i64(*kernel)), **settings
    )
    theirs = ov.Core().compile_model(
        ov.Model(node.outputs(), [parameter], "one"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )([data])[0]
    texts = {name: ",".join(map(str, values)) for name, values in settings.items()}
    np.testing.assert_allclose(
        ours("Col2Im", 15, [data, i64(*output), i64(*kernel)], texts)[0],
        theirs,
        rtol=1e-5,
        atol=1e-6,
    )


def test_strided_slice_with_new_and_dropped_axes() -> None:
    """The CPU plugin reads past its buffer here; OpenVINO's own reference agrees with numpy."""
    inputs, attributes = (
        [DATA, i64(1, 0, 1), i64(2, 0, 3), i64(1, 1, 2)],
        masks("000", "000", "100", "011", "000"),
    )
    texts = {name: ",".join(map(str, bits)) for name, bits in attributes.items()}
    np.testing.assert_array_equal(ours("StridedSlice", 1, inputs, texts)[0], DATA[None, 0, 1])
    np.testing.assert_array_equal(
        references("StridedSlice", 1, inputs, attributes)[0], DATA[None, 0, 1]
    )


def test_a_backward_slice_with_an_open_end_includes_element_0() -> None:
    """The text of strided-slice-1 excludes it, its own example ``[::-1]`` and every runtime
    include it.
    """
    attributes = masks("011", "111")
    texts = {name: ",".join(map(str, bits)) for name, bits in attributes.items()}
    inputs = [COUNT, i64(1, 1, 123), i64(0, 0, 2), i64(1, 1, -1)]
    np.testing.assert_array_equal(ours("StridedSlice", 1, inputs, texts)[0], COUNT[1:, :, ::-1])
    agree("StridedSlice", 1, inputs, attributes)


def test_bounds_beyond_32_bits() -> None:
    """The CPU plugin cuts them to 32 bits; the spec clamps them to the axis."""
    np.testing.assert_array_equal(
        ours("Slice", 8, [DATA, i64(1), i64(2**62), i64(2), i64(2)])[0], DATA[..., 1::2]
    )


def test_integer_means_are_rounded_down() -> None:
    """scatter-elements-update-12: towards negative infinity, as OpenVINO's reference; the CPU
    plugin rounds towards zero.
    """
    inputs = [np.array([-3, 5], np.int32), i64(0, 0, 1), np.array([-4, 2, -8], np.int32), scalar(0)]
    attributes = {"reduction": "mean", "use_init_val": "true"}
    np.testing.assert_array_equal(
        ours("ScatterElementsUpdate", 12, inputs, attributes)[0], [-2, -2]
    )
    np.testing.assert_array_equal(
        references(
            "ScatterElementsUpdate", 12, inputs, {"reduction": "mean", "use_init_val": True}
        )[0],
        [-2, -2],
    )


EXAMPLES = [
    ("Gather", 8, [i64(1, 2, 3, 4, 5), i64(3, 10, -20), scalar(0)], {}, [4, 0, 0]),
    ("GatherND", 8, [i64([1, 2], [3, 4]), i64([[1]], [[0]])], {}, [[[3, 4]], [[1, 2]]]),
    (
        "ScatterElementsUpdate",
        12,
        [i64(2, 3, 4, 6), i64(1, 0, 0, -2, -1, 2), i64(10, 20, 30, 40, 70, 60), i64(0)],
        {"reduction": "sum"},
        [52, 13, 104, 76],
    ),
    (
        "ScatterElementsUpdate",
        12,
        [i64(2, 3, 4, 6), i64(1, 0, 0, 2, 3, 2), i64(10, 20, 30, 40, 70, 60), i64(0)],
        {"reduction": "sum", "use_init_val": "false"},
        [50, 10, 100, 70],
    ),
    (
        "ScatterNDUpdate",
        15,
        [i64(*range(1, 9)), i64([4], [3], [1], [7], [-2], [-4]), i64(*range(9, 15))],
        {},
        [1, 11, 3, 10, 14, 6, 13, 12],
    ),
    (
        "ScatterNDUpdate",
        15,
        [i64(1, 2, 3, 4), i64([0], [2], [-3], [-3], [0]), i64(10, 20, 30, 40, 50)],
        {"reduction": "sub"},
        [-59, -68, -17, 4],
    ),
    (
        "ScatterNDUpdate",
        15,
        [np.array([True, True]), i64([0]), np.array([True])],
        {"reduction": "sub"},
        [False, True],
    ),
    (
        "ScatterElementsUpdate",
        12,
        [np.array([False, True]), i64(0, 1), np.array([True, False]), i64(0)],
        {"reduction": "prod"},
        [False, False],
    ),
    (
        "Pad",
        12,
        [np.arange(1, 13).reshape(3, 4), i64(2, -1), i64(-1, 3)],
        {"pad_mode": "reflect"},
        [[10, 11, 12, 11, 10, 9], [6, 7, 8, 7, 6, 5], [2, 3, 4, 3, 2, 1], [6, 7, 8, 7, 6, 5]],
    ),
    (
        "Pad",
        12,
        [np.arange(1, 13).reshape(3, 4), i64(-1, -1), i64(-1, -1)],
        {"pad_mode": "symmetric"},
        [[6, 7]],
    ),
    ("Pad", 12, [np.array(["a"], object), i64(1), i64(0)], {"pad_mode": "constant"}, ["", "a"]),
    (
        "SliceScatter",
        15,
        [
            np.arange(10).reshape(2, 5),
            i64([10, 20, 30], [40, 50, 60]),
            i64(-25),
            i64(25),
            i64(2),
            i64(1),
        ],
        {},
        [[10, 1, 20, 3, 30], [40, 6, 50, 8, 60]],
    ),
    ("Roll", 7, [np.arange(6).reshape(2, 3), scalar(-1), i64(0, 1)], {}, [[4, 5, 3], [1, 2, 0]]),
    ("Unique", 10, [np.array(["b", "a", "b"], object)], {"sorted": "false"}, ["b", "a"]),
]


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes", "expected"),
    EXAMPLES,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_examples(
    name: str,
    version: int,
    inputs: list[np.ndarray],
    attributes: dict[str, str],
    expected: list[Any],
) -> None:
    assert ours(name, version, inputs, attributes)[0].tolist() == expected


def sample(element_type: ElementType, shape: tuple[int, ...]) -> np.ndarray:
    count = np.arange(int(np.prod(shape))) % 2
    if element_type is ElementType.STRING:
        return np.array(["a", "b"], object)[count].reshape(shape)
    if element_type.dtype.names:
        return count.astype(np.uint8).view(element_type.dtype).reshape(shape)
    return count.astype(np.float32).astype(element_type.dtype).reshape(shape)


@pytest.mark.parametrize("rows", [2, 0])
@pytest.mark.parametrize("element_type", list(ElementType), ids=str)
def test_every_element_type_moves(element_type: ElementType, rows: int) -> None:
    data = sample(element_type, (rows, 4, 6))
    pixels = sample(element_type, (rows, 4, 4, 6))
    cases: list[tuple[str, int, list[np.ndarray], dict[str, str]]] = [
        ("Concat", 1, [data, data], {"axis": "0"}),
        ("Split", 1, [data, scalar(1)], {"num_splits": "2"}),
        ("Slice", 8, [data, i64(-1), i64(-9), i64(-1), i64(1)], {}),
        (
            "StridedSlice",
            1,
            [data, i64(1), i64(2)],
            {"begin_mask": "0,0", "end_mask": "0,0", "new_axis_mask": "1"},
        ),
        ("SliceScatter", 15, [data, data[:, :1], i64(0), i64(1), i64(1), i64(1)], {}),
        ("Broadcast", 3, [data, i64(3, *data.shape)], {}),
        ("Tile", 1, [data, i64(2, 1, 1)], {}),
        ("Pad", 12, [data, i64(0, 1, 1), i64(0, 1, -1)], {"pad_mode": "constant"}),
        ("Pad", 12, [data, i64(0, 1, 1), i64(0, 1, -1)], {"pad_mode": "reflect"}),
        ("Gather", 8, [data, i64(0, 9, -1), scalar(1)], {}),
        ("Gather", 8, [data, np.full((rows, 2), 7), scalar(1)], {"batch_dims": "1"}),
        ("GatherElements", 6, [data, np.zeros(data.shape, np.int32)], {"axis": "2"}),
        ("GatherND", 8, [data, np.zeros((0, 1), np.int64)], {}),
        ("ScatterUpdate", 3, [data, i64(0), data[:, :1], scalar(1)], {}),
        ("ScatterElementsUpdate", 12, [data, np.zeros(data.shape, np.int32), data, scalar(1)], {}),
        ("ScatterNDUpdate", 15, [data, np.zeros((0, 1), np.int64), data[:0]], {}),
        ("Transpose", 1, [data, i64(2, 0, 1)], {}),
        ("Reverse", 1, [data, i64(1)], {"mode": "index"}),
        ("ReverseSequence", 1, [data, np.full(rows, 2)], {}),
        ("Roll", 7, [data, i64(1), i64(0)], {}),
        ("ShuffleChannels", 1, [data], {"group": "2"}),
        ("DepthToSpace", 1, [pixels], {"mode": "depth_first", "block_size": "2"}),
        ("SpaceToDepth", 1, [pixels], {"mode": "blocks_first", "block_size": "2"}),
        (
            "ExtractImagePatches",
            3,
            [pixels],
            {"sizes": "2,2", "strides": "1,1", "rates": "1,1", "auto_pad": "valid"},
        ),
        ("SpaceToBatch", 2, [data, i64(1, 2, 2), i64(0, 0, 0), i64(0, 0, 0)], {}),
        ("Unique", 10, [data], {}),
        ("Unique", 10, [data, scalar(0)], {"sorted": "false"}),
    ]
    for name, version, inputs, attributes in cases:
        for result in ours(name, version, inputs, attributes)[:1]:
            assert result.dtype == element_type.dtype, name


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes", "message"),
    [
        (
            "Split",
            1,
            [DATA, scalar(1)],
            {"num_splits": "2"},
            "3 elements along axis 1 cannot be split into 2",
        ),
        (
            "VariadicSplit",
            1,
            [DATA, scalar(1), i64(1, 1)],
            {},
            "do not make up an axis of length 3",
        ),
        ("Transpose", 1, [DATA, i64(0, 0, 1)], {}, "name one axis of rank 3 twice"),
        ("Slice", 8, [DATA, i64(0), i64(1), i64(0)], {}, "step is 0"),
        ("Broadcast", 3, [scalar(1), i64(2**20, 2**20)], {}, "1099511627776 elements"),
        ("Tile", 1, [DATA, i64(2**40)], {}, "more than the limit"),
        (
            "Pad",
            12,
            [DATA, i64(0, 0, 2**40), i64(0, 0, 0)],
            {"pad_mode": "edge"},
            "more than the limit",
        ),
        (
            "Pad",
            12,
            [DATA, i64(0, 3, 0), i64(0, 0, 0)],
            {"pad_mode": "reflect"},
            "more than mode 'reflect' can mirror",
        ),
        (
            "GatherElements",
            6,
            [DATA, np.full((2, 3, 4), 7)],
            {"axis": "1"},
            "index 7 is out of range for an axis of length 3",
        ),
        (
            "ScatterNDUpdate",
            15,
            [DATA, i64([9]), DATA[:1]],
            {},
            "index 9 is out of range for an axis of length 2",
        ),
        ("ReverseSequence", 1, [DATA, i64(9, 1)], {}, "sequence lengths from 1 to 9 for 3 steps"),
        (
            "ScatterElementsUpdate",
            12,
            [np.array([True]), i64(0), np.array([True]), i64(0)],
            {"reduction": "mean"},
            "not defined for boolean",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals(
    name: str, version: int, inputs: list[np.ndarray], attributes: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ours(name, version, inputs, attributes)
