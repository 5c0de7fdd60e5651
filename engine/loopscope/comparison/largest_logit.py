"""Effect of an error on the largest logit of a language model's output, and so on the next
token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from loopscope.comparison.matched_slots import MatchedSlots
from loopscope.debug.run import Run

_LOGITS_MARK = "logit"
"""Part of the name of an output with logits: [..., tokens, vocabulary]."""
_MAX_ROWS = 20_000
"""Maximum number of iterations whose logits are read."""


def other_choice(sides: Iterable[tuple[str, object, object]]) -> str:
    """Return a sentence about the first output whose largest logits differ; empty if there is none.

    ``sides``: name and both values of each output.

    >>> left = np.eye(3, dtype=np.float32)
    >>> other_choice([("logits", left, left[[0, 0, 0]])])
    'The largest logit is another one from token 1 on.'
    >>> other_choice([("logits", left, left[[0, 0, 2]])])
    'The largest logit is another one at 1 of 3 tokens, first at token 1.'
    """
    for name, left, right in sides:
        if (
            _LOGITS_MARK not in name.lower()
            or not isinstance(left, np.ndarray)
            or not isinstance(right, np.ndarray)
        ):
            continue
        if (
            left.shape != right.shape
            or left.ndim < 2
            or not left.size
            or left.dtype.kind != "f"
            or right.dtype.kind != "f"
        ):
            continue
        differ = np.argmax(left, axis=-1) != np.argmax(right, axis=-1)
        tokens = differ.reshape(-1, differ.shape[-1]).any(axis=0)
        if tokens.any():
            return _describe(tokens)
    return ""


def choice_in_loop(runs: tuple[Run, Run], pairs: Sequence[MatchedSlots]) -> str:
    """Return a sentence about logits that a loop computes in each iteration.

    Return an empty text if the largest logit is the same in all iterations.
    """
    for pair in pairs:
        if _LOGITS_MARK not in pair.one.rpartition("/")[2].lower():
            continue
        differs = np.zeros(len(pair.rows.left), np.bool_)
        for row in np.flatnonzero(pair.deviations.absolute > 0)[:_MAX_ROWS].tolist():
            left = np.asarray(runs[0].value(pair.moment(runs[0], row).address))
            right = np.asarray(runs[1].value(pair.address_beside(runs[1], row)))
            if left.ndim and left.size and left.shape == right.shape:
                choices = (np.argmax(side.astype(np.float64), axis=-1) for side in (left, right))
                differs[row] = not np.array_equal(*choices)
        if differs.any():
            return _describe(differs)
    return ""


def _describe(differs: np.ndarray) -> str:
    first = int(np.argmax(differs))
    if differs[first:].all():
        return f"The largest logit is another one from token {first:,} on."
    return (
        f"The largest logit is another one at {int(differs.sum()):,} of {len(differs):,} tokens, "
        f"first at token {first:,}."
    )
