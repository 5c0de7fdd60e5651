"""Whether an error changes which logit of a language model's output is the largest, and so the
next token.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

_NAMED = "logit"
"""In the name of an output that holds them: [..., tokens, vocabulary]."""


def other_choice(sides: Iterable[tuple[str, object, object]]) -> str:
    """A sentence on the first output, by name and both values, whose largest logits differ; empty
    where there is none.

    >>> one = np.eye(3, dtype=np.float32)
    >>> other_choice([("logits", one, one[[0, 0, 0]])]), other_choice([("logits", one, one[[0, 0, 2]])])
    ('The largest logit is another one from token 1 on.', 'The largest logit is another one at 1 of
    3 tokens, first at token 1.')
    """
    for name, mine, theirs in sides:
        if (
            _NAMED not in name.lower()
            or not isinstance(mine, np.ndarray)
            or not isinstance(theirs, np.ndarray)
        ):
            continue
        if (
            mine.shape != theirs.shape
            or mine.ndim < 2
            or not mine.size
            or mine.dtype.kind != "f"
            or theirs.dtype.kind != "f"
        ):
            continue
        differ = np.argmax(mine, axis=-1) != np.argmax(theirs, axis=-1)
        tokens = differ.reshape(-1, differ.shape[-1]).any(axis=0)
        if tokens.any():
            return _told(tokens)
    return ""


def _told(tokens: np.ndarray) -> str:
    first = int(np.argmax(tokens))
    if tokens[first:].all():
        return f"The largest logit is another one from token {first:,} on."
    return f"The largest logit is another one at {int(tokens.sum()):,} of {len(tokens):,} tokens, first at token {first:,}."
