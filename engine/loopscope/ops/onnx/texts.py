"""ONNX operations on strings that the onnx package computes otherwise than ONNX says: it strips
accents and drops empty strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.onnx.older import Arguments, Attributes, Older


def _string_normalizer(
    arguments: Arguments, attributes: Attributes, outputs: int
) -> tuple[Any, ...]:
    """Texts [C] or [1, C] without the stop words, in lower or upper case; one empty text where
    none is left.
    """
    (texts,) = arguments
    if texts.ndim not in (1, 2) or (texts.ndim == 2 and len(texts) != 1):
        raise ValueError(f"the texts have shape {list(texts.shape)}, expected [C] or [1, C]")
    action = attributes.get("case_change_action") or "NONE"
    if action not in _CASES:
        raise ValueError(
            f"case_change_action is {str(action)[:40]!r}, expected one of {', '.join(_CASES)}"
        )
    compared = _CASES["NONE" if attributes.get("is_case_sensitive") else "LOWER"]
    stopped = {compared(word) for word in attributes.get("stopwords") or ()}
    kept = [
        _CASES[action](text) for text in texts.reshape(-1).tolist() if compared(text) not in stopped
    ]
    made = np.array(kept or [""], object)
    return (made if texts.ndim == 1 else made[None],)


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


def _string_split(arguments: Arguments, attributes: Attributes, outputs: int) -> tuple[Any, ...]:
    """The pieces of each text along a new last axis, filled up with empty ones, and how many
    there are: of an empty text none.
    """
    (texts,) = arguments
    delimiter, most = attributes.get("delimiter") or None, attributes.get("maxsplit")
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


TEXTS: Mapping[str, Older] = {"StringNormalizer": _string_normalizer, "StringSplit": _string_split}
