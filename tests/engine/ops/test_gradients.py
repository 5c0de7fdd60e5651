"""Every operation's derivative against central differences in f64: a row for each operation,
attribute variant and broadcast.

Each row is checked with the shapes known. Every fourth row is checked with the lengths unknown, and
every fourth as the gradient of its gradient; ``make search`` checks all rows in all three ways.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder, finite_differences
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.derivative import flat
from tests.draws import share
from tests.engine.ops.gradient_rows import ROWS
from tests.engine.ops.gradient_rows.row import Row

pytestmark = pytest.mark.slow
"""Long tables: together they take as long as all the other fast tests."""


@pytest.fixture
def few_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move a dozen elements of each input, where another test of the same row moves them all."""
    monkeypatch.setattr(finite_differences, "_MAX_ELEMENTS", 12)


def _arrays(row: Row) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    return [
        random.uniform(*row.within, one) if isinstance(one, tuple) else np.asarray(one)
        for one in row.inputs
    ]


def _of_node(row: Row, arrays: list[np.ndarray]) -> Callable[..., Any]:
    """The node as a function of its floats; whole numbers and booleans are constants in it."""

    def function(*floats: builder.Tensor) -> Any:
        remaining = iter(floats)
        given = [next(remaining) if array.dtype.kind == "f" else array for array in arrays]
        graph = floats[0].graph
        operation = next(
            (one for one in CATALOGUE.versions(row.type) if one.version == row.version), row.type
        )
        outputs = graph.apply(operation, given, row.attributes)
        return outputs if row.output is None else outputs[row.output]

    return function


def _floats(arrays: list[np.ndarray]) -> list[np.ndarray]:
    return [array for array in arrays if array.dtype.kind == "f"]


def _real(given: Any) -> list[builder.Tensor]:
    outputs = given if isinstance(given, tuple) else (given,)
    return [one for one in outputs if one.element_type is not None and one.element_type.is_float]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_derivative_is_that_of_central_differences(row: Row) -> None:
    arrays = _arrays(row)
    found = loopscope.check_gradient(_of_node(row, arrays), _floats(arrays))
    assert found.ok, found
    assert found.compared > 0


@pytest.mark.slow
@pytest.mark.usefixtures("few_elements")
@pytest.mark.parametrize(
    "row", share([row for row in ROWS if row.unknown_lengths], parts=4), ids=lambda row: row.name
)
def test_the_derivative_is_the_same_when_lengths_are_not_known(row: Row) -> None:
    arrays = _arrays(row)
    graph = builder.Graph("unknown lengths")
    floats = [
        graph.parameter(f"x{number}", "f64", [None] * array.ndim)
        for number, array in enumerate(_floats(arrays))
    ]
    outputs = _real(_of_node(row, arrays)(*floats))
    found = loopscope.check_gradient(
        graph.model({f"y{number}": one for number, one in enumerate(outputs)}), _floats(arrays)
    )
    assert found.ok, found


@pytest.mark.slow
@pytest.mark.usefixtures("few_elements")
@pytest.mark.parametrize(
    "row", share([row for row in ROWS if row.second], first=1, parts=4), ids=lambda row: row.name
)
def test_the_derivative_has_a_derivative(row: Row) -> None:
    arrays = _arrays(row)
    node = _of_node(row, arrays)

    def first(*floats: builder.Tensor) -> Any:
        outputs = _real(node(*floats))
        # Squares, so that what is linear has a second derivative too.
        return builder.gradients([one * one for one in outputs], list(floats))

    found = loopscope.check_gradient(first, _floats(arrays))
    assert found.ok, found


def test_every_rule_has_a_row() -> None:
    checked = {row.type for row in ROWS}
    assert {
        operation.name for operation in CATALOGUE if operation.gradient not in (None, flat)
    } - checked == set()
