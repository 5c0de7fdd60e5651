"""What Python and numpy say when inputs do not fit is told in words of ours; they themselves say
it here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.executor.machine.error_messages import in_plain_words
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Array

_X = np.ones((2, 3), np.float32)
SAID: list[tuple[Callable[[], object], str]] = [
    (lambda: _X + np.ones(4), "shapes [2,3] and [4] cannot be broadcast together"),
    (
        lambda: np.where(np.ones(2, bool), np.ones(3), np.ones(3)),
        "shapes [2] and [3] cannot be broadcast together",
    ),
    (lambda: np.broadcast_shapes((2,), (3,)), "shapes [2] and [3] cannot be broadcast together"),
    (lambda: np.copyto(np.ones(3), np.ones(2)), "a value of shape [2] does not fit into shape [3]"),
    (lambda: _X.reshape(4), "6 elements cannot take the shape [4]"),
    (lambda: _X.reshape(2, -1, 5), "6 elements cannot take the shape [2,-1,5]"),
    (
        lambda: np.concatenate([_X, _X.T]),
        "inputs 0 and 1 have lengths 3 and 2 along axis 1, expected equal ones",
    ),
    (lambda: _X @ _X, "a matrix product over lengths 3 and 2, expected equal ones"),
    (lambda: _X.sum(axis=-3), "axis -3 is out of range for rank 2"),
    (lambda: _X[:, 5], "index 5 is out of range for an axis of length 3"),
    (lambda: _X[0, 0, 0], "3 indices for a tensor of rank 2"),
    (lambda: _X.squeeze(0), "an axis to remove has a length other than 1"),
    (lambda: _X.transpose(0, 0), "the axes must be those of the input, each once"),
    (lambda: _X.transpose(0), "the axes must be those of the input, each once"),
    (lambda: _X.sum(axis=(0, 0)), "the axes must be those of the input, each once"),
    (lambda: np.ones((0, 3)).argmax(0), "an axis without elements has no maximum"),
    (lambda: np.ones(0).min(), "no elements have no minimum"),
    (lambda: np.asarray(1).shape[0], "an input has fewer dimensions than the operation requires"),
    (lambda: list(np.array(1)), "an input has fewer dimensions than the operation requires"),
    (lambda: None.size, "a required input is missing"),  # type: ignore[attr-defined]  # as a kernel reads what is left out
    (lambda: np.concatenate([_X, _X], 2**40), "a number is too large for the operation"),
    (lambda: bool(_X > 0), "an input has several elements, expected one"),
    (lambda: int(_X), "an input has several elements, expected one"),
    (lambda: int(np.float32(np.inf)), "a number is infinity, expected a whole one"),
    (lambda: 1 // int(np.int64(0)), "a divisor is 0"),
    (lambda: {1: 2}[7], "7 is not a value that the operation accepts"),
    (lambda: {"a": 2}["b"], "b is not a value that the operation accepts"),
]


@pytest.mark.parametrize(("compute", "told"), SAID, ids=[told for _, told in SAID])
def test_numpys_words(compute: Callable[[], object], told: str) -> None:
    with pytest.raises(
        (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
    ) as caught:
        compute()
    assert in_plain_words(str(caught.value)) == told


@pytest.mark.parametrize(
    "message", ["", "refused", "k is 5, the axis has 3 elements", "there is no (such) index"]
)
def test_other_words_stay(message: str) -> None:
    assert in_plain_words(message) == message


def test_a_cause_is_told_whole() -> None:
    """It carries the result: what was expected often stands at its end."""
    cause = f"{'the table has a row more, ' * 40}expected 7 rows"
    found = CATALOGUE.find("Abs", "opset1")
    assert found is not None

    def refused(_: Array, /) -> Array:
        raise ValueError(cause)

    graph = builder.Graph("refused")
    operation = replace(found, kernel=refused, symbol="", float_symbol="")
    debugger = loopscope.Debugger(
        graph.model(builder.ops.abs(graph.parameter("x", "f32", [2]))),
        [np.array([1, 2], np.float32)],
        catalogue=CATALOGUE.with_operations([operation], replace=True),
    )
    debugger.run()
    assert debugger.failure is not None
    assert cause in debugger.failure
