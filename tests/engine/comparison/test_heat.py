"""The picture of a drift: rows, columns, the largest error of each cell, and where it is."""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.comparison import (
    OUTSIDE,
    Spot,
    heat_of_loops,
    heat_of_values,
    loops,
    operands,
    spot_of,
)
from loopscope.ir.model import Model


def two_loops() -> Model:
    graph = builder.Graph("two loops")
    x = graph.parameter("x", "f32", [2])
    first = builder.for_loop(5, lambda i, a: [a * 1.7], [x], name="first")[0]
    second = builder.for_loop(
        3,
        lambda i, a: [builder.for_loop(2, lambda j, b: [b + 0.3], [a], name="inner")[0]],
        [first],
        name="second",
    )[0]
    return graph.model({"y": second * 2.0})


@pytest.fixture(scope="module")
def runs() -> tuple[loopscope.Debugger, loopscope.Debugger]:
    model, inputs = two_loops(), {"x": np.array([0.1, 0.7], np.float32)}
    made = [
        loopscope.Debugger(
            model, inputs, rounding=rounding, record=loopscope.Record(everything=True)
        )
        for rounding in (None, {"*": "bf16"})
    ]
    for one in made:
        one.run()
    return made[0], made[1]


def test_loops_by_iterations(runs: tuple[loopscope.Debugger, loopscope.Debugger]) -> None:
    found = loopscope.drift(*runs)
    assert loops(found) == ("main/first/body", "main/second/body", "main/second/body/inner/body")
    heat = heat_of_loops(found, 128)
    assert {row.address for row in heat.rows} == {OUTSIDE, *loops(found)}
    assert heat.columns == tuple((number, number + 1) for number in range(5))
    first = next(row for row in heat.rows if row.address == "main/first/body")
    for number, cell in enumerate(first.cells):
        mine = [pair for pair in found.pairs if pair.one.startswith("main/first/body/")]
        assert cell is not None
        assert cell.error == max(float(pair.deviations.relative[number]) for pair in mine)
        moment = found.pairs[cell.spot.pair].moment(runs[0], cell.spot.row)
        assert (moment.iteration, moment.relative) == (number, cell.error)
        assert moment.address.startswith(f"main/first[{number}]/body/")


def test_executions_of_an_inner_loop_fall_together(
    runs: tuple[loopscope.Debugger, loopscope.Debugger],
) -> None:
    found = loopscope.drift(*runs)
    heat = heat_of_values(found, "main/second/body/inner/body", 128)
    assert len(heat.columns) == 2
    for row in heat.rows:
        pair = next(one for one in found.pairs if one.one == row.address)
        for number, cell in enumerate(row.cells):
            assert cell is not None
            assert cell.error == pair.deviations.relative[pair.rows.iteration == number].max()


def test_many_iterations_share_columns(runs: tuple[loopscope.Debugger, loopscope.Debugger]) -> None:
    found = loopscope.drift(*runs)
    heat = heat_of_values(found, "main/first/body", 2)
    assert heat.columns == ((0, 3), (3, 5))
    row = heat.rows[0]
    pair = next(one for one in found.pairs if one.one == row.address)
    assert [cell.error for cell in row.cells if cell] == [
        pair.deviations.relative[:3].max(),
        pair.deviations.relative[3:].max(),
    ]


def test_where_it_begins_and_what_that_was_computed_from(
    runs: tuple[loopscope.Debugger, loopscope.Debugger],
) -> None:
    found = loopscope.drift(*runs, tolerance=1e-4)
    assert found.first is not None
    assert found.first.first is not None
    spot = spot_of(found, found.first, found.first.first)
    assert found.pairs[spot.pair].moment(runs[0], spot.row) == found.first.first
    product = next(
        number
        for number, pair in enumerate(found.pairs)
        if pair.one.startswith("main/first/body/Multiply")
    )
    ((name, error),) = operands(found, Spot(product, 2))
    carried = next(pair for pair in found.pairs if pair.one == f"main/first/body/{name}")
    assert error == carried.deviations.relative[2]
    assert (
        found.pairs[product].address_beside(runs[1], 2)
        == found.pairs[product].moment(runs[0], 2).address
    )
