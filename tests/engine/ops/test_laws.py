"""Laws that hold for whatever tensor comes: what undoes what, and in which order it does not
matter.
"""

from __future__ import annotations

import math

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import Dimension, PartialShape, PartialValue
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Known
from loopscope.ops.infer import broadcast_shapes
from loopscope.ops.movement.slicing import slice_length
from tests.draws import draws
from tests.engine.ops.oracle import Value, ours

DTYPES = st.sampled_from([np.float32, np.int64, np.int8, np.bool_])
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)
TENSORS = DTYPES.flatmap(
    lambda dtype: hnp.arrays(
        dtype, SHAPES, elements=st.integers(0, 1) if dtype is np.bool_ else st.integers(-9, 9)
    )
)
LAW = settings(max_examples=draws(40), deadline=None)


def one(name: str, *inputs: Value, **attributes: object) -> np.ndarray:
    """The only output of the newest version of an operation."""
    (result,) = several(name, *inputs, **attributes)
    return result


def several(name: str, *inputs: Value, **attributes: object) -> list[np.ndarray]:
    texts = {
        key: ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value).lower()
        for key, value in attributes.items()
    }
    return ours(name, CATALOGUE.versions(name)[-1].version, inputs, texts)


def same(one: np.ndarray, other: np.ndarray) -> None:
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    assert one.tobytes() == other.tobytes()


def axes(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


@st.composite
def orders(draw: st.DrawFn, count: int) -> np.ndarray:
    return axes(*draw(st.permutations(range(count))))


@LAW
@given(
    hnp.array_shapes(min_dims=0, max_dims=4, max_side=3),
    hnp.array_shapes(min_dims=0, max_dims=4, max_side=3),
)
def test_broadcasting_is_numpys(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    inputs = [np.zeros(shape, np.float32) for shape in (left, right)]
    try:
        expected = np.broadcast_shapes(left, right)
    except ValueError:
        for refuse in (
            lambda: one("Add", *inputs),
            lambda: broadcast_shapes(PartialShape.of(left), PartialShape.of(right)),
        ):
            with pytest.raises(ValueError):
                refuse()
    else:
        assert one("Add", *inputs).shape == expected
        assert broadcast_shapes(PartialShape.of(left), PartialShape.of(right)).lengths == expected


@LAW
@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=4), st.data())
def test_broadcasting_what_is_partly_known(
    shapes: hnp.BroadcastableShapes, data: st.DataObject
) -> None:
    slack = st.sampled_from([0, 0, 1, 3])
    partial = [
        PartialShape.of(
            [
                Dimension(max(length - data.draw(slack), 0), length + data.draw(slack))
                for length in shape
            ]
        )
        for shape in shapes.input_shapes
    ]
    assert broadcast_shapes(*partial).contains(shapes.result_shape)


@LAW
@given(TENSORS, st.data())
def test_reshape_and_back(data: np.ndarray, draw: st.DataObject) -> None:
    target = [*draw.draw(st.permutations(data.shape)), 1]
    if data.size:
        target[draw.draw(st.integers(0, len(target) - 1))] = -1
    same(
        one(
            "Reshape",
            one("Reshape", data, axes(*target), special_zero=False),
            axes(*data.shape),
            special_zero=False,
        ),
        data,
    )


@LAW
@given(TENSORS, st.data())
def test_transpose_and_back(data: np.ndarray, draw: st.DataObject) -> None:
    order = draw.draw(orders(data.ndim))
    same(one("Transpose", one("Transpose", data, order), np.argsort(order)), data)
    assert one("Transpose", data, axes()).shape == data.shape[::-1]


@LAW
@given(TENSORS, st.data())
def test_unsqueeze_and_back(data: np.ndarray, draw: st.DataObject) -> None:
    rank = data.ndim + 2
    added = axes(
        *draw.draw(
            st.lists(
                st.integers(-rank, rank - 1),
                min_size=2,
                max_size=2,
                unique_by=lambda axis: axis % rank,
            )
        )
    )
    same(one("Squeeze", one("Unsqueeze", data, added), added), data)


@LAW
@given(TENSORS, st.data())
def test_what_is_gathered_in_another_order_is_scattered_back(
    data: np.ndarray, draw: st.DataObject
) -> None:
    axis = draw.draw(st.integers(-data.ndim, data.ndim - 1))
    order = draw.draw(orders(data.shape[axis]))
    same(
        one(
            "ScatterUpdate",
            np.zeros_like(data),
            order,
            one("Gather", data, order, np.array(axis)),
            np.array(axis),
        ),
        data,
    )
    everywhere = np.broadcast_to(
        np.expand_dims(order, [other for other in range(data.ndim) if other != axis % data.ndim]),
        data.shape,
    ).copy()
    gathered = one("GatherElements", data, everywhere, axis=axis)
    same(gathered, one("Gather", data, order, np.array(axis)))
    same(
        one("ScatterElementsUpdate", np.zeros_like(data), everywhere, gathered, np.array(axis)),
        data,
    )


@LAW
@given(TENSORS, st.data())
def test_slices_gathered_by_tuples_are_scattered_back(
    data: np.ndarray, draw: st.DataObject
) -> None:
    depth = draw.draw(st.integers(1, data.ndim))
    places = np.argwhere(np.ones(data.shape[:depth], np.bool_))
    tuples = places[draw.draw(orders(len(places)))]
    same(one("ScatterNDUpdate", np.zeros_like(data), tuples, one("GatherND", data, tuples)), data)


@LAW
@given(TENSORS, st.data())
def test_parts_are_joined_again(data: np.ndarray, draw: st.DataObject) -> None:
    axis = draw.draw(st.integers(-data.ndim, data.ndim - 1))
    cuts = sorted(draw.draw(st.lists(st.integers(0, data.shape[axis]), max_size=3)))
    lengths = np.diff([0, *cuts, data.shape[axis]]).tolist()
    if draw.draw(st.booleans()):
        lengths[draw.draw(st.integers(0, len(lengths) - 1))] = -1
    same(
        one("Concat", *several("VariadicSplit", data, np.array(axis), axes(*lengths)), axis=axis),
        data,
    )
    count = draw.draw(
        st.sampled_from([count for count in range(1, 6) if data.shape[axis] % count == 0])
    )
    parts = several("Split", data, np.array(axis), num_splits=count)
    assert {part.shape for part in parts} == {
        tuple(
            length // count if at == axis % data.ndim else length
            for at, length in enumerate(data.shape)
        )
    }
    same(one("Concat", *parts, axis=axis), data)


@LAW
@given(TENSORS, st.sampled_from(["constant", "edge", "reflect", "symmetric"]), st.data())
def test_what_was_padded_is_cut_out_again(data: np.ndarray, mode: str, draw: st.DataObject) -> None:
    most = [
        3 if mode in ("constant", "edge") else length - (mode == "reflect") for length in data.shape
    ]
    begin, end = (axes(*[draw.draw(st.integers(0, limit)) for limit in most]) for _ in range(2))
    value = [np.zeros((), data.dtype)] if mode == "constant" else []
    padded = one("Pad", data, begin, end, *value, pad_mode=mode)
    same(one("Slice", padded, begin, begin + data.shape, np.ones_like(begin)), data)
    masks = {"begin_mask": [0] * data.ndim, "end_mask": [0] * data.ndim}
    same(one("StridedSlice", padded, begin, begin + data.shape, **masks), data)
    if mode == "constant":
        same(one("Pad", padded, -begin, -end, *value, pad_mode=mode), data)


@LAW
@given(st.data())
def test_a_slice_is_as_long_as_its_bounds_allow(data: st.DataObject) -> None:
    bounds = st.integers(-9, 9) | st.sampled_from([-(2**63), 2**63 - 1])
    length, start, stop = data.draw(st.integers(0, 6)), data.draw(bounds), data.draw(bounds)
    step = data.draw(st.integers(-3, 3).filter(bool))
    slack = st.sampled_from([0, 0, 1, 3])
    whole = Dimension(
        max(length - data.draw(slack), 0),
        data.draw(st.none() | slack.map(lambda more: length + more)),
    )
    operation = CATALOGUE.versions("Slice")[-1]
    assert operation.infer is not None
    assert operation.kernel is not None
    tensor = Known(ElementType.F32, PartialShape((whole,)))
    near = [_around(bound, data.draw(slack)) for bound in (start, stop)]
    (known,) = operation.infer([tensor, *near, Known.of(axes(step))], {})
    computed = operation.kernel(np.zeros(length, np.float32), axes(start), axes(stop), axes(step))
    assert known.shape.contains(computed.shape), f"{known.shape}, computed {computed.shape}"


def _around(bound: int, slack: int) -> Known:
    exact = Known.of(axes(bound))
    elements = exact.elements
    assert elements is not None
    return (
        exact
        if slack == 0
        else Known(
            exact.element_type,
            exact.shape,
            partial=PartialValue(elements.least - slack, elements.most + slack),
        )
    )


@pytest.mark.parametrize(
    ("start", "stop", "step", "whole", "expected"),
    [
        (0, 3, 1, Dimension(2, 5), "2..3"),
        (0, 3, 1, Dimension(0, 0), "0"),
        (0, 2**63 - 1, 1, Dimension(), "?"),
        (1, None, 1, Dimension(4), "3.."),
        (-1, None, -1, Dimension(2), "2.."),
        (-2, None, 1, Dimension(), "..2"),
        (-2, 3, 1, Dimension(1, 5), "..5"),
        (None, None, 2, Dimension(3, 6), "2..3"),
        (-9, -2, -1, Dimension(1, 3), "..3"),
    ],
)
def test_what_is_known_of_a_slice_of_an_axis(
    start: int | None, stop: int | None, step: int, whole: Dimension, expected: str
) -> None:
    assert str(slice_length(start, stop, step, whole)) == expected


@LAW
@given(TENSORS, st.data())
def test_every_copy_of_a_tile_is_the_tensor(data: np.ndarray, draw: st.DataObject) -> None:
    times = draw.draw(st.lists(st.integers(1, 3), min_size=data.ndim, max_size=data.ndim))
    start = axes(
        *[
            draw.draw(st.integers(0, count - 1)) * length
            for count, length in zip(times, data.shape, strict=True)
        ]
    )
    same(
        one(
            "Slice", one("Tile", data, axes(*times)), start, start + data.shape, np.ones_like(start)
        ),
        data,
    )


@LAW
@given(TENSORS, st.data())
def test_roll_and_back(data: np.ndarray, draw: st.DataObject) -> None:
    axis, shift = draw.draw(st.integers(-data.ndim, data.ndim - 1)), draw.draw(st.integers(-7, 7))
    same(one("Roll", one("Roll", data, axes(shift), axes(axis)), axes(-shift), axes(axis)), data)


@LAW
@given(
    hnp.arrays(np.float32, st.tuples(*[st.integers(1, 3)] * 4), elements=st.integers(-9, 9)),
    st.sampled_from(["blocks_first", "depth_first"]),
)
def test_depth_becomes_space_and_depth_again(data: np.ndarray, mode: str) -> None:
    wide = (
        np.repeat(data, 4, axis=1)
        + np.tile(np.arange(4, dtype=np.float32), data.shape[1])[:, None, None]
    )
    same(
        one(
            "SpaceToDepth",
            one("DepthToSpace", wide, mode=mode, block_size=2),
            mode=mode,
            block_size=2,
        ),
        wide,
    )


@LAW
@given(
    hnp.arrays(np.int64, st.tuples(*[st.integers(1, 4)] * 3), elements=st.integers(-9, 9)),
    st.data(),
)
def test_space_becomes_batch_and_space_again(data: np.ndarray, draw: st.DataObject) -> None:
    block = axes(1, *[draw.draw(st.integers(1, 3)) for _ in data.shape[1:]])
    begin = axes(0, *[draw.draw(st.integers(0, 2)) for _ in data.shape[1:]])
    end = (-(data.shape + begin)) % block
    same(one("BatchToSpace", one("SpaceToBatch", data, block, begin, end), block, begin, end), data)


REDUCTIONS = [
    "ReduceSum",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceLogicalAnd",
    "ReduceLogicalOr",
]


@LAW
@pytest.mark.parametrize("name", REDUCTIONS)
@given(data=st.data())
def test_reductions_take_their_axes_in_any_order(name: str, data: st.DataObject) -> None:
    dtype, numbers = (
        (np.bool_, st.booleans()) if "Logical" in name else (np.int64, st.integers(-5, 5))
    )
    tensor = data.draw(hnp.arrays(dtype, SHAPES, elements=numbers))
    chosen = data.draw(st.lists(st.integers(0, tensor.ndim - 1), min_size=1, unique=True))
    whole = one(name, tensor, axes(*chosen), keep_dims=True)
    same(
        one(name, tensor, axes(*[axis - tensor.ndim for axis in reversed(chosen)]), keep_dims=True),
        whole,
    )
    step_by_step = tensor
    for axis in chosen:
        step_by_step = one(name, step_by_step, axes(axis), keep_dims=True)
    same(step_by_step, whole)
    order = data.draw(orders(tensor.ndim))
    turned = one(
        name,
        tensor.transpose(order),
        axes(*[int(np.flatnonzero(order == axis)[0]) for axis in chosen]),
        keep_dims=True,
    )
    same(np.ascontiguousarray(turned), np.ascontiguousarray(whole.transpose(order)))
    same(
        one(name, tensor, axes(*chosen), keep_dims=False),
        whole.reshape([n for axis, n in enumerate(tensor.shape) if axis not in chosen]),
    )


@LAW
@given(hnp.arrays(np.int64, SHAPES, elements=st.integers(-99, 99)), st.data())
def test_running_sums_from_both_ends_meet(data: np.ndarray, draw: st.DataObject) -> None:
    axis = draw.draw(st.integers(-data.ndim, data.ndim - 1))
    upwards = one("CumSum", data, np.array(axis), exclusive=True, reverse=False)
    downwards = one("CumSum", data, np.array(axis), exclusive=False, reverse=True)
    same(
        upwards + downwards,
        np.broadcast_to(one("ReduceSum", data, axes(axis), keep_dims=True), data.shape).copy(),
    )


@LAW
@given(
    hnp.arrays(np.int64, SHAPES, elements=st.integers(-9, 9)),
    st.sampled_from(["max", "min"]),
    st.data(),
)
def test_the_greatest_are_where_they_are_said_to_be(
    data: np.ndarray, mode: str, draw: st.DataObject
) -> None:
    axis = draw.draw(st.integers(0, data.ndim - 1))
    count = draw.draw(st.integers(1, data.shape[axis]))
    values, indices = several(
        "TopK",
        data,
        np.array(count),
        axis=axis,
        mode=mode,
        sort="value",
        index_element_type="i64",
        stable=True,
    )
    same(one("GatherElements", data, indices, axis=axis), values)
    ordered = np.sort(data, axis) if mode == "min" else -np.sort(-data, axis)
    same(values, np.ascontiguousarray(ordered.take(range(count), axis)))


@LAW
@given(hnp.arrays(np.int64, SHAPES, elements=st.integers(-9, 9)))
def test_distinct_elements_are_put_back_by_their_indices(data: np.ndarray) -> None:
    distinct, firsts, back, counts = several("Unique", data)
    same(one("Gather", distinct, back, np.array(0)), data.reshape(-1))
    same(one("Gather", data.reshape(-1), firsts, np.array(0)), distinct)
    assert counts.sum() == data.size


@LAW
@given(hnp.arrays(np.int64, SHAPES, elements=st.integers(0, 2)))
def test_what_is_not_zero_is_found(data: np.ndarray) -> None:
    found = one("NonZero", data)
    assume(found.size)
    mask = one(
        "ScatterNDUpdate", np.zeros_like(data), found.T.copy(), np.ones(found.shape[1], np.int64)
    )
    same(mask, (data != 0).astype(np.int64))


@LAW
@given(
    hnp.arrays(
        np.int64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.integers(0, 5)
    )
)
def test_one_hot_is_read_back_by_the_greatest(indices: np.ndarray) -> None:
    hot = one("OneHot", indices, np.array(6), np.float32(1), np.float32(0), axis=-1)
    _, back = several(
        "TopK", hot, np.array(1), axis=-1, mode="max", sort="none", index_element_type="i64"
    )
    same(back.reshape(indices.shape), indices)
    assert hot.sum() == math.prod(indices.shape)
