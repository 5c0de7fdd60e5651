"""Plain data of a tensor for display: text, tables, statistics, pictures."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from loopscope.ir import significant
from loopscope.ops.stored import plain
from loopscope.view import channels, number_text

if TYPE_CHECKING:
    import pandas as pd

SCANNED = 1 << 22
"""Number of elements for statistics; more would slow every step down."""
TABLE_ROWS, TABLE_COLUMNS = 400, 64
BINS = 24
_PICTURE_SIDE = 512


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a numeric tensor; NaN and infinities are only counted."""

    least: float
    most: float
    mean: float
    deviation: float
    zeros: int
    nans: int
    infinities: int

    def cells(self) -> list[tuple[str, str]]:
        """Return name and text of each statistic; without finite elements only the counts."""
        statistics = {"min": self.least, "max": self.most, "mean": self.mean, "std": self.deviation}
        cells = (
            []
            if math.isnan(self.least)
            else [(name, short(number)) for name, number in statistics.items()]
        )
        if self.nans or self.infinities:
            cells += [("NaN", f"{self.nans:,}"), ("infinite", f"{self.infinities:,}")]
        return cells


def numbers(array: np.ndarray) -> np.ndarray | None:
    """Return the elements as float64 (booleans as 0 and 1); None for strings."""
    if array.dtype.kind in "OUS":
        return None
    if array.dtype.names:
        array = array[array.dtype.names[0]]
    with np.errstate(all="ignore"):
        return array.astype(np.float64)


def statistics(array: np.ndarray) -> Statistics | None:
    """Return the statistics of the first ``SCANNED`` elements; None for an empty or non-numeric
    tensor.
    """
    flat = numbers(array.reshape(-1)[:SCANNED])
    if flat is None or not flat.size:
        return None
    finite = flat[np.isfinite(flat)]
    nans = int(np.isnan(flat).sum())
    infinities = flat.size - finite.size - nans
    if not finite.size:
        return Statistics(math.nan, math.nan, math.nan, math.nan, 0, nans, infinities)
    with np.errstate(all="ignore"):
        mean, deviation = float(finite.mean()), float(finite.std())
    return Statistics(
        float(finite.min()),
        float(finite.max()),
        mean,
        deviation,
        int((finite == 0).sum()),
        nans,
        infinities,
    )


def short(number: float) -> str:
    """Return a statistic in about nine characters.

    >>> short(3.0), short(0.123456789), short(float("nan")), short(1e20)
    ('3', '0.12346', 'NaN', '1e20')
    """
    return f"{significant(number, 5)}"


def difference(
    before: np.ndarray,
    now: np.ndarray,
    *,
    against: str = "since",
    where: str = "the iteration before",
) -> str:
    """Describe the change between two values of one place; ``where`` is the moment of the first.

    >>> difference(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    'since the iteration before: 1 of 2 elements changed, by up to 2'
    >>> difference(np.float32(1), np.float32(1))
    'unchanged since the iteration before'
    """
    before, now = np.asarray(before), np.asarray(now)
    unchanged = f"unchanged since {where}" if against == "since" else f"as in {where}"
    if before.shape != now.shape:
        return f"{against} {where}: the shape was {list(before.shape)}"
    left, right = numbers(before.reshape(-1)[:SCANNED]), numbers(now.reshape(-1)[:SCANNED])
    if left is None or right is None:
        return unchanged if before.tolist() == now.tolist() else f"{against} {where}: texts changed"
    with np.errstate(all="ignore"):
        changed = (left != right) & ~(np.isnan(left) & np.isnan(right))
        distances = np.abs(right - left)[changed]
    if not changed.any():
        return unchanged
    if now.dtype == np.bool_ and now.size == 1:
        return f"it was {'true' if before.reshape(-1)[0] else 'false'} in {where}"
    finite = distances[np.isfinite(distances)]
    amount = ""
    if finite.size:
        amount = f" by {'up to ' if now.size > 1 else ''}{short(float(finite.max()))}"
    if now.size == 1:
        return f"{against} {where}: changed{amount}"
    elements = f"{int(changed.sum()):,} of {now.size:,} elements changed"
    return f"{against} {where}: {elements}{',' if amount else ''}{amount}"


def plane(array: np.ndarray, leading: Sequence[int]) -> np.ndarray:
    """Return the last two axes of a tensor at given positions of the axes before; a vector as one
    column.
    """
    if array.ndim <= 1:
        return array.reshape(-1, 1)
    return array[tuple(leading)] if array.ndim > 2 else array


def table(matrix: np.ndarray, first_row: int = 0, first_column: int = 0) -> pd.DataFrame:
    """Return a page of a matrix from a row and a column on.

    Numbers become text if the page contains NaN or infinities, which a table cannot show.
    """
    import pandas as pd  # imported here: it takes half a second, and only tables need it

    part = matrix[first_row : first_row + TABLE_ROWS, first_column : first_column + TABLE_COLUMNS]
    if part.dtype.kind in "biu" or (
        part.dtype in (np.float32, np.float64) and np.isfinite(part).all()
    ):
        values: np.ndarray = part
    else:
        values = np.array(
            [[number_text(item) for item in row] for row in part.tolist()], dtype=object
        ).reshape(part.shape)
    frame = pd.DataFrame(values, index=range(first_row, first_row + part.shape[0]))
    frame.columns = [str(column) for column in range(first_column, first_column + part.shape[1])]
    return frame


def histogram(array: np.ndarray) -> list[dict[str, float]]:
    """Return bins of the finite elements: ``from``, ``to``, ``count``."""
    flat = numbers(array.reshape(-1)[:SCANNED])
    if flat is None:
        return []
    finite = flat[np.isfinite(flat)]
    if finite.size < 2 or finite.min() == finite.max():
        return []
    with np.errstate(all="ignore"):
        width = float(finite.max()) - float(finite.min())
        if not math.isfinite(width):
            return []
        counts, edges = np.histogram(finite, BINS)
    return [
        {"from": float(low), "to": float(high), "count": int(count)}
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]


_NEGATIVE, _MIDDLE, _POSITIVE, _LOW, _HIGH, _NAN_COLOUR = (
    np.array(channels(f"matrix-{meaning}"), np.float64)
    for meaning in ("negative", "zero", "positive", "low", "high", "nan")
)


def heat_map(matrix: np.ndarray) -> str:
    """Return a picture of a matrix as a data URL.

    Colors are orange to blue around zero, or pale to dark without negative numbers; NaN is red.
    """
    rows, columns = (max(1, math.ceil(length / _PICTURE_SIDE)) for length in matrix.shape)
    values = numbers(matrix[::rows, ::columns])
    if values is None or not values.size:
        return ""
    finite = np.isfinite(values)
    low, high = (
        (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0.0, 0.0)
    )
    known = np.where(finite, values, 0.0)[..., None]
    if low < 0:
        scaled = np.clip(known / max(-low, high), -1, 1)
        colours = np.where(
            scaled < 0,
            _MIDDLE + (_NEGATIVE - _MIDDLE) * -scaled,
            _MIDDLE + (_POSITIVE - _MIDDLE) * scaled,
        )
    else:
        colours = _LOW + (_HIGH - _LOW) * (
            (known - low) / (high - low) if high > low else 0.0 * known
        )
    pixels = np.where(np.isnan(values)[..., None], _NAN_COLOUR, colours).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def as_code(array: np.ndarray) -> str:
    """Return the tensor as a line of numpy code."""
    if array.dtype.kind == "O":
        return f"np.array({array.tolist()!r}, dtype=object)"
    if not array.size and array.dtype.isbuiltin == 1:
        return f"np.zeros({array.shape}, dtype=np.{array.dtype.name})"
    if array.dtype.isbuiltin == 1:
        text = np.array2string(
            array, separator=", ", threshold=array.size + 1, floatmode="unique", max_line_width=120
        )
        return f"np.array({text}, dtype=np.{array.dtype.name})".replace("nan", "np.nan").replace(
            "inf", "np.inf"
        )
    if array.dtype.names:
        return as_code(plain(array))
    return as_code(plain(array)) + f".astype(ml_dtypes.{array.dtype.name})"


def npy(array: np.ndarray) -> bytes:
    """Return the tensor as an .npy file that every numpy can read."""
    file = io.BytesIO()
    np.save(file, plain(array), allow_pickle=False)
    return file.getvalue()


def values_for_editing(array: np.ndarray) -> np.ndarray:
    """Return an array that a table editor supports: narrow types as float64 or int64."""
    if array.dtype.kind in "biufO" and array.dtype.isbuiltin == 1 and array.dtype != np.float16:
        return array
    plain_numbers = numbers(array)
    return array if plain_numbers is None else plain_numbers
