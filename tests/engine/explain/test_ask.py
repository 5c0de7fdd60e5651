"""Expressions over iterations: shifts, elements, what is missing, and one sentence for what is
wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import loopscope
from loopscope.errors import ExpressionError
from loopscope.explain.ask import ask
from tests.engine.explain.runs import begun, finished

LOOP = "main/for_each_year"
GROWING = "main/while_below_limit"


def balances() -> list[float]:
    debugger = finished("for_loop")
    return [float(debugger.value(f"{LOOP}[{iteration}]/body/balance")) for iteration in range(10)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("balance", lambda b, i: b[i]),
        ("balance[i]", lambda b, i: b[i]),
        ("balance[i] - balance[i-1]", lambda b, i: b[i] - b[i - 1] if i else None),
        ("balance[i + 1] - balance", lambda b, i: b[i + 1] - b[i] if i < 9 else None),
        ("balance / balance[i-2]", lambda b, i: b[i] / b[i - 2] if i > 1 else None),
        ("i * 2", lambda b, i: i * 2),
        ("iteration", lambda b, i: i),
        ("years - i", lambda b, i: 10 - i),
        ("`balance`[i-1] * 0 + 1", lambda b, i: 1 if i else None),
        ("maximum(balance, 1200)", lambda b, i: max(b[i], 1200)),
    ],
)
def test_one_answer_for_each_iteration(
    text: str, expected: Callable[[list[float], int], float | None]
) -> None:
    known = balances()
    answer = ask(finished("for_loop"), LOOP, text)
    assert answer.iterations == tuple(range(10))
    for iteration, number in enumerate(answer.numbers):
        wanted = expected(known, iteration)
        assert number is None if wanted is None else number == pytest.approx(wanted, rel=1e-5)


def test_elements_are_no_iterations() -> None:
    answer = ask(finished("growing_sequence"), GROWING, "sequence[0]")
    assert answer.numbers == (1.0,) * 8
    answer = ask(finished("growing_sequence"), GROWING, "sequence[i-1][-1]")
    assert answer.values[0] is None
    assert answer.numbers[1:] == (1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0)


def test_tensors_are_answers_too() -> None:
    answer = ask(finished("growing_sequence"), GROWING, "sequence")
    assert [np.shape(value) for value in answer.values] == [(length,) for length in range(2, 10)]
    assert set(answer.numbers) == {None}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "balance +",
        "nothing_like_it",
        "open(balance)",
        "__import__",
        "balance[i-99]",
        "balance.mean()",
        "main/none/x",
    ],
)
def test_what_is_wrong_is_one_sentence(text: str) -> None:
    with pytest.raises(loopscope.EngineError) as caught:
        ask(finished("for_loop"), LOOP, text)
    assert "\n" not in str(caught.value)


def test_what_is_wrong_in_nearly_all_iterations_is_told() -> None:
    with pytest.raises(ExpressionError) as caught:
        ask(finished("growing_sequence"), GROWING, "sequence[i] - sequence[i-1]")
    assert "iteration before the first" not in str(caught.value)


def test_a_loop_that_never_ran_has_no_answer() -> None:
    debugger = finished("zero_iterations", "no_trips")
    (record,) = debugger.control_flow
    assert record.iterations == 0
    with pytest.raises(ExpressionError, match="no iteration"):
        ask(debugger, record.address, "i")


def test_what_has_not_run_yet_is_missing() -> None:
    debugger = begun("growing_sequence")
    debugger.seek(f"{GROWING}[2]/body/following")
    answer = ask(debugger, GROWING, "following")
    assert [value is None for value in answer.values] == [False, False, True]
    assert "not run yet" in answer.reason


def test_a_long_run_is_answered_in_evenly_chosen_iterations() -> None:
    debugger = loopscope.Debugger(
        begun("for_loop").model,
        {"balance": np.float32(1), "growth": np.float32(1), "years": np.int64(30_000)},
    )
    debugger.run()
    answer = ask(debugger, LOOP, "balance[i] - balance[i-1]", limit=100)
    assert (len(answer.iterations), answer.total) == (100, 30_000)
    assert answer.numbers[1:] == (0.0,) * 99
