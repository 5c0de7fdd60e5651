"""Rows of ONNX's operations on strings."""

from __future__ import annotations

from loopscope.ops.onnx import texts
from loopscope.ops.onnx.row import OnnxRow, row

ROWS: tuple[OnnxRow, ...] = (
    row("RegexFullMatch", texts.regex_full_match, since=20),
    row("StringNormalizer", texts.string_normalizer, convert=True),
    row("StringSplit", texts.string_split, convert=True),
)
