"""The table of ONNX operations: one row for each kernel and derivative that an operation had.

The rows of the domain ai.onnx.ml are here: models and features of scikit-learn, LightGBM and
XGBoost. The other rows are in ``tensor_rows`` and ``layer_rows``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from loopscope.ops.onnx import features, layer_rows, linear_models, tensor_rows, tree_models
from loopscope.ops.onnx.row import OnnxRow, row

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
        *layer_rows.MATRIX,
        *tensor_rows.MOVEMENT,
        *layer_rows.NORMALIZATION,
        *layer_rows.POOLING,
        *layer_rows.QUANTIZATION,
        *layer_rows.SEQUENCE,
        *tensor_rows.SIGNALS,
        *tensor_rows.STRING,
    ),
    ML_DOMAIN: MACHINE_LEARNING,
}
"""All rows by domain; the standard domain is the empty text, as in schemas."""


def _by_name() -> Mapping[tuple[str, str], list[OnnxRow]]:
    table = defaultdict[tuple[str, str], list[OnnxRow]](list)
    for domain, rows in ROWS.items():
        for version in rows:
            table[domain, version.name].append(version)
    return dict(table)


_TABLE = _by_name()


def find_row(domain: str, name: str, version: int) -> OnnxRow | None:
    """Return the row of a version of an operation; None if the onnx package alone computes it and
    it has no derivative.
    """
    rows = _TABLE.get((domain, name), ())
    return next((entry for entry in rows if entry.since <= version <= entry.until), None)
