"""ONNX-ML's LinearClassifier and LinearRegressor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.onnx.post_transforms import (
    label_or_nothing,
    labels_at,
    of_two_classes,
    transformed,
)

Attributes = Mapping[str, Any]


def rows_of(data: np.ndarray) -> np.ndarray:
    """Return the input of a model as rows (N, features) in f64; a vector is one row."""
    if data.ndim not in (1, 2):
        raise ValueError(f"the data has shape {list(data.shape)}, expected rows of features")
    return np.atleast_2d(data).astype(np.float64)


def _scores(rows: np.ndarray, attributes: Attributes, targets: int) -> np.ndarray:
    """Return the product with the coefficients of each target, plus its intercept."""
    coefficients = np.array(attributes.get("coefficients") or (), np.float64)
    if coefficients.size != targets * rows.shape[1]:
        raise ValueError(
            f"there are {coefficients.size} coefficients for {targets} "
            f"times {rows.shape[1]} features"
        )
    intercepts = np.array(attributes.get("intercepts") or [0.0] * targets, np.float64)
    if intercepts.size != targets:
        raise ValueError(f"there are {intercepts.size} intercepts, expected {targets}")
    return (rows @ coefficients.reshape(targets, -1).T + intercepts).astype(np.float32)


def linear_classifier(data: Array, /, **attributes: Any) -> tuple[Array, Array]:
    """Return labels (N,) and scores (N, classes). The label is that of the greatest score before
    the transform.
    """
    rows = rows_of(data)
    texts, numbers = attributes.get("classlabels_strings"), attributes.get("classlabels_ints")
    known = len(texts or numbers or ())
    intercepts = len(attributes.get("intercepts") or ())
    targets = intercepts or max(len(attributes["coefficients"]) // max(rows.shape[1], 1), 1)
    scores = _scores(rows, attributes, targets)
    transform = attributes.get("post_transform") or "NONE"
    if targets == 1 and known == 2:
        return labels_at((scores[:, 0] > 0).astype(np.int64), texts, numbers), of_two_classes(
            scores[:, 0], transform, chance=True
        )
    if targets == 1:
        return label_or_nothing(scores[:, 0] > 0, texts, numbers), transformed(scores, transform)
    if known not in (0, targets):
        raise ValueError(f"there are {known} labels for {targets} scores, expected one for each")
    return labels_at(scores.argmax(axis=1), texts, numbers), transformed(scores, transform)


def linear_regressor(data: Array, /, **attributes: Any) -> Array:
    scores = _scores(rows_of(data), attributes, int(attributes.get("targets") or 1))
    return transformed(scores, attributes.get("post_transform") or "NONE")
