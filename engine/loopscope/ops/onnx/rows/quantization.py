"""Rows of ONNX's quantized operations."""

from __future__ import annotations

from loopscope.ops.derivative import flat
from loopscope.ops.onnx import byte_filters, byte_products, integers, quantizing
from loopscope.ops.onnx.row import OnnxRow, row

ROWS: tuple[OnnxRow, ...] = (
    row(
        "ConvInteger",
        integers.conv_integer,
        since=10,
        by_constant=byte_products.keeping(byte_filters.ByteFilters, integers.conv_integer),
    ),
    row("DequantizeLinear", quantizing.dequantize_linear, since=10),
    row("DynamicQuantizeLinear", quantizing.dynamic_quantize_linear, since=11, gradient=flat),
    row(
        "MatMulInteger",
        integers.matmul_integer,
        since=10,
        by_constant=byte_products.keeping(byte_products.ByteMatrix, integers.matmul_integer),
    ),
    row(
        "QLinearConv",
        integers.qlinear_conv,
        since=10,
        by_constant=byte_products.keeping(byte_filters.ByteFilters, integers.qlinear_conv),
        kept_input=3,
    ),
    row(
        "QLinearMatMul",
        integers.qlinear_matmul,
        since=10,
        by_constant=byte_products.keeping(byte_products.ByteMatrix, integers.qlinear_matmul),
        kept_input=3,
    ),
    row("QuantizeLinear", quantizing.quantize_linear, since=10),
)
