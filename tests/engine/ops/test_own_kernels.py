"""Kernels of users against their shape functions, stepping and in generated code; versions of
one name; ``verify``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.ir.element_type import ANY_TYPE, INDEX_TYPES
from loopscope.ir.shape import PartialShape
from loopscope.ops import Attribute, Known, Operation, custom, same
from loopscope.ops.catalogue import CATALOGUE


@pytest.fixture(autouse=True)
def own_catalogue() -> Iterator[None]:
    before = CATALOGUE.categories
    yield
    CATALOGUE.categories = before
    CATALOGUE.install(())


def own(kernel: Any, **fields: Any) -> Operation:
    return Operation(
        **{
            "name": "Mine",
            "version": 1,
            "opsets": (1, 1),
            "opset": "mine",
            "page": "",
            "kernel": kernel,
            "infer": same,
            **fields,
        }
    )


def doubled_from(turn: int, late: Callable[[np.ndarray], Any]) -> Callable[..., Any]:
    """A kernel that is right at first."""
    calls = [0]

    def kernel(x: np.ndarray, /) -> Any:
        calls[0] += 1
        return x + x if calls[0] <= turn else late(x)

    return kernel


LATE: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "another type": (
        lambda x: x.astype(np.float64),
        "its shape function inferred f32[2], its kernel returned f64[2]",
    ),
    "another shape": (
        lambda x: x[:1],
        "its shape function inferred f32[2], its kernel returned f32[1]",
    ),
    "another rank": (
        lambda x: x[0],
        "its shape function inferred f32[2], its kernel returned f32[]",
    ),
    "no element type": (
        lambda x: x.astype(np.complex64),
        "its kernel returned an array of complex64, which is not an element type",
    ),
    "nothing": (lambda x: None, "its kernel returned nothing, expected an array"),
    "a list": (lambda x: [x, x], "its kernel returned a sequence of 2, expected an array"),
}


@pytest.mark.parametrize("turn", [0, 3, 200], ids=["at once", "stepping", "in generated code"])
@pytest.mark.parametrize(("late", "says"), LATE.values(), ids=LATE.keys())
def test_a_kernel_that_disagrees_with_its_shape_function_is_told_where_it_happens(
    turn: int, late: Any, says: str
) -> None:
    """Adding a new Op: the shape function and the kernel describe one operation. The error was
    in another operation, or nowhere.
    """
    custom.install([own(doubled_from(turn, late))])
    graph = builder.Graph("late")
    x = graph.parameter("x", "f32", [2])
    _, y = builder.while_loop(
        lambda i, v: i < 400, lambda i, v: (i + 1, builder.ops.mine(v)), (0, x), name="loop"
    )
    with pytest.raises(loopscope.RunStopped) as stopped:
        loopscope.run(graph.model({"y": y}), [np.zeros(2, np.float32)])
    told = str(stopped.value)
    assert says in told
    assert "Mine-1 failed" in told
    assert f"[{turn}]" in told, told


def test_both_answers_are_told_of_each_output() -> None:
    def halves(x: np.ndarray, /) -> tuple[np.ndarray, np.ndarray]:
        return x[:1], x[:1]

    def rule(inputs: Any, attributes: Any, /) -> tuple[Known, ...]:
        return (
            Known(inputs[0].element_type, PartialShape.of([1])),
            Known(inputs[0].element_type, PartialShape.of([None, 2])),
        )

    custom.install([own(halves, outputs=2, infer=rule)])
    x = builder.Graph("two").parameter("x", "f32", [2])
    one, two = builder.ops.mine(x)
    with pytest.raises(
        loopscope.RunStopped,
        match=re.escape(
            "output 1: its shape function inferred f32[?,2], its kernel returned f32[1]"
        ),
    ):
        loopscope.run(x.graph.model([one, two]), [np.zeros(2, np.float32)])


def test_a_shape_that_follows_from_a_value_is_held_against_it() -> None:
    def rule(inputs: Any, attributes: Any, /) -> tuple[Known, ...]:
        value = inputs[1].value
        return (
            Known(inputs[0].element_type, PartialShape.of([None if value is None else int(value)])),
        )

    custom.install([own(lambda x, n, /: x[: int(n) + (n > 2)], inputs=(2, 2), infer=rule)])
    graph = builder.Graph("first")
    model = graph.model(
        builder.ops.mine(graph.parameter("x", "f32", [9]), graph.parameter("n", "i64", []))
    )
    assert loopscope.run(model, [np.zeros(9, np.float32), 2]).outputs[0].shape == (2,)
    with pytest.raises(
        loopscope.RunStopped, match=re.escape("inferred f32[3], its kernel returned f32[4]")
    ):
        loopscope.run(model, [np.zeros(9, np.float32), 3])


def test_two_element_types_where_one_is_meant_are_refused() -> None:
    mine = own(lambda x, y, /: x, inputs=(2, 2))
    custom.install([mine])
    graph = builder.Graph("types")
    x, n = graph.parameter("x", "f32", [2]), graph.parameter("n", "i64", [2])
    with pytest.raises(
        loopscope.BuildError,
        match=r"mine\(\): input 1 is i64, the inputs before it are f32: element types must be equal",
    ):
        builder.ops.mine(x, n)
    with pytest.raises(loopscope.EngineError, match="input 1 is i64"):
        custom.verify(mine, [1.0], [1])
    assert custom.verify(
        own(lambda x, y, /: x, inputs=(2, 2), types=(ANY_TYPE - INDEX_TYPES, INDEX_TYPES)),
        [1.0],
        [1],
    ).tolist() == [1]


def test_two_versions_of_one_name_need_two_opset_texts() -> None:
    """Version 2 computed version 1's numbers."""
    one, two = own(lambda x, /: x + 1), own(lambda x, /: x + 2, version=2)
    told = "operation Mine-2 is in version 'mine', and so is Mine-1, so a layer could mean either: give each version an `opset` of its own"
    with pytest.raises(loopscope.EngineError, match=re.escape(told)):
        custom.install([two, one])
    custom.install([one])
    for replace in (False, True):
        with pytest.raises(loopscope.EngineError, match="and so is Mine-1"):
            custom.install([two], replace=replace)
    custom.install([own(lambda x, /: x + 2, version=2, opset="mine 2")])
    x = builder.Graph("versions").parameter("x", "f32", [])
    model = x.graph.model([builder.ops.version("Mine", 1)(x), builder.ops.version("Mine", 2)(x)])
    assert [float(one) for one in loopscope.run(model, [0.0]).outputs] == [1, 2]


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({}, "operation Mine-1 is declared twice"),
        ({"name": "Mi_Ne"}, "operation Mine-1 differs from Mi_Ne by underscores alone"),
        ({"version": 2, "opset": "", "opsets": (3, 4)}, ""),
    ],
)
def test_operations_that_are_installed_together(other: dict[str, Any], says: str) -> None:
    both = [own(lambda x, /: x), own(lambda x, /: x, **other)]
    if says:
        with pytest.raises(loopscope.EngineError, match=re.escape(says)):
            custom.install(both)
        assert not CATALOGUE.versions("Mine")
    else:
        custom.install(both)


def test_an_operation_that_takes_a_name_of_openvino_in_one_of_its_opsets_is_told_even_when_replacing() -> (
    None
):
    with pytest.raises(
        loopscope.EngineError,
        match="operation Sigmoid-9 is in opset1 to opset16, and so is Sigmoid-1",
    ):
        custom.install(
            [own(lambda x, /: x, name="Sigmoid", version=9, opset="", opsets=(1, 16))], replace=True
        )


def zero_out(to_zero: np.ndarray, /, *, preserve_index: int) -> np.ndarray:
    """Keeps one element and zeroes the rest."""
    if preserve_index >= to_zero.shape[0]:
        raise ValueError("preserve_index out of range")
    zeroed = np.zeros_like(to_zero)
    zeroed[preserve_index] = to_zero[preserve_index]
    return zeroed


ZERO_OUT = own(zero_out, attributes=(Attribute("preserve_index", "int", default=0, least=0),))


def test_verify_gives_what_the_kernel_gives() -> None:
    """Adding a new Op, "Verify it works": a test of one's own, in one line."""
    assert custom.verify(ZERO_OUT, [5, 4, 3, 2, 1]).tolist() == [5, 0, 0, 0, 0]
    assert custom.verify(ZERO_OUT, [5, 4, 3, 2, 1], preserve_index=3).tolist() == [0, 0, 0, 2, 0]
    assert custom.verify(ZERO_OUT, [0.5]).dtype == np.float32


def writes(x: np.ndarray, /) -> np.ndarray:
    x[0] = 7
    return x.copy()


def changing() -> Callable[..., Any]:
    turns = iter(range(100))
    return lambda x, /: x + next(turns)


def by_value(inputs: Any, attributes: Any, /) -> tuple[Known, ...]:
    return (Known(inputs[0].element_type, PartialShape.of(inputs[0].value.shape)),)


def wrong_value(inputs: Any, attributes: Any, /) -> tuple[Known, ...]:
    return (Known.of(np.array([9.0], np.float32)),)


VERIFIED: dict[str, tuple[Operation, dict[str, Any], str]] = {
    "a kernel's own words": (
        ZERO_OUT,
        {"preserve_index": 9},
        "operation Mine-1 failed: preserve_index out of range",
    ),
    "a constraint": (
        ZERO_OUT,
        {"preserve_index": -1},
        "attribute 'preserve_index' is '-1', expected an integer of at least 0",
    ),
    "an unknown attribute": (
        ZERO_OUT,
        {"index": 1},
        "has no attribute 'index', only preserve_index",
    ),
    "a declaration": (own(None), {}, "operation Mine-1 has no kernel"),
    "too many inputs": (
        own(lambda x, y, /: x, inputs=(2, 2)),
        {},
        "takes 2 inputs (x, y), and gets 1",
    ),
    "an input's type": (
        own(lambda x, /: x, types=(INDEX_TYPES,)),
        {},
        "gets f32 as input 0, expected i32, i64",
    ),
    "writing": (own(writes), {}, "has a kernel that writes into input 0"),
    "two answers": (own(changing()), {}, "has a kernel that gave two answers for the same inputs"),
    "nothing": (
        own(lambda x, /: None),
        {},
        "has a kernel that returned nothing, expected an array",
    ),
    "a list": (
        own(lambda x, /: [x]),
        {},
        "has a kernel that returned a sequence of 1, expected an array",
    ),
    "a list for several": (
        own(lambda x, /: [x], outputs=2),
        {},
        "returned a sequence of 1, expected a tuple of arrays",
    ),
    "too few": (
        own(lambda x, /: (x,), outputs=2),
        {},
        "has a kernel that returned 1 outputs, expected 2",
    ),
    "no element type": (
        own(lambda x, /: x.astype(complex)),
        {},
        "an array of complex128, which is not an element type",
    ),
    "another type": (
        own(lambda x, /: x.astype(np.int8)),
        {},
        "disagrees with itself in output 0: knowing types, shapes and values of the inputs, its shape function inferred f32[1]",
    ),
    "a rule that needs values": (
        own(lambda x, /: x, infer=by_value),
        {},
        "has a shape function that fails when it knows types and shapes of the inputs: 'NoneType' object has no attribute 'shape'",
    ),
    "another value": (
        own(lambda x, /: x, infer=wrong_value),
        {},
        "its shape function inferred the value [9.], its kernel returned [1.]",
    ),
    "another number of outputs": (
        own(lambda x, /: (x, x), outputs=2),
        {},
        "has a shape function that infers 1 outputs, and its kernel returned 2",
    ),
}


@pytest.mark.parametrize(
    ("operation", "attributes", "says"), VERIFIED.values(), ids=VERIFIED.keys()
)
def test_verify_says_what_is_wrong(
    operation: Operation, attributes: dict[str, Any], says: str
) -> None:
    with pytest.raises(loopscope.EngineError, match=re.escape(says)):
        custom.verify(operation, [1.0], **attributes)


def test_verify_takes_random_kernels_and_inputs_that_are_left_out() -> None:
    draws = own(lambda x, /, *, state: (x, state + 1), stateful=True)
    assert custom.verify(draws, [1.0]).tolist() == [1]
    either = own(lambda x, y=None, /: x if y is None else y, inputs=(1, 2))
    assert (
        custom.verify(either, [1.0]).tolist() == custom.verify(either, [1.0], None).tolist() == [1]
    )
