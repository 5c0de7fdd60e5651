"""Makes the recorded models anew: ``python -m tests.engine.ops.recorded.make`` where the packages
below are installed.

Recorded with scikit-learn 1.9.1, skl2onnx 1.20.0, onnxmltools 1.16.0, LightGBM 4.7.0 and XGBoost
3.2.0, which the tests do not need. Each file holds the ONNX model, its inputs, and the library's
predictions in the order of the outputs that they are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
NAMES = np.array(["cat", "dog", "émeu"])


def record(name: str, model: Any, inputs: Mapping[str, Any], predicted: Mapping[str, Any]) -> None:
    """``predicted`` by the name of the output."""
    texts: dict[str, Any] = {f"in {key}": _plain(value) for key, value in inputs.items()} | {
        f"out {key}": _plain(value) for key, value in predicted.items()
    }
    np.savez_compressed(
        FOLDER / f"{name}.npz", model=np.frombuffer(model.SerializeToString(), np.uint8), **texts
    )


def _plain(value: Any) -> np.ndarray:
    made = np.asarray(value)
    return made.astype(str) if made.dtype == object else made


def main() -> None:
    features, classes = _asked()
    _of_scikit_learn(features, classes)
    _of_lightgbm(features, classes)
    _of_xgboost(features, classes)


def _asked() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    features = random.normal(size=(60, 4)).astype(np.float32)
    return features, (features[:, 0] + features[:, 1] > 0).astype(np.int64) + (features[:, 2] > 0.5)


def _classes(
    name: str, estimator: Any, features: np.ndarray, labels: np.ndarray, **options: Any
) -> None:
    from skl2onnx import to_onnx

    estimator.fit(features, labels)
    model = to_onnx(estimator, features[:1], options={id(estimator): {"zipmap": False, **options}})
    asked = features[:12]
    predicted = {"label": estimator.predict(asked), "probabilities": estimator.predict_proba(asked)}
    if options.get("decision_leaf"):
        predicted["decision_leaf"] = estimator.apply(asked).reshape(len(asked), -1)
    record(name, model, {"X": asked}, predicted)


def _of_scikit_learn(features: np.ndarray, classes: np.ndarray) -> None:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    two = (classes > 0).astype(int)
    _classes("svc_two_texts", SVC(probability=True, random_state=0), features, NAMES[two])
    _classes("svc_three", SVC(probability=True, random_state=0), features, classes)
    _classes(
        "random_forest",
        RandomForestClassifier(3, max_depth=3, random_state=0),
        features,
        two * 3 - 4,
    )
    _classes(
        "gradient_boosting",
        GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0),
        features,
        NAMES[classes],
    )
    _classes(
        "leaves",
        DecisionTreeClassifier(max_depth=3, random_state=0),
        features,
        classes,
        decision_leaf=True,
    )

    texts = NAMES[np.random.default_rng(1).integers(0, 3, (60, 2))].astype(object)
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), [0, 1, 2, 3]), ("texts", OneHotEncoder(), [4, 5])]
    )
    mixed = Pipeline(
        [("columns", columns), ("trees", RandomForestClassifier(3, max_depth=3, random_state=0))]
    )
    both = np.concatenate([features.astype(object), texts], axis=1)
    mixed.fit(both, two)
    types = [("numbers", FloatTensorType([None, 4])), ("texts", StringTensorType([None, 2]))]
    model = to_onnx(mixed, initial_types=types, options={id(mixed): {"zipmap": False}})
    asked = {"numbers": features[:12], "texts": texts[:12]}
    record(
        "columns",
        model,
        asked,
        {"label": mixed.predict(both[:12]), "probabilities": mixed.predict_proba(both[:12])},
    )

    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(texts[:40])
    model = to_onnx(ordinal, initial_types=[("X", StringTensorType([None, 2]))])
    unknown = np.array([["cat", "wolf"], ["", "émeu"]], object)
    record("ordinal", model, {"X": unknown}, {"variable": ordinal.transform(unknown)})

    documents = np.array(["the cat sat", "naïve élan", "a cat, a dog", "", "dog"], object)
    words = CountVectorizer(lowercase=False, analyzer="char", ngram_range=(1, 2)).fit(documents)
    model = to_onnx(words, initial_types=[("X", StringTensorType([None]))])
    ascii_only = documents[
        [0, 2, 3, 4]
    ]  # skl2onnx's Tokenizer finds bytes where scikit-learn finds letters
    record("letters", model, {"X": ascii_only}, {"variable": words.transform(ascii_only).toarray()})


def _of_lightgbm(features: np.ndarray, classes: np.ndarray) -> None:
    import lightgbm
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType

    holes = np.where(
        np.random.default_rng(2).random(features.shape) < 0.2, np.nan, features
    ).astype(np.float32)
    settings: dict[str, Any] = {
        "n_estimators": 3,
        "num_leaves": 4,
        "min_child_samples": 5,
        "verbose": -1,
    }
    for name, labels in (("lightgbm_two", classes > 0), ("lightgbm_three", NAMES[classes])):
        made = lightgbm.LGBMClassifier(**settings).fit(
            holes, labels.astype(int) if labels.dtype == bool else labels
        )
        model = onnxmltools.convert_lightgbm(
            made, initial_types=[("X", FloatTensorType([None, 4]))], zipmap=False
        )
        asked = holes[:12]
        record(
            name,
            model,
            {"X": asked},
            {"label": made.predict(asked), "probabilities": made.predict_proba(asked)},
        )


def _of_xgboost(features: np.ndarray, classes: np.ndarray) -> None:
    import onnxmltools
    import xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    settings: dict[str, Any] = {"n_estimators": 3, "max_depth": 2}
    types, asked = [("X", FloatTensorType([None, 4]))], features[:12]
    for name, labels in (("xgboost_two", (classes > 0).astype(int)), ("xgboost_three", classes)):
        made = xgboost.XGBClassifier(**settings, base_score=0.2 if labels.max() == 1 else None).fit(
            features, labels
        )
        model = onnxmltools.convert_xgboost(made, initial_types=types)
        record(
            name,
            model,
            {"X": asked},
            {"label": made.predict(asked), "probabilities": made.predict_proba(asked)},
        )
    regressor = xgboost.XGBRegressor(**settings, base_score=2.5).fit(features, features[:, 0] * 3)
    record(
        "xgboost_number",
        onnxmltools.convert_xgboost(regressor, initial_types=types),
        {"X": asked},
        {"variable": regressor.predict(asked)},
    )


if __name__ == "__main__":
    main()
