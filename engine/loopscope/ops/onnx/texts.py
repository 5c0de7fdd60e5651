"""ONNX operations on strings that the onnx package computes otherwise than ONNX says: it strips
accents and drops empty strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import re2

from loopscope.errors import MOST_OF_A_SENTENCE, elided, shorten
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array


def string_normalizer(
    texts: Array,
    /,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> Array:
    """Texts [C] or [1, C] without the stop words, in lower or upper case; one empty text if all
    are stop words.
    """
    if texts.ndim not in (1, 2) or (texts.ndim == 2 and len(texts) != 1):
        raise ValueError(f"the texts have shape {list(texts.shape)}, expected [C] or [1, C]")
    action = case_change_action or "NONE"
    if action not in _CASES:
        raise ValueError(
            f"case_change_action is {str(action)[:40]!r}, expected one of {', '.join(_CASES)}"
        )
    compared = _CASES["NONE" if is_case_sensitive else "LOWER"]
    stopped = {compared(word) for word in stopwords}
    kept = [
        _CASES[action](text) for text in texts.reshape(-1).tolist() if compared(text) not in stopped
    ]
    made = np.array(kept or [""], object)
    return made if texts.ndim == 1 else made[None]


def _letter_by_letter(change: Callable[[str], str]) -> Callable[[str], str]:
    """As ONNX Runtime does: a letter whose other case is two letters stays."""
    return lambda text: "".join(
        other if len(other) == 1 else letter for letter in text for other in (change(letter),)
    )


_CASES: Mapping[str, Callable[[str], str]] = {
    "NONE": str,
    "LOWER": _letter_by_letter(str.lower),
    "UPPER": _letter_by_letter(str.upper),
}


def string_split(
    texts: Array, /, *, delimiter: str | None = None, maxsplit: int | None = None
) -> tuple[Array, Array]:
    """The pieces of each text along a new last axis, filled up with empty texts, and the number of
    pieces: 0 for an empty text.
    """
    delimiter, most = delimiter or None, maxsplit
    pieces = [
        text.split(delimiter, -1 if most is None else int(most)) if text else []
        for text in map(str, texts.reshape(-1).tolist())
    ]
    if delimiter is None and most is not None:
        # Blanks behind the last piece are no part of it.
        pieces = [[*one[:-1], one[-1].rstrip()] if one else one for one in pieces]
    counts = [len(one) for one in pieces]
    longest = max(counts, default=0)
    check_elements(texts.size * longest, "the output of StringSplit")
    made = np.array([[*one, *[""] * (longest - len(one))] for one in pieces], object).reshape(
        *texts.shape, longest
    )
    return made, np.array(counts, np.int64).reshape(texts.shape)


def regex_full_match(texts: np.ndarray, /, *, pattern: str | None = None) -> np.ndarray:
    """Whether each text as a whole matches the pattern, in RE2's syntax and in time linear in
    the text.
    """
    try:
        compiled = re2.compile(pattern or "", _QUIET)
    except re2.error as error:
        raise ValueError(
            f"the pattern {shorten(repr(pattern))} is none of RE2: {_decoded(error)}"
        ) from None
    found = [compiled.fullmatch(str(text)) is not None for text in texts.reshape(-1).tolist()]
    return np.array(found, np.bool_).reshape(texts.shape)


_QUIET = re2.Options()
_QUIET.log_errors = False


def _decoded(error: Exception) -> str:
    reason = error.args[0] if error.args else b""
    return elided(
        reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason),
        MOST_OF_A_SENTENCE,
    )
