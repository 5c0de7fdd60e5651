"""ONNX operations on strings. The onnx package strips accents and drops empty strings, which ONNX
does not define.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import re2

from loopscope.errors import MOST_OF_A_SENTENCE, elided, shorten
from loopscope.ops.declare import Array
from loopscope.ops.kernel_checks import check_elements


def string_normalizer(
    texts: Array,
    /,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> Array:
    """Return texts [C] or [1, C] without the stop words, in lower or upper case; one empty text if
    all are stop words.
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
    remaining = [
        _CASES[action](text) for text in texts.reshape(-1).tolist() if compared(text) not in stopped
    ]
    result = np.array(remaining or [""], object)
    return result if texts.ndim == 1 else result[None]


def _change_case(change: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that changes the case of each letter, but not of a letter whose other case
    is two letters, as in ONNX Runtime.
    """
    return lambda text: "".join(
        other if len(other) == 1 else letter for letter in text for other in (change(letter),)
    )


_CASES: Mapping[str, Callable[[str], str]] = {
    "NONE": str,
    "LOWER": _change_case(str.lower),
    "UPPER": _change_case(str.upper),
}


def string_split(
    texts: Array, /, *, delimiter: str | None = None, maxsplit: int | None = None
) -> tuple[Array, Array]:
    """Return the pieces of each text along a new last axis, filled up with empty texts, and the
    number of pieces: 0 for an empty text.
    """
    delimiter, limit = delimiter or None, maxsplit
    pieces = [
        text.split(delimiter, -1 if limit is None else int(limit)) if text else []
        for text in map(str, texts.reshape(-1).tolist())
    ]
    if delimiter is None and limit is not None:
        # Blanks at the end are not part of the last piece.
        pieces = [[*parts[:-1], parts[-1].rstrip()] if parts else parts for parts in pieces]
    counts = [len(parts) for parts in pieces]
    longest = max(counts, default=0)
    check_elements(texts.size * longest, "the output of StringSplit")
    result = np.array(
        [[*parts, *[""] * (longest - len(parts))] for parts in pieces], object
    ).reshape(*texts.shape, longest)
    return result, np.array(counts, np.int64).reshape(texts.shape)


def regex_full_match(texts: np.ndarray, /, *, pattern: str | None = None) -> np.ndarray:
    """Return True for each text that matches the pattern as a whole, in RE2's syntax and in time
    linear in the text.
    """
    try:
        compiled = re2.compile(pattern or "", _QUIET)
    except re2.error as error:
        raise ValueError(
            f"the pattern {shorten(repr(pattern))} is not valid in RE2: {_error_text(error)}"
        ) from None
    matches = [compiled.fullmatch(str(text)) is not None for text in texts.reshape(-1).tolist()]
    return np.array(matches, np.bool_).reshape(texts.shape)


_QUIET = re2.Options()
_QUIET.log_errors = False


def _error_text(error: Exception) -> str:
    reason = error.args[0] if error.args else b""
    return elided(
        reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason),
        MOST_OF_A_SENTENCE,
    )
