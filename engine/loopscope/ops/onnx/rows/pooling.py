"""Rows of ONNX's convolutions and poolings."""

from __future__ import annotations

from functools import partial

from loopscope.ops.onnx import derivatives_of_windows as window_rules
from loopscope.ops.onnx import roi_align, windows
from loopscope.ops.onnx.row import OnnxRow, row

ROWS: tuple[OnnxRow, ...] = (
    row("AveragePool", windows.average_pool_by_axes, until=6, convert=True),
    row(
        "AveragePool",
        windows.average_pool_by_axes,
        since=7,
        until=18,
        convert=True,
        gradient=window_rules.average_pool,
    ),
    row(
        "AveragePool",
        windows.average_pool,
        since=19,
        convert=True,
        gradient=window_rules.average_pool,
    ),
    row("Conv", windows.conv, gradient=window_rules.conv),
    row(
        "ConvTranspose", windows.conv_transpose, convert=True, gradient=window_rules.conv_transpose
    ),
    row("DeformConv", windows.deform_conv, convert=True),
    row(
        "GlobalAveragePool",
        windows.global_average_pool,
        convert=True,
        gradient=partial(window_rules.over_all_places, "ReduceMean"),
    ),
    row("GlobalLpPool", windows.global_lp_pool, gradient=window_rules.global_lp_pool),
    row(
        "GlobalMaxPool",
        windows.global_max_pool,
        convert=True,
        gradient=partial(window_rules.over_all_places, "ReduceMax"),
    ),
    row("LpPool", windows.lp_pool, convert=True, gradient=window_rules.lp_pool),
    row(
        "MaxPool",
        windows.max_pool,
        convert=True,
        counts_outputs=True,
        gradient=window_rules.max_pool,
    ),
    row("MaxRoiPool", roi_align.max_roi_pool, until=22, convert=True),
    row("RoiAlign", roi_align.roi_align, since=10, gradient=window_rules.roi_align),
)
