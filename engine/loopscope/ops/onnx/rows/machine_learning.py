"""Rows of the domain ai.onnx.ml: models and features of scikit-learn, LightGBM and XGBoost."""

from __future__ import annotations

from loopscope.ops.onnx import features, labels, linear_models, maps, support_vectors, tree_models
from loopscope.ops.onnx.row import OnnxRow, row

ROWS: tuple[OnnxRow, ...] = (
    row("ArrayFeatureExtractor", features.array_feature_extractor, convert=True),
    row("Binarizer", features.binarizer, convert=True),
    row("CastMap", maps.cast_map, convert=True),
    row("CategoryMapper", maps.category_mapper, convert=True),
    row("DictVectorizer", maps.dict_vectorizer, convert=True),
    row("FeatureVectorizer", features.feature_vectorizer, convert=True),
    row("Imputer", features.imputer, convert=True),
    row("LabelEncoder", labels.label_encoder, convert=True),
    row("LinearClassifier", linear_models.linear_classifier, convert=True),
    row("LinearRegressor", linear_models.linear_regressor, convert=True),
    row("Normalizer", features.normalizer, convert=True),
    row("OneHotEncoder", features.one_hot_encoder, convert=True),
    row("Scaler", features.scaler, convert=True),
    row("SVMClassifier", support_vectors.svm_classifier, convert=True),
    row("SVMRegressor", support_vectors.svm_regressor, convert=True),
    row("TreeEnsemble", prepare=tree_models.tree_ensemble),
    row("TreeEnsembleClassifier", prepare=tree_models.tree_classifier),
    row("TreeEnsembleRegressor", prepare=tree_models.tree_regressor),
    row("ZipMap", maps.zip_map, convert=True),
)
