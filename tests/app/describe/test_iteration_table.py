"""The table of a loop's iterations: branches as they were taken, also where there are many."""

from __future__ import annotations

import time

import pytest

from loopscope_app.describe.iteration_table import loop_columns, rows
from loopscope_app.describe.node_index import places
from tests.engine.explain.runs import begun, finished
from tests.engine.timeline.test_vectorised import chained


def test_branches_are_those_that_were_taken() -> None:
    debugger = finished("collatz")
    columns = loop_columns(places(debugger.model)["main/while_not_one"])
    assert [one.title for one in columns.branches] == ["if_even"]
    table = rows(debugger, "main/while_not_one", columns, range(7))
    taken = [
        debugger.record(f"main/while_not_one[{iteration}]/body/if_even") for iteration in range(7)
    ]
    assert [row.branches for row in table] == [(one.branch,) for one in taken if one is not None]
    debugger.seek("main/while_not_one[0]/body/if_even")
    assert (
        rows(debugger, "main/while_not_one", columns, range(1))[0].branches == table[0].branches
    )  # what ran stays known
    debugger = begun("collatz")
    debugger.seek("main/while_not_one[0]/body/if_even")
    (row,) = rows(debugger, "main/while_not_one", columns, range(1))
    assert (row.branches, row.complete) == (("",), False)


def test_titles_leave_out_the_scope_that_all_columns_share() -> None:
    debugger = begun("hybrid_stack", "twelve_tokens")
    place = places(debugger.model)["main/layers.3%2Flinear_attn%2Ffor_each_token"]
    assert not any("/" in column.title for column in loop_columns(place).carried)


@pytest.mark.measured
def test_a_body_of_many_branches_has_its_table_at_once() -> None:
    debugger = chained(64, 30)
    columns = loop_columns(places(debugger.model)["main/for"])
    began = time.process_time()
    table = rows(debugger, "main/for", columns, range(30))
    assert (
        time.process_time() - began < 3
    )  # one by one from the conditions' values it is ten times as long
    assert [len(row.branches) for row in table] == [64] * 30
    assert all(row.complete for row in table)
