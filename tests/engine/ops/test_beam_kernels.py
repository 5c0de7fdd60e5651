"""The operations of our own in searches refuse in plain words what does not go together; tests
of reading hold what they compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from loopscope.ops.searches import beam_scorer, best_beams, sampled_token

I32, F32 = np.int32, np.float32
SCORER: Mapping[str, np.ndarray] = {
    "scores": np.array([[-1, -2, -3, -4]], F32),
    "words": np.array([[5, 6, 7, 8]], I32),
    "beams": np.array([[0, 1, 0, 1]], I32),
    "sequences": np.array([[1, 2], [1, 3]], I32),
    "ended": np.zeros((1, 2, 4), I32),
    "ended_scores": np.zeros((1, 2), F32),
    "ended_count": np.zeros(1, I32),
    "done": np.zeros(1, np.bool_),
    "length_penalty": np.array(1, F32),
}
BEST = {
    "sequences": SCORER["sequences"],
    "beam_scores": np.array([[-1, -2]], F32),
    **{
        name: SCORER[name]
        for name in ("ended", "ended_scores", "ended_count", "done", "length_penalty")
    },
    "returned": np.array([2]),
}


def scored(**others: np.ndarray) -> tuple[np.ndarray, ...]:
    return beam_scorer(
        *{**SCORER, **others}.values(), eos_token_id=5, pad_token_id=0, early_stopping=0
    )


def test_the_end_of_a_sequence_is_kept_and_others_go_on() -> None:
    scores, words, rows, ended, ended_scores, count, done = scored()
    assert (scores.tolist(), words.tolist(), rows.tolist()) == ([[-2, -3]], [[6], [7]], [1, 0])
    assert ended.tolist() == [[[1, 2, 0, 0], [0, 0, 0, 0]]]
    assert (ended_scores.tolist(), count.tolist(), done.tolist()) == ([[-0.5, 0]], [1], [False])


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"scores": np.zeros((1, 3), F32)}, r"scores has shape \[1, 3\], expected \[1, 4\]"),
        ({"words": np.zeros((2, 4), I32)}, r"words has shape \[2, 4\], expected \[1, 4\]"),
        (
            {"beams": np.array([[0, 2, 0, 1]], I32)},
            "candidates are of beams 0 to 2, expected 0 to 1",
        ),
        ({"sequences": np.zeros(2, I32)}, r"sequences and ended have shapes \[2\]"),
        (
            {"sequences": np.zeros((2, 5), I32)},
            r"sequences and ended have shapes \[2, 5\] and \[1, 2, 4\]",
        ),
        ({"sequences": np.zeros((3, 2), I32)}, r"sequences has shape \[3, 2\], expected \[2, 2\]"),
        ({"ended_scores": np.zeros(2, F32)}, r"have shape \[2\], expected \[batch, beams\]"),
        ({"ended_scores": np.zeros((1, 0), F32)}, "with a beam at least"),
        ({"ended_count": np.array(0, I32)}, r"ended_count has shape \[\], expected \[1\]"),
        ({"ended_count": np.array([-5], I32)}, "-5 to -5 sequences have ended, expected 0 to 2"),
        ({"done": np.zeros(2, np.bool_)}, r"done has shape \[2\], expected \[1\]"),
        ({"length_penalty": np.zeros(1, F32)}, r"length_penalty has shape \[1\], expected \[\]"),
    ],
)
def test_what_does_not_go_together_is_refused(others: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        scored(**others)
    if not others.keys() <= BEST.keys():
        return
    with pytest.raises(ValueError, match=words):
        best_beams(*{**BEST, **others}.values(), pad_token_id=0)


@pytest.mark.parametrize(
    "returned", [np.array([0]), np.array([3]), np.array(1), np.array([], np.int64)]
)
def test_only_as_many_as_there_are_beams_are_returned(returned: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"num_return_sequences is|returned has shape"):
        best_beams(*{**BEST, "returned": returned}.values(), pad_token_id=0)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (np.zeros(3, F32), r"scores and state have shapes \[3\] and \[\]"),
        (np.zeros((2, 0), F32), "with a word at least"),
        (np.full((1, 3), np.nan, F32), "none can be drawn"),
        (np.full((1, 3), -np.inf, F32), "none can be drawn"),
    ],
)
def test_nothing_is_drawn_from_nothing(scores: np.ndarray, words: str) -> None:
    attributes: dict[str, Any] = {
        "top_p": 0.5,
        "filter_value": -1e20,
        "min_tokens_to_keep": 0,
        "from_the_top": 0,
    }
    with pytest.raises(ValueError, match=words):
        sampled_token(scores, np.array(1), **attributes)
