"""Rows of ONNX's random operations."""

from __future__ import annotations

from loopscope.ops.derivative import flat
from loopscope.ops.onnx import multinomial
from loopscope.ops.onnx.row import OnnxRow, row

ROWS: tuple[OnnxRow, ...] = (
    row("Bernoulli", gradient=flat),
    row("Multinomial", multinomial.multinomial, stateful=True),
    row("RandomNormalLike", gradient=flat),
    row("RandomUniformLike", gradient=flat),
)
