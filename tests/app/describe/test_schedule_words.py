"""What is said of a schedule: its length, what the window and more workers gain, and who got
ahead.
"""

from __future__ import annotations

import pytest

from loopscope.explain import OperationExecution, dependences, schedule
from loopscope_app.describe.schedule_words import cut, sentences
from tests.engine.explain.runs import finished

GAINS_NOTHING = "More workers save nothing: each operation waits for the one before."
NEITHER_GAINS = (
    "Overlapping iterations saves nothing here; neither do more workers: "
    "each operation waits for the one before."
)
SAID = {
    ("counter_ahead", "main/while_below_n", 10, 1): [
        "**140 ticks** for 60 operations of 20 iterations: one worker runs one operation at a time, for any window.",
        "With enough workers: 100 ticks.",
        "`i` and `x` go side by side.",
    ],
    ("counter_ahead", "main/while_below_n", 10, 2): [
        "**100 ticks** for 60 operations of 20 iterations, 1.4 times as fast as one operation at a time.",
        NEITHER_GAINS,
        "`i` gets up to 9 iterations ahead of `x`, never behind.",
    ],
    ("records_scan", "main/each_row", 10, 4): [
        "**8 ticks** for 30 operations of 5 iterations, 3.8 times as fast as one operation at a time.",
        "One iteration at a time would take 20: this window makes it 2.5 times as fast as that.",
        GAINS_NOTHING,
    ],
    ("records_scan", "main/each_row", 1, 4): [
        "**20 ticks** for 30 operations of 5 iterations, 1.5 times as fast as one operation at a time.",
        "More workers save nothing, a wider window does.",
    ],
}


@pytest.mark.parametrize("case", SAID, ids=str)
def test_sentences(case: tuple[str, str, int, int]) -> None:
    name, address, window, workers = case
    found = dependences(finished(name), address)
    assert list(sentences(found, schedule(found, window, workers), window, workers)) == SAID[case]


@pytest.mark.parametrize(
    ("window", "ticks", "lead"),
    [
        (10, 1, "`i` and `x` go side by side."),
        (3, 5, "`i` gets up to 2 iterations ahead of `x`, never behind."),
        (10, 50, "`i` gets up to 9 iterations ahead of `x`, never behind."),
        (20, 50, "`i` ends before `x` is computed once, and is never behind it."),
    ],
)
def test_a_slow_operation_lets_the_counter_run_ahead(window: int, ticks: int, lead: str) -> None:
    found = dependences(finished("counter_ahead"), "main/while_below_n")

    def ticks_of(operation: OperationExecution) -> int:
        return ticks if operation.program.instructions[operation.number].label == "add_to_x" else 1

    assert sentences(found, schedule(found, window, 2, ticks_of), window, 2, ticks_of)[-1] == lead


@pytest.mark.parametrize(
    ("most", "told"),
    [
        (10_000, ""),
        (60, "Only the first 12 of 20 iterations are scheduled."),
        (2, "Only the first operations of iteration 0 are scheduled: there are too many."),
    ],
)
def test_what_is_left_out_is_said(most: int, told: str) -> None:
    assert cut(dependences(finished("counter_ahead"), "main/while_below_n", most)) == told
