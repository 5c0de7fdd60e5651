"""The iteration matrix: rows, cells, what stands out, and the way to a cell's moment."""

from __future__ import annotations

import numpy as np
import pytest

import loopscope
from loopscope.errors import AddressError
from loopscope.explain.iteration_matrix import Matrix, MatrixRow, iteration_matrix, step_of_cell
from tests.engine.drafts import BOOL, F32, I64, Draft, loop
from tests.engine.explain.runs import begun, finished


def row(found: Matrix, name: str, role: str = "") -> MatrixRow:
    return next(one for one in found.rows if one.name == name and role in ("", one.role))


def test_every_cell_is_the_value_of_its_iteration() -> None:
    debugger = finished("growing_sequence")
    found = iteration_matrix(debugger, "main/while_below_limit")
    assert found.complete
    assert found.iterations == tuple(range(8))
    for one in found.rows:
        for iteration, cell in zip(found.iterations, one.cells, strict=True):
            assert cell is not None
            np.testing.assert_array_equal(
                cell.value, debugger.value(f"main/while_below_limit[{iteration}]/body/{one.label}")
            )


@pytest.mark.parametrize("iteration", [-1, 8, 2**40])
def test_there_is_no_cell_of_an_iteration_that_has_not_begun(iteration: int) -> None:
    debugger = finished("growing_sequence")
    found = iteration_matrix(debugger, "main/while_below_limit")
    with pytest.raises(
        AddressError, match=f"while_below_limit has 8 iterations: expected 0 to 7, got {iteration}"
    ):
        step_of_cell(debugger, found, found.rows[0], iteration)


def test_carried_values_come_first_and_roles_are_named() -> None:
    found = iteration_matrix(finished("growing_sequence"), "main/while_below_limit")
    assert [one.role for one in found.rows[:2]] == ["carried", "iteration"]
    assert row(found, "keep_going").role == "condition"
    assert row(found, "keep_going").first_change == 7


def test_branches_have_a_row() -> None:
    found = iteration_matrix(
        finished("collatz"),
        next(one.address for one in finished("collatz").control_flow if one.kind == "Loop"),
    )
    taken = [cell.value for cell in row(found, "if_even", "branch").cells if cell]
    assert taken == ["else", "then", "else", "then", "then", "then", "then"]


def test_many_iterations_become_evenly_chosen_columns() -> None:
    debugger = loopscope.Debugger(
        begun("for_loop").model,
        {"balance": np.float32(1), "growth": np.float32(1.01), "years": np.int64(5000)},
    )
    debugger.run()
    found = iteration_matrix(debugger, "main/for_each_year", most_columns=50)
    assert (len(found.iterations), found.total) == (50, 5000)
    assert (found.iterations[0], found.iterations[-1]) == (0, 4999)
    assert found.column_of(4998) == 48
    for iteration, cell in zip(found.iterations, row(found, "balance").cells, strict=True):
        assert cell is not None
        assert cell.value == debugger.value(f"main/for_each_year[{iteration}]/body/balance")


def test_what_has_not_run_yet_is_empty() -> None:
    debugger = begun("growing_sequence")
    debugger.seek("main/while_below_limit[2]/body/following")
    found = iteration_matrix(debugger, "main/while_below_limit")
    assert found.total == 3
    assert row(found, "following").cells[-1] is None
    assert row(found, "sequence").cells[-1] is not None


def test_an_iteration_on_its_way_hides_nothing_of_those_before() -> None:
    debugger = begun("collatz")
    debugger.seek("main/while_not_one[4]/body/keep_going")
    found = iteration_matrix(debugger, "main/while_not_one")
    assert found.total == 5
    assert row(found, "keep_going").cells[-1] is None
    for one in found.rows:
        for iteration, cell in zip(found.iterations[:-1], one.cells, strict=False):
            assert cell is not None
            if one.role != "branch":
                np.testing.assert_array_equal(
                    cell.value, debugger.value(f"main/while_not_one[{iteration}]/body/{one.label}")
                )


@pytest.mark.parametrize("name", ["sequence", "following", "keep_going"])
def test_a_cell_is_a_moment(name: str) -> None:
    debugger = finished("growing_sequence")
    found = iteration_matrix(debugger, "main/while_below_limit")
    debugger.seek(step_of_cell(debugger, found, row(found, name), 3))
    assert debugger.frames()[-1].iteration == 3
    assert (
        debugger.resolve(f"main/while_below_limit/body/{name}")
        == f"main/while_below_limit[3]/body/{name}"
    )


def test_numbers_that_are_none_are_seen_at_once() -> None:
    debugger = loopscope.Debugger(
        begun("diverging_training").model,
        {"weight": np.float32(1), "learning_rate": np.float32(1e30), "most_steps": 9},
    )
    debugger.run()
    found = iteration_matrix(debugger, next(one.address for one in debugger.control_flow))
    odd = [one.first_not_finite for one in found.rows if one.first_not_finite is not None]
    assert odd
    assert all(
        cell is None or cell.odd == (not np.isfinite(cell.value).all())
        for one in found.rows
        if one.role != "branch"
        for cell in one.cells
    )


def test_what_only_some_iterations_tell_is_told_as_such() -> None:
    """1,000 iterations of a matrix product, 200 of which are looked at: the first NaN among
    these is not called the first.
    """
    main, body = Draft(), Draft()
    x, state = main.parameter("x", F32, (1, 1)), body.parameter("state", F32, (1, 1))
    away = body.op(
        "MatMul",
        state,
        body.const([[1.0]]),
        transpose_a="false",
        transpose_b="false",
        name="product",
    )
    inverse = body.op(
        "Divide",
        body.const([[0.0]]),
        body.op("Maximum", body.op("Subtract", away, body.const([[500.0]])), body.const([[0.0]])),
    )
    out = body.result(body.op("Add", state, body.const([[1.0]]), name="next"))
    again = body.result(body.const(True, BOOL))
    carried = [(x, state, out)]
    main.result(
        loop(
            main,
            body,
            main.const(1000, I64),
            main.const(True, BOOL),
            again=again,
            carried=carried,
            last=[out],
            name="loop",
        )
    )
    debugger = loopscope.Debugger(main.model(), [np.array([[250.0]], np.float32)])
    debugger.run()
    found = iteration_matrix(debugger, "main/loop")
    product, divided = row(found, "product"), row(found, body.nodes[inverse.layer].name)
    assert (product.is_whole, product.first_not_finite) == (False, None)
    assert (divided.is_whole, divided.first_not_finite) == (False, 0)
    assert (row(found, "next").is_whole, row(found, "next").first_change) == (True, 1)
    assert divided.first_change is divided.fixed_from is None


@pytest.mark.parametrize(
    ("name", "loop"), [("collatz", "while_not_one"), ("bisection", "halve_the_interval")]
)
def test_cells_that_an_iteration_did_not_come_to_are_at_the_newest_step(
    name: str, loop: str
) -> None:
    debugger = begun(name)
    seen = 0
    while (
        debugger.state == "paused" and debugger.steps < 40
    ):  # a run that stops after each of its first steps
        debugger.step()
        if not any(one.address == f"main/{loop}" for one in debugger.control_flow):
            continue
        found = iteration_matrix(debugger, f"main/{loop}")
        for one in found.rows:
            for iteration, cell in zip(found.iterations, one.cells, strict=True):
                step = step_of_cell(debugger, found, one, iteration)
                assert step <= debugger.steps
                assert cell is not None or step == debugger.steps
                seen += cell is None
    assert seen
