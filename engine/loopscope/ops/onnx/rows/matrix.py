"""Rows of ONNX's matrix products, sums along axes and reductions."""

from __future__ import annotations

from loopscope.ops import einsum
from loopscope.ops.onnx import along_axes
from loopscope.ops.onnx import derivatives as rules
from loopscope.ops.onnx import derivatives_of_formulas as formula_rules
from loopscope.ops.onnx import derivatives_of_movement as movement_rules
from loopscope.ops.onnx.row import OnnxRow, row

ROWS: tuple[OnnxRow, ...] = (
    row(
        "CumProd",
        along_axes.cumulative_product,
        since=26,
        convert=True,
        gradient=formula_rules.cumulative_product,
    ),
    row("CumSum", along_axes.cumulative, since=11, gradient=movement_rules.cumulative_sum),
    row("Det", along_axes.determinants, since=11, convert=True, gradient=formula_rules.determinant),
    row("Einsum", einsum.einsum, since=12, convert=True, gradient=formula_rules.einsum),
    row("Gemm", along_axes.old_gemm, until=6, convert=True),
    row("Gemm", along_axes.gemm, since=7, gradient=rules.gemm),
    row("MatMul", along_axes.product, gradient=rules.matmul),
    row("ReduceL1", along_axes.reduce_l1, gradient=rules.reduction("ReduceL1")),
    row("ReduceL2", along_axes.reduce_l2, gradient=rules.reduction("ReduceL2")),
    row(
        "ReduceLogSum",
        along_axes.reduce_log_sum,
        gradient=formula_rules.logarithm_of_sum(rules.reduction("ReduceSum")),
    ),
    row(
        "ReduceLogSumExp",
        along_axes.reduce_log_sum_exp,
        gradient=formula_rules.logarithm_of_exponentials(rules.reduction("ReduceSum")),
    ),
    row("ReduceMax", along_axes.reduce_max, gradient=rules.reduction("ReduceMax")),
    row("ReduceMean", along_axes.reduce_mean, gradient=rules.reduction("ReduceMean")),
    row("ReduceMin", along_axes.reduce_min, gradient=rules.reduction("ReduceMin")),
    row("ReduceProd", along_axes.reduce_prod, gradient=rules.reduction("ReduceProd")),
    row("ReduceSum", along_axes.reduce_sum, gradient=rules.reduction("ReduceSum")),
    row(
        "ReduceSumSquare",
        along_axes.reduce_sum_square,
        gradient=formula_rules.sum_of_squares(rules.reduction("ReduceSum")),
    ),
)
