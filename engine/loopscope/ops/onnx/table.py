"""The table of ONNX operations: one row for each kernel and derivative that an operation had.

The rows of layers and of the domain ai.onnx.ml are here, the other rows in ``tensor_rows``.
Layers are products, reductions, normalizations, poolings, quantized and recurrent operations.
Normalizations include softmaxes and losses, poolings include convolutions, and the recurrent
operations include attention. The domain ai.onnx.ml has models and features of scikit-learn,
LightGBM and XGBoost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import partial

from loopscope.ops import einsum
from loopscope.ops.declare import Attribute
from loopscope.ops.derivative import WithGaps, flat
from loopscope.ops.onnx import (
    along_axes,
    attention,
    byte_products,
    features,
    images,
    linear_models,
    normalizing,
    quantization,
    recurrent,
    stateful_layers,
    tensor_rows,
    tree_models,
    windows,
)
from loopscope.ops.onnx import derivatives as rules
from loopscope.ops.onnx import derivatives_of_attention as attention_rules
from loopscope.ops.onnx import derivatives_of_formulas as formula_rules
from loopscope.ops.onnx import derivatives_of_images as window_rules
from loopscope.ops.onnx import derivatives_of_norms_and_losses as norm_rules
from loopscope.ops.onnx import derivatives_of_recurrence as recurrence_rules
from loopscope.ops.onnx.row import OnnxRow, row

MATRIX: tuple[OnnxRow, ...] = (
    row(
        "CumProd",
        along_axes.cumulative_product,
        since=26,
        convert=True,
        gradient=formula_rules.cumulative_product,
    ),
    row("CumSum", along_axes.cumulative, since=11, gradient=rules.cumulative_sum),
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


NORMALIZATION: tuple[OnnxRow, ...] = (
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
        gradient=WithGaps(rules.dropout),
    ),
    row(
        "Dropout",
        normalizing.dropout_11,
        since=10,
        until=11,
        convert=True,
        gradient=WithGaps(rules.dropout),
    ),
    row("Dropout", since=12, gradient=WithGaps(rules.dropout)),
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
        prepare_part=normalizing.mean_of_what_counts,
        gradient=WithGaps(norm_rules.negative_log_likelihood_loss),
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
    row("SoftmaxCrossEntropyLoss", gradient=WithGaps(norm_rules.softmax_cross_entropy_loss)),
)


POOLING: tuple[OnnxRow, ...] = (
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
    row("MaxRoiPool", images.max_roi_pool, until=22, convert=True),
    row("RoiAlign", images.roi_align, since=10, gradient=window_rules.roi_align),
)


QUANTIZATION: tuple[OnnxRow, ...] = (
    row(
        "ConvInteger",
        quantization.conv_integer,
        since=10,
        by_constant=byte_products.keeping(quantization.ByteFilters, quantization.conv_integer),
    ),
    row("DequantizeLinear", quantization.dequantize_linear, since=10),
    row("DynamicQuantizeLinear", quantization.dynamic_quantize_linear, since=11, gradient=flat),
    row(
        "MatMulInteger",
        quantization.matmul_integer,
        since=10,
        by_constant=byte_products.keeping(byte_products.ByteMatrix, quantization.matmul_integer),
    ),
    row(
        "QLinearConv",
        quantization.qlinear_conv,
        since=10,
        by_constant=byte_products.keeping(quantization.ByteFilters, quantization.qlinear_conv),
        kept_input=3,
    ),
    row(
        "QLinearMatMul",
        quantization.qlinear_matmul,
        since=10,
        by_constant=byte_products.keeping(byte_products.ByteMatrix, quantization.qlinear_matmul),
        kept_input=3,
    ),
    row("QuantizeLinear", quantization.quantize_linear, since=10),
)


SEQUENCE: tuple[OnnxRow, ...] = (
    row(
        "Attention",
        attention.attention,
        since=23,
        counts_outputs=True,
        gradient=WithGaps(attention_rules.attention),
    ),
    row("CausalConvWithState", stateful_layers.causal_convolution, since=27, convert=True),
    row("GRU", recurrent.gru, until=6, convert=True),
    row("GRU", recurrent.gru, since=7, convert=True, gradient=WithGaps(recurrence_rules.gru)),
    row("LinearAttention", stateful_layers.linear_attention, since=27, convert=True),
    row("LSTM", recurrent.lstm, until=6, convert=True),
    row("LSTM", recurrent.lstm, since=7, convert=True, gradient=WithGaps(recurrence_rules.lstm)),
    row("RNN", recurrent.rnn, until=6, convert=True),
    row("RNN", recurrent.rnn, since=7, convert=True, gradient=WithGaps(recurrence_rules.rnn)),
    row("RotaryEmbedding", gradient=WithGaps(attention_rules.rotary_embedding)),
)


MACHINE_LEARNING: tuple[OnnxRow, ...] = (
    row("ArrayFeatureExtractor", features.array_feature_extractor, convert=True),
    row("Binarizer", features.binarizer, convert=True),
    row("CastMap", features.cast_map, convert=True),
    row("CategoryMapper", features.category_mapper, convert=True),
    row("DictVectorizer", features.dict_vectorizer, convert=True),
    row("FeatureVectorizer", features.feature_vectorizer, convert=True),
    row("Imputer", features.imputer, convert=True),
    row("LabelEncoder", features.label_encoder, convert=True),
    row("LinearClassifier", linear_models.linear_classifier, convert=True),
    row("LinearRegressor", linear_models.linear_regressor, convert=True),
    row("Normalizer", features.normalizer, convert=True),
    row("OneHotEncoder", features.one_hot_encoder, convert=True),
    row("Scaler", features.scaler, convert=True),
    row("SVMClassifier", linear_models.svm_classifier, convert=True),
    row("SVMRegressor", linear_models.svm_regressor, convert=True),
    row("TreeEnsemble", prepare=tree_models.tree_ensemble),
    row("TreeEnsembleClassifier", prepare=tree_models.tree_classifier),
    row("TreeEnsembleRegressor", prepare=tree_models.tree_regressor),
    row("ZipMap", features.zip_map, convert=True),
)


ML_DOMAIN = "ai.onnx.ml"

ROWS: Mapping[str, tuple[OnnxRow, ...]] = {
    "": (
        *tensor_rows.ELEMENTWISE,
        *tensor_rows.GENERATION,
        *tensor_rows.IMAGE,
        *MATRIX,
        *tensor_rows.MOVEMENT,
        *NORMALIZATION,
        *POOLING,
        *QUANTIZATION,
        *SEQUENCE,
        *tensor_rows.SIGNALS,
        *tensor_rows.STRING,
    ),
    ML_DOMAIN: MACHINE_LEARNING,
}
"""All rows by domain; the standard domain is the empty text, as in schemas."""


def _by_name() -> Mapping[tuple[str, str], list[OnnxRow]]:
    table = defaultdict[tuple[str, str], list[OnnxRow]](list)
    for domain, rows in ROWS.items():
        for entry in rows:
            table[domain, entry.name].append(entry)
    return dict(table)


_TABLE = _by_name()


def find_row(domain: str, name: str, version: int) -> OnnxRow | None:
    """Return the row of a version of an operation; None if the onnx package alone computes it and
    it has no derivative.
    """
    rows = _TABLE.get((domain, name), ())
    return next((entry for entry in rows if entry.since <= version <= entry.until), None)
