"""The format of a trace file: a header, then blocks that are only ever appended.

``docs/reference/traces.md`` describes it. A file whose last block is cut short, as after a kill,
is read up to that block. Fingerprints are the facts and sampled elements that represent a tensor
beyond the budget.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping
from typing import Final

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.recorded_rows import sample_indices

MAGIC: Final = b"\x89loopscope trace\r\n"
VERSION_OF_TRACE: Final = 1
HEADER: Final = MAGIC + struct.pack("<I", VERSION_OF_TRACE)
BLOCK: Final = struct.Struct("<cQ")
"""Kind and length in bytes of the block that follows."""
EVENTS: Final = b"E"
"""Kind of a block that contains a MessagePack array of events."""
DATA: Final = b"D"
"""Kind of a block that contains the bytes of the tensor in the last ``LARGE`` event."""

# Events are MessagePack arrays that begin with one of these numbers.
LOOP: Final = 0
"""A loop begins: name, and number of iterations of its iterable or nil."""
ITERATION: Final = 1
"""An iteration of the innermost open loop begins."""
SCALARS: Final = 2
"""Plain numbers and booleans: a map from name to value."""
TENSOR: Final = 3
"""A tensor: name, element type, shape, bytes."""
LARGE: Final = 4
"""A tensor whose bytes are in the next data block: name, element type, shape."""
FINGERPRINT: Final = 5
"""A tensor beyond the budget: name, element type, shape, facts, bytes of the sampled elements."""
BRANCH: Final = 6
"""A decision: name, and true or false."""
CARRIED: Final = 7
"""Names of the values that the innermost open loop carries."""
END: Final = 8
"""The innermost open loop ends: its ending, and a text."""
FAILURE: Final = 9
"""The program raised an exception: its text."""
CLOSED: Final = 10
"""The recorder was closed."""

EXHAUSTED, LEFT, REASON = "exhausted", "left", "reason"
"""Endings of a loop: its iterable has ended, the program left it, or ``ended`` named the reason."""

MOST_DIMENSIONS: Final = 32
BY_NAME: Mapping[str, ElementType] = {
    str(element_type): element_type
    for element_type in ElementType
    if element_type.dtype.names is None and element_type is not ElementType.STRING
}
"""Element types of the tensors of a trace, by name; each element takes whole bytes."""


DIGEST, NORM, MINIMUM, MAXIMUM = "digest", "norm", "minimum", "maximum"
"""Facts of a fingerprint: SHA-256 of the bytes, Euclidean norm, smallest and largest number."""
NANS, INFINITIES = "nans", "infinities"
"""Facts of a fingerprint: the number of NaN and of infinite elements."""
_PIECE_ELEMENTS = 1 << 16
"""Number of elements that are converted to f64 at once."""


def fingerprint(array: np.ndarray) -> tuple[Mapping[str, float | int | str], np.ndarray]:
    """Return the facts about a tensor and its sampled elements."""
    flat = np.ascontiguousarray(array).reshape(-1)
    facts: dict[str, float | int | str] = {
        **statistics(flat),
        DIGEST: hashlib.sha256(flat.view(np.uint8).data).hexdigest(),
    }
    return facts, flat[sample_indices(flat.size)]


def statistics(flat: np.ndarray) -> dict[str, float | int]:
    """Return norm, extremes and counts of the elements of a flat tensor.

    NaN and infinite elements do not contribute to norm and extremes.
    """
    squares, low, high, nans, infinities = 0.0, math.inf, -math.inf, 0, 0
    for begin in range(0, flat.size, _PIECE_ELEMENTS):
        piece = flat[begin : begin + _PIECE_ELEMENTS].astype(np.float64)
        finite = piece[np.isfinite(piece)]
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
            squares += float(finite @ finite)
        if finite.size != piece.size:
            piece_nans = int(np.isnan(piece).sum())
            nans += piece_nans
            infinities += piece.size - finite.size - piece_nans
    return {
        NORM: math.sqrt(squares),
        MINIMUM: low if low <= high else math.nan,
        MAXIMUM: high if low <= high else math.nan,
        NANS: nans,
        INFINITIES: infinities,
    }
