"""Rows of the domain ai.onnx.ml: models and features of scikit-learn, LightGBM and XGBoost."""

from __future__ import annotations

from loopscope.ops.onnx import features, linear_models, tree_models
from loopscope.ops.onnx.row import OnnxRow, row

ROWS: tuple[OnnxRow, ...] = (
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
