"""Tables as CSV files whose texts no spreadsheet takes for formulas."""

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
    """Write a table; texts that a spreadsheet would execute begin with an apostrophe."""
    texts = frame.select_dtypes(["object", "string"])
    safe = frame.copy(deep=False)
    for name, column in texts.items():
        safe[name] = column.map(escaped)
    with replaced_file(target) as file:
        safe.to_csv(file, index=False, mode="wb")


def escaped(cell: object) -> object:
    """Return a cell, with an apostrophe before text that begins as a formula does.

    >>> escaped("=1+1"), escaped("-x"), escaped("-1.5e-07"), escaped(-1.5), escaped("a=b")
    ("'=1+1", "'-x", '-1.5e-07', -1.5, 'a=b')
    """
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
