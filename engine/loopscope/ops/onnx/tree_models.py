"""ONNX-ML's TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.onnx.linear_models import (
    label_or_nothing,
    labels_at,
    of_two_classes,
    rows_of,
    transformed,
)
from loopscope.ops.onnx.trees import (
    EQ,
    GT,
    GTE,
    LEQ,
    LT,
    MEMBER,
    NEQ,
    Forest,
    laid_out,
    of_one_length,
    summed,
)
from loopscope.ops.values import given

Attributes = Mapping[str, Any]
Kernel = Callable[..., Any]
_MODES: Mapping[str, int] = {
    "BRANCH_LEQ": LEQ,
    "BRANCH_LT": LT,
    "BRANCH_GTE": GTE,
    "BRANCH_GT": GT,
    "BRANCH_EQ": EQ,
    "BRANCH_NEQ": NEQ,
}
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def _features(data: np.ndarray) -> np.ndarray:
    """Return rows of features. Integers are compared as f32, the type of the splits."""
    return rows_of(data.astype(np.float32) if data.dtype.kind in "iu" else data)


def _floats(attributes: Attributes, name: str) -> np.ndarray:
    """Return a list of f32, or from opset 3 a tensor of f32 or f64 in its place."""
    tensor = attributes.get(f"{name}_as_tensor")
    return np.array(attributes.get(name) or () if tensor is None else np.ravel(tensor), np.float64)


def _integers(attributes: Attributes, name: str) -> np.ndarray:
    return np.array(attributes.get(name) or (), np.int64)


def _forest_by_ids(attributes: Attributes, kind: str, targets: int) -> Forest:
    """Return a forest whose nodes have the ids of their tree and their own. ``kind`` of the leaf
    entries is class or target.
    """
    names = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    trees, own, features, yes, no = (_integers(attributes, f"nodes_{name}") for name in names)
    splits, written = _floats(attributes, "nodes_values"), attributes.get("nodes_modes") or ()
    missing = _integers(attributes, "nodes_missing_value_tracks_true")
    missing = missing if missing.size else np.zeros(len(trees), np.int64)
    of_one_length(
        {
            "nodes_treeids": trees,
            "nodes_nodeids": own,
            "nodes_featureids": features,
            "nodes_values": splits,
        }
    )
    of_one_length(
        {
            "nodes_treeids": trees,
            "nodes_truenodeids": yes,
            "nodes_falsenodeids": no,
            "nodes_modes": written,
        }
    )
    of_one_length({"nodes_treeids": trees, "nodes_missing_value_tracks_true": missing})
    modes = np.array([_mode(mode) for mode in written], np.int64)
    inner = modes >= 0
    # Nodes that compare come before all leaves.
    number = np.where(inner, np.cumsum(inner) - 1, inner.sum() + np.cumsum(~inner) - 1)
    known = dict(zip(zip(trees.tolist(), own.tolist(), strict=True), number.tolist(), strict=True))
    roots = dict(zip(reversed(trees.tolist()), reversed(number.tolist()), strict=True))
    starts, added, weights = _leaf_entries(
        attributes, kind, known, int(inner.sum()), int((~inner).sum()), targets
    )
    return laid_out(
        targets,
        features=features[inner],
        splits=splits[inner],
        modes=modes[inner],
        yes=_child_positions(trees[inner], yes[inner], known),
        no=_child_positions(trees[inner], no[inner], known),
        missing=missing[inner] > 0,
        roots=np.array([roots[tree] for tree in dict.fromkeys(trees.tolist())], np.int64),
        starts=starts,
        targets=added,
        weights=weights,
        members={},
    )


def _mode(name: str) -> int:
    if name != "LEAF" and name not in _MODES:
        raise ValueError(
            f"nodes_modes holds {str(name)[:40]!r}, expected LEAF or one of {', '.join(_MODES)}"
        )
    return _MODES.get(name, -1)


def _child_positions(
    trees: np.ndarray, own: np.ndarray, known: Mapping[tuple[int, int], int]
) -> np.ndarray:
    return np.array(
        [known.get(ids, -1) for ids in zip(trees.tolist(), own.tolist(), strict=True)], np.int64
    )


def _leaf_entries(
    attributes: Attributes,
    kind: str,
    known: Mapping[tuple[int, int], int],
    inner: int,
    count: int,
    targets: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the start of the entries of each leaf, their targets, and their weights. Entries of
    nodes that are not leaves are dropped.

    With one target a leaf has one entry, the first, as in ONNX Runtime, because skl2onnx's
    ``decision_leaf`` writes it once for each class.
    """
    trees, own, added = (
        _integers(attributes, f"{kind}_{name}") for name in ("treeids", "nodeids", "ids")
    )
    weights = _floats(attributes, f"{kind}_weights")
    of_one_length(
        {
            f"{kind}_treeids": trees,
            f"{kind}_nodeids": own,
            f"{kind}_ids": added,
            f"{kind}_weights": weights,
        }
    )
    leaf = _child_positions(trees, own, known) - inner
    order = np.argsort(leaf, kind="stable")
    order = order[leaf[order] >= 0]
    if targets == 1:
        order = order[np.unique(leaf[order], return_index=True)[1]]
    return np.searchsorted(leaf[order], np.arange(count + 1)), added[order], weights[order]


def _tree_classifier(attributes: Attributes, outputs: int) -> Kernel:
    texts, numbers = attributes.get("classlabels_strings"), attributes.get("classlabels_int64s")
    classes = max(len(texts or numbers or ()), 1)
    forest = functools.cache(lambda: _forest_by_ids(attributes, "class", classes))

    def compute(data: np.ndarray, /) -> tuple[Any, ...]:
        scores, added = summed(forest(), _features(np.asarray(data)), classes, "SUM")
        base = _floats(attributes, "base_values")
        transform = attributes.get("post_transform") or "NONE"
        only = np.unique(forest().targets)
        if classes <= 2 and len(only) == 1 and base.size < 2:
            return _one_class_scores(scores, int(only[0]), attributes)[:outputs]
        if base.size == 1 and classes == 2:
            scores[:, 0] += base[0]
        else:
            scores = scores + _base_values(base, classes)
        scores = scores.astype(np.float32)
        # Without base values, a class that no leaf adds to is not a candidate.
        candidates = scores if base.size else np.where(added, scores, -np.inf)
        return (
            labels_at(candidates.argmax(axis=1), texts, numbers),
            transformed(scores, transform),
        )[:outputs]

    return compute


def _one_class_scores(
    scores: np.ndarray, only: int, attributes: Attributes
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and scores if all leaves add to one class. Weights that are all positive add up
    to a probability, other weights to a score around 0.
    """
    texts, numbers = attributes.get("classlabels_strings"), attributes.get("classlabels_int64s")
    base = _floats(attributes, "base_values")
    transform = attributes.get("post_transform") or "NONE"
    score = (scores[:, only] + (base[0] if base.size and only == 0 else 0)).astype(np.float32)
    chance = bool((_floats(attributes, "class_weights") >= 0).all())
    if scores.shape[1] == 1:
        return label_or_nothing(score > 0, texts, numbers), transformed(score[:, None], transform)
    labels = labels_at((score > (0.5 if chance else 0)).astype(np.int64), texts, numbers)
    if only == 1:
        return labels, transformed(scores, transform)
    return labels, of_two_classes(score, transform, chance=chance)


def _base_values(base: np.ndarray, targets: int) -> np.ndarray:
    if base.size not in (0, targets):
        raise ValueError(
            f"base_values has {base.size} numbers, expected {targets}: one for each score"
        )
    return base if base.size else np.zeros(targets)


def _tree_regressor(attributes: Attributes, outputs: int) -> Kernel:
    targets = int(attributes.get("n_targets") or 1)
    forest = functools.cache(lambda: _forest_by_ids(attributes, "target", targets))

    def compute(data: np.ndarray, /) -> tuple[Any, ...]:
        scores, _ = summed(
            forest(),
            _features(np.asarray(data)),
            targets,
            attributes.get("aggregate_function") or "SUM",
        )
        scores = scores + _base_values(_floats(attributes, "base_values"), targets)
        return (transformed(scores, attributes.get("post_transform") or "NONE"),)

    return compute


def _tree_ensemble(attributes: Attributes, outputs: int) -> Kernel:
    ids = attributes.get("leaf_targetids") or ()
    targets = int(attributes.get("n_targets") or max((0, *ids)) + 1)
    forest = functools.cache(lambda: _forest_by_positions(attributes, targets))

    def compute(data: np.ndarray, /) -> tuple[Any, ...]:
        rows = np.asarray(data)
        aggregate = _choose(_AGGREGATES, attributes, "aggregate_function", 1)
        scores, _ = summed(forest(), _features(rows), targets, aggregate)
        transform = _choose(_TRANSFORMS, attributes, "post_transform", 0)
        result = scores if transform == "NONE" else transformed(scores, transform)
        return (result.astype(rows.dtype),)

    return compute


def _choose(names: Sequence[str], attributes: Attributes, name: str, otherwise: int) -> str:
    number = attributes.get(name, otherwise)
    if not 0 <= number < len(names):
        raise ValueError(f"{name} is {number}, expected 0 to {len(names) - 1}")
    return names[number]


def _forest_by_positions(attributes: Attributes, targets: int) -> Forest:
    """Return a forest whose nodes and leaves are known by their positions in the lists."""
    names = ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    features, yes, no, to_leaf, to_other_leaf = (
        _integers(attributes, f"nodes_{name}") for name in names
    )
    splits, modes = (np.ravel(attributes[f"nodes_{name}"]) for name in ("splits", "modes"))
    missing = _integers(attributes, "nodes_missing_value_tracks_true")
    missing = missing if missing.size else np.zeros(len(features), np.int64)
    of_one_length(
        {
            "nodes_featureids": features,
            "nodes_truenodeids": yes,
            "nodes_falsenodeids": no,
            "nodes_splits": splits,
        }
    )
    of_one_length(
        {
            "nodes_featureids": features,
            "nodes_trueleafs": to_leaf,
            "nodes_falseleafs": to_other_leaf,
            "nodes_modes": modes,
        }
    )
    of_one_length({"nodes_featureids": features, "nodes_missing_value_tracks_true": missing})
    added = _integers(attributes, "leaf_targetids")
    weights = np.ravel(attributes["leaf_weights"]).astype(np.float64)
    of_one_length({"leaf_targetids": added, "leaf_weights": weights})
    if (np.concatenate([yes, no]) < 0).any():
        raise ValueError("a node leads to a node or leaf that does not exist")
    nodes = len(features)
    for places, leaf in ((yes, to_leaf), (no, to_other_leaf)):
        if (places[leaf == 0] >= nodes).any():
            raise ValueError("a node leads to a node or leaf that does not exist")
    return laid_out(
        targets,
        features=features,
        splits=splits.astype(np.float64),
        modes=modes.astype(np.int64),
        yes=np.where(to_leaf != 0, yes + nodes, yes),
        no=np.where(to_other_leaf != 0, no + nodes, no),
        missing=missing > 0,
        roots=_integers(attributes, "tree_roots"),
        starts=np.arange(len(weights) + 1),
        targets=added,
        weights=weights,
        members=_members(attributes, modes),
    )


def _members(attributes: Attributes, modes: np.ndarray) -> dict[int, np.ndarray]:
    """Return the sets of the nodes of mode MEMBER by node; NaN ends each set."""
    nodes = np.flatnonzero(modes == MEMBER).tolist()
    values = np.ravel(attributes.get("membership_values", np.zeros(0))).astype(np.float64)
    ends = np.flatnonzero(np.isnan(values)).tolist()
    if len(ends) == len(nodes) - 1 and values.size and not np.isnan(values[-1]):
        ends.append(len(values))  # the last set needs no end
    if len(ends) < len(nodes):
        raise ValueError(
            f"membership_values holds {len(ends)} sets for {len(nodes)} nodes of mode MEMBER"
        )
    starts = [0, *(end + 1 for end in ends)]
    return {node: values[start:end] for node, start, end in zip(nodes, starts, ends, strict=False)}


def _prepared(
    make: Callable[[Attributes, int], Kernel], attributes: Attributes, outputs: int
) -> Kernel:
    """Return the kernel of one node, whose trees are laid out once."""
    present = {name: value for name, value in attributes.items() if value is not None}
    compute = make(present, outputs)
    return lambda data: tuple(given(value) for value in compute(data))


tree_classifier = functools.partial(_prepared, _tree_classifier)
tree_regressor = functools.partial(_prepared, _tree_regressor)
tree_ensemble = functools.partial(_prepared, _tree_ensemble)
