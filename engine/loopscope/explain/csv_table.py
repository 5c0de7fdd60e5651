"""CSV output whose texts a spreadsheet does not interpret as formulas."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from loopscope.replaced_file import replaced_file

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf|nan)", re.ASCII)


def write_csv(frame: pd.DataFrame, target: Path) -> None:
    """Write a table as CSV; prefix texts that a spreadsheet would execute with an apostrophe."""
    texts = frame.select_dtypes(["object", "string"])
    safe = frame.copy(deep=False)
    for name, column in texts.items():
        safe[name] = column.map(escaped)
    with replaced_file(target) as file:
        safe.to_csv(file, index=False, mode="wb")


def escaped(cell: object) -> object:
    """Return a cell, prefixed with an apostrophe if its text starts like a formula.

    >>> escaped("=1+1"), escaped("-x"), escaped("-1.5e-07"), escaped(-1.5), escaped("a=b")
    ("'=1+1", "'-x", '-1.5e-07', -1.5, 'a=b')
    """
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
