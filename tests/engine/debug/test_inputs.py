"""What a caller gives becomes exactly what the model's Parameters take, or a sentence that lists
the inputs.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import loopscope
from loopscope.debug.inputs import Inputs, bind
from loopscope.debug.result import as_public
from loopscope.errors import InputError
from loopscope.ir.element_type import ElementType
from loopscope.ir.replace import replace
from tests.engine.drafts import F32, I64, Draft


def model() -> loopscope.Model:
    """Inputs ``a`` (tensors ``a_1`` and ``alias``) f32[2] and ``b`` i64[]."""
    draft = Draft()
    a, b = draft.parameter("a", F32, (2,)), draft.parameter("b", I64, ())
    port = replace(draft.nodes[a.layer].outputs[0], names=("a_1", "alias"))
    draft.nodes[a.layer] = replace(draft.nodes[a.layer], outputs=(port,))
    draft.result(a)
    draft.result(b)
    return draft.model()


def typed(element_type: ElementType, shape: tuple[int, ...] = (2,)) -> loopscope.Model:
    draft = Draft()
    draft.result(draft.parameter("x", element_type, shape))
    return draft.model()


A, B = np.array([1, 2], np.float32), np.int64(3)


@pytest.mark.parametrize(
    "inputs",
    [
        {"a": A, "b": B},
        {"a_1": A, "b": B},
        {"alias": A, "b": B},
        {0: A, 1: B},
        {np.int64(0): A, "b": 3},
        [A, B],
        (A, B),
        [[1, 2], 3],
        [[1.0, 2.0], np.array(3)],
        {"a": A, "a_1": A, "alias": [1, 2], 0: A, "b": B},
        {"a": np.array([1, 2], np.float64), "b": np.int8(3)},
        {"a": np.array([1, 2]), "b": np.float32(3)},
    ],
)
def test_every_way_to_name_an_input(inputs: Inputs) -> None:
    a, b = bind(model(), inputs).values()
    assert (a.dtype.name, a.tolist(), b.dtype.name, b.tolist()) == ("float32", [1, 2], "int64", 3)


LISTED = r"the model's inputs are 0: 'a' f32\[2\], 1: 'b' i64\[\]"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"a": A}, f"no value is given for 'b'; {LISTED}"),
        (None, f"no value is given for 'a', 'b'; {LISTED}"),
        ([], "no value is given for 'a', 'b'"),
        ({"a": A, "b": B, "c": B}, f"there is no input 'c'; {LISTED}"),
        ({0: A, 1: B, 2: B}, f"there is no input 2; {LISTED}"),
        ({-1: A}, "there is no input -1"),
        ({True: A}, "there is no input True"),
        ({None: A}, "there is no input None"),
        ([A, B, B], f"3 inputs are given; {LISTED}"),
        ("ab", "got text"),
        (3, f"a mapping or a sequence of arrays, got int; {LISTED}"),
        (np.array(3), f"a mapping or a sequence of arrays, got ndarray; {LISTED}"),
        (
            {"a": A, "a_1": np.array([1, 3], np.float32), "b": B},
            "input 'a' is given twice with different values, as 'a' and as 'a_1'",
        ),
        (
            {"a": np.array([1, 2, 3], np.float32), "b": B},
            r"input 'a': expected shape \[2\], got \[3\]",
        ),
        ({"a": A, "b": [3]}, r"input 'b': expected shape \[\], got \[1\]"),
        ({"a": A, "b": 3.5}, "input 'b' takes i64: .*would lose values"),
        ({"a": A, "b": np.float64(2**53 * 2.0**20)}, "input 'b' takes i64: .*would lose values"),
        (
            {"a": np.array([0.1, 2], np.float64), "b": B},
            "input 'a' takes f32: the cast from float64 would lose values",
        ),
        (
            {"a": A, "b": np.uint32(0x7F800001).view(np.float32)},
            "input 'b' takes i64: .*would lose values",
        ),  # a signalling NaN
        ({"a": np.array([2**24 + 1, 0]), "b": B}, "input 'a' takes f32: .*would lose values"),
        ({"a": ["1", "2"], "b": B}, "input 'a' takes f32: text is not a number"),
        ({"a": A, "b": None}, "input 'b' takes i64: NoneType is not a number"),
        ({"a": A, "b": 2**70}, "input 'b' takes i64: a whole number needs more than 64 bits"),
        ({"a": [[1, 2], [3]], "b": B}, "input 'a' takes f32"),
        ({"a": A, "b": object()}, "input 'b' takes i64"),
        ({"a": A, "b": np.complex64(1)}, "input 'b' takes i64"),
        ({"a": A, "b": 2**64}, "input 'b' takes i64"),
    ],
)
def test_what_does_not_fit_is_said_in_words(inputs: Inputs, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bind(model(), inputs)


def test_a_name_that_two_inputs_share_is_given_by_position() -> None:
    draft = Draft()
    for _ in range(2):
        draft.result(draft.parameter("same", F32, ()))
    two = draft.model()
    with pytest.raises(InputError, match="'same' means 2 inputs: give them by position"):
        bind(two, {"same": 1.0})
    assert [value.item() for value in bind(two, {0: 1.0, 1: 2.0}).values()] == [1, 2]
    both: dict[str | int, object] = {0: 1.0, 1: 2.0, "same": np.float32(2)}
    assert [value.item() for value in bind(two, both).values()] == [1, 2]


@pytest.mark.timeout(20)
def test_ten_thousand_inputs_are_bound_in_linear_time() -> None:
    draft = Draft()
    for number in range(10_000):
        draft.result(draft.parameter(f"x{number}", F32, ()))
    many = draft.model()
    assert len(bind(many, {one.name: np.float32(1) for one in many.inputs})) == 10_000


def test_python_floats_are_rounded_as_numpy_rounds_them() -> None:
    (value,) = bind(typed(ElementType.F32), [[0.1, 1e-50]]).values()
    assert value.tolist() == [float(np.float32(0.1)), 0.0]


@pytest.mark.parametrize(
    ("element_type", "given", "stored"),
    [
        (ElementType.F16, np.array([1, 0.5], np.float32), np.array([1, 0.5], np.float16)),
        (ElementType.BF16, np.array([1, 0.5], np.float32), np.array([1, 0.5], ml_dtypes.bfloat16)),
        (
            ElementType.BF16,
            np.array([1, 0.5], ml_dtypes.bfloat16),
            np.array([1, 0.5], ml_dtypes.bfloat16),
        ),
        (
            ElementType.F8E4M3,
            np.array([1, 448], np.float32),
            np.array([1, 448], ElementType.F8E4M3.dtype),
        ),
        (
            ElementType.F8E5M2,
            np.array([1, -2], np.float32),
            np.array([1, -2], ElementType.F8E5M2.dtype),
        ),
        (
            ElementType.F4E2M1,
            np.array([6, -0.5], np.float32),
            np.array([6, -0.5], ElementType.F4E2M1.dtype),
        ),
        (ElementType.I4, np.array([-8, 7], np.int8), np.array([-8, 7], ElementType.I4.dtype)),
        (ElementType.U4, np.array([0, 15], np.uint8), np.array([0, 15], ElementType.U4.dtype)),
        (ElementType.U2, np.array([0, 3], np.uint8), np.array([0, 3], ElementType.U2.dtype)),
        (
            ElementType.U1,
            np.array([0, 1], np.uint8),
            np.array([0, 1], np.uint8).view(ElementType.U1.dtype),
        ),
        (
            ElementType.U3,
            np.array([0, 7], np.uint8),
            np.array([0, 7], np.uint8).view(ElementType.U3.dtype),
        ),
        (ElementType.BOOLEAN, [True, False], np.array([True, False])),
        (ElementType.BOOLEAN, np.array([1, 0], np.int64), np.array([True, False])),
        (ElementType.STRING, np.array(["a", "bc"]), np.array(["a", "bc"], object)),
        (ElementType.STRING, np.array(["a", "bc"], object), np.array(["a", "bc"], object)),
        (ElementType.STRING, [b"a", b"b\xc3\xa4"], np.array(["a", "bä"], object)),
        (ElementType.U64, [0, 2**64 - 1], np.array([0, 2**64 - 1], np.uint64)),
    ],
)
def test_carriers_of_types_that_numpy_lacks(
    element_type: ElementType, given: object, stored: np.ndarray
) -> None:
    (value,) = bind(typed(element_type), [given]).values()
    assert value.dtype == element_type.dtype == stored.dtype
    assert value.tolist() == stored.tolist()


@pytest.mark.parametrize(
    ("element_type", "given"),
    [
        (ElementType.F16, np.array([1, 1e6], np.float32)),
        (ElementType.BF16, np.array([1, 1.001], np.float32)),
        (ElementType.F8E4M3, np.array([1, 1000], np.float32)),
        (ElementType.I4, np.array([8, 0], np.int8)),
        (ElementType.U4, np.array([-1, 0], np.int8)),
        (ElementType.U1, np.array([2, 0], np.uint8)),
        (ElementType.U3, np.array([8, 0], np.uint8)),
        (ElementType.BOOLEAN, np.array([2, 0], np.int64)),
        (ElementType.U8, np.array([256, 0], np.int64)),
        (ElementType.U8, [-1, 0]),
        (ElementType.I32, np.array([2**31, 0], np.int64)),
        (ElementType.I64, np.array([2**63, 0], np.uint64)),
        (ElementType.I64, np.array([np.nan, 0], np.float32)),
        (ElementType.I64, np.array([np.inf, 0], np.float64)),
        (ElementType.STRING, np.array([1, 2], np.float32)),
        (ElementType.STRING, np.array(["a", 1], object)),
        (ElementType.NF4, np.array([1, 2], np.uint8)),
    ],
)
def test_casts_that_lose_values_name_the_input(
    element_type: ElementType, given: list[int] | np.ndarray
) -> None:
    with pytest.raises(InputError, match="input 'x' takes"):
        bind(typed(element_type), [given])


def test_nan_and_the_sign_of_zero_pass() -> None:
    (value,) = bind(typed(ElementType.F32), [np.array([np.nan, -0.0], np.float64)]).values()
    assert np.isnan(value[0])
    assert np.signbit(value[1])


def test_an_input_is_neither_changed_nor_shared() -> None:
    """What the caller does to an array after the run began does not reach the run."""
    draft = Draft()
    x = draft.parameter("x", F32, (2,))
    draft.result(draft.op("Add", x, x))
    given = np.array([1, 2], np.float32)
    debugger = loopscope.Debugger(draft.model(), [given])
    given[:] = 9
    debugger.run()
    assert debugger.result.outputs[0].tolist() == [2, 4]
    assert given.tolist() == [9, 9]
    result = debugger.result.outputs[0]
    result += 1
    assert debugger.value("main/Add_1").tolist() == [2, 4]


def test_dynamic_shapes_take_what_fits() -> None:
    model = typed(ElementType.F32, (-1,))
    assert loopscope.run(model, [[1.0, 2.0, 3.0]]).outputs[0].tolist() == [1, 2, 3]
    assert loopscope.run(model, [np.zeros(0, np.float32)]).outputs[0].shape == (0,)


@pytest.mark.parametrize("element_type", ElementType)
def test_a_single_element_of_every_type_leaves_the_engine_as_an_array(
    element_type: ElementType,
) -> None:
    """Of nf4 numpy made a scalar, to which no flags can be set."""
    left = as_public(np.zeros((), element_type.dtype))
    assert left.shape == ()
    assert not left.flags.writeable
