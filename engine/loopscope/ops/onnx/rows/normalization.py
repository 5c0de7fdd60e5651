"""Rows of ONNX's normalizations, softmaxes and losses."""

from __future__ import annotations

from functools import partial

from loopscope.ops.declare import Attribute
from loopscope.ops.derivative import WithGaps, flat
from loopscope.ops.onnx import along_axes, losses, normalizing
from loopscope.ops.onnx import derivatives as rules
from loopscope.ops.onnx import derivatives_of_formulas as formula_rules
from loopscope.ops.onnx import derivatives_of_losses as loss_rules
from loopscope.ops.onnx import derivatives_of_movement as movement_rules
from loopscope.ops.onnx import derivatives_of_norms as norm_rules
from loopscope.ops.onnx.row import OnnxRow, row

ROWS: tuple[OnnxRow, ...] = (
    row(
        "BatchNormalization",
        normalizing.old_batch_normalization,
        until=8,
        convert=True,
        counts_outputs=True,
    ),
    row(
        "BatchNormalization",
        normalizing.old_batch_normalization,
        since=9,
        until=13,
        convert=True,
        counts_outputs=True,
        gradient=norm_rules.batch_normalization,
    ),
    row(
        "BatchNormalization",
        since=14,
        prepare_part=normalizing.batch_normalized,
        gradient=norm_rules.batch_normalization,
    ),
    row("Dropout", normalizing.dropout_6, until=6, convert=True),
    row(
        "Dropout",
        normalizing.dropout_9,
        since=7,
        until=9,
        convert=True,
        gradient=WithGaps(movement_rules.dropout),
    ),
    row(
        "Dropout",
        normalizing.dropout_11,
        since=10,
        until=11,
        convert=True,
        gradient=WithGaps(movement_rules.dropout),
    ),
    row("Dropout", since=12, gradient=WithGaps(movement_rules.dropout)),
    row("GroupNormalization", until=20, prepare_part=normalizing.group_normalized),
    row(
        "GroupNormalization",
        since=21,
        prepare_part=normalizing.group_normalized,
        gradient=norm_rules.group_normalization,
    ),
    row("Hardmax", along_axes.old_hardmax, until=12, convert=True, gradient=flat),
    row("Hardmax", since=13, gradient=flat),
    row("InstanceNormalization", normalizing.instance_normalization, until=5),
    row(
        "InstanceNormalization",
        normalizing.instance_normalization,
        since=6,
        gradient=norm_rules.instance_normalization,
    ),
    row(
        "LayerNormalization",
        along_axes.layer_normalization,
        since=17,
        gradient=norm_rules.layer_normalization,
    ),
    row(
        "LogSoftmax",
        along_axes.old_log_softmax,
        until=12,
        convert=True,
        gradient=partial(formula_rules.along_the_rest, True),
    ),
    row(
        "LogSoftmax",
        along_axes.log_softmax_along,
        since=13,
        gradient=rules.along_an_axis("LogSoftmax"),
    ),
    row(
        "LpNormalization",
        normalizing.lp_normalization,
        convert=True,
        gradient=norm_rules.lp_normalization,
    ),
    row("LRN", normalizing.lrn, convert=True, gradient=norm_rules.local_response_normalization),
    row(
        "MeanVarianceNormalization",
        normalizing.old_mean_variance,
        until=8,
        attributes=(
            Attribute("across_channels", "int", 0),
            Attribute("normalize_variance", "int", 1),
        ),
    ),
    row(
        "MeanVarianceNormalization",
        normalizing.mean_variance,
        since=9,
        convert=True,
        gradient=norm_rules.mean_variance_normalization,
    ),
    row(
        "NegativeLogLikelihoodLoss",
        prepare_part=losses.mean_of_what_counts,
        gradient=WithGaps(loss_rules.negative_log_likelihood_loss),
    ),
    row(
        "RMSNormalization",
        normalizing.rms_normalization,
        since=23,
        gradient=norm_rules.rms_normalization,
    ),
    row(
        "Softmax",
        along_axes.old_softmax,
        until=12,
        convert=True,
        gradient=partial(formula_rules.along_the_rest, False),
    ),
    row("Softmax", along_axes.softmax_along, since=13, gradient=rules.along_an_axis("Softmax")),
    row("SoftmaxCrossEntropyLoss", gradient=WithGaps(loss_rules.softmax_cross_entropy_loss)),
)
