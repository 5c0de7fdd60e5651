"""Tree ensembles are as ONNX Runtime has them; where that departs from ONNX's own words, they
are as the words say.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

import loopscope
from tests.engine.ops.machine_learning_nodes import (
    TRANSFORMS,
    entries,
    forest,
    model,
    ours,
    same,
    theirs,
)

LEQ, MIXED = ("BRANCH_LEQ",), ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ")
STUMP: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
SIDES = np.array([[-1.0], [1.0]], np.float32)


def _asked(random: np.random.Generator, dtype: str) -> np.ndarray:
    """Many values at the splits themselves, and NaN."""
    data = random.integers(-4, 5, (60, 4)) / 2
    if dtype.startswith("float"):
        data = np.where(random.random(data.shape) < 0.1, np.nan, data)
    return data.astype(dtype)


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("classes", [3, 5])
@pytest.mark.parametrize(
    ("modes", "missing", "base"), [(LEQ, False, False), (MIXED, True, False), (MIXED, False, True)]
)
def test_classes(
    classes: int, modes: tuple[str, ...], missing: bool, base: bool, transform: str
) -> None:
    random = np.random.default_rng(classes)
    nodes, leaves = forest(random, trees=9, features=4, modes=modes, missing=missing)
    attributes = {
        **nodes,
        **entries(random, leaves, "class", range(classes), negative=True),
        "classlabels_strings": [f"class {number}" for number in range(classes)],
        "post_transform": transform,
        "base_values": random.normal(size=classes).round(2).tolist() if base else None,
    }
    data = [_asked(random, "float32")]
    written = model("TreeEnsembleClassifier", 3, data, 2, **attributes)
    same(ours(written, data), theirs(written, data), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_what_is_compared_may_be_of_any_type(dtype: str) -> None:
    random = np.random.default_rng(7)
    nodes, leaves = forest(random, trees=6, features=4, modes=LEQ, missing=True)
    attributes = {
        **nodes,
        **entries(random, leaves, "class", range(3), negative=False),
        "classlabels_int64s": [7, -1, 4],
    }
    data = [_asked(random, dtype)]
    written = model("TreeEnsembleClassifier", 3, data, 2, **attributes)
    same(ours(written, data), theirs(written, data), atol=1e-5)


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("negative", [False, True], ids=["chances", "scores"])
@pytest.mark.parametrize("base", [None, [0.25]], ids=["no base", "base"])
@pytest.mark.parametrize("only", [0, 1])
def test_two_classes_of_one_score(
    only: int, base: list[float] | None, negative: bool, transform: str
) -> None:
    random = np.random.default_rng(3)
    nodes, leaves = forest(random, trees=3, features=4, modes=LEQ, missing=False)
    added = entries(random, leaves, "class", [only], negative=negative)
    data = [_asked(random, "float32")]
    attributes = {
        **nodes,
        **added,
        "classlabels_strings": ["no", "yes"],
        "base_values": base,
        "post_transform": transform,
    }
    written = model("TreeEnsembleClassifier", 3, data, 2, **attributes)
    same(ours(written, data), theirs(written, data), atol=1e-5)


def _stump_of_classes(**attributes: Any) -> list[list[Any]]:
    leaves = {
        "class_treeids": [0] * 4,
        "class_nodeids": [1, 1, 2, 2],
        "class_ids": [0, 1, 0, 1],
        "class_weights": [0.25, 0.5, 0.75, 0.5],
    }
    written = model(
        "TreeEnsembleClassifier",
        3,
        [SIDES],
        2,
        **{**STUMP, **leaves, "classlabels_int64s": [5, 9], **attributes},
    )
    return [one.tolist() for one in ours(written, [SIDES])]


def test_two_classes_of_two_scores() -> None:
    """Labels are those of the file: ONNX Runtime gives 1 here, whatever they are, and with base
    values drops a score.
    """
    assert _stump_of_classes() == [[9, 5], [[0.25, 0.5], [0.75, 0.5]]]
    assert _stump_of_classes(base_values=[0.5, 0.0]) == [[5, 5], [[0.75, 0.5], [1.25, 0.5]]]


@pytest.mark.parametrize(
    ("label", "expected"),
    [({"classlabels_int64s": [1]}, [1, 0]), ({"classlabels_strings": ["spam"]}, ["spam", ""])],
)
def test_one_class(label: dict[str, Any], expected: list[Any]) -> None:
    """ONNX Runtime ends the process where the label is a text."""
    leaves = {
        "class_treeids": [0, 0],
        "class_nodeids": [1, 2],
        "class_ids": [0, 0],
        "class_weights": [0.5, -0.5],
    }
    written = model(
        "TreeEnsembleClassifier",
        3,
        [SIDES],
        2,
        **{**STUMP, **leaves, "classlabels_int64s": None, **label},
    )
    labels, scores = ours(written, [SIDES])
    assert labels.tolist() == expected
    assert scores.tolist() == [[0.5], [-0.5]]


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("base", [False, True], ids=["no base", "base"])
def test_several_targets(aggregate: str, transform: str, base: bool) -> None:
    """Each tree speaks of every target: to one that none speaks of, ONNX Runtime does not add
    its base value.
    """
    random = np.random.default_rng(11)
    nodes, leaves = forest(random, trees=8, features=4, modes=MIXED, missing=True)
    rows = [
        (*leaf, target, float(np.float32(random.normal())))
        for leaf in leaves
        for target in range(3)
    ]
    names = ("target_treeids", "target_nodeids", "target_ids", "target_weights")
    attributes = {
        **nodes,
        **{name: list(one) for name, one in zip(names, zip(*rows, strict=True), strict=True)},
        "n_targets": 3,
        "aggregate_function": aggregate,
        "post_transform": transform,
        "base_values": [0.5, -1.0, 2.0] if base else None,
    }
    data = [_asked(random, "float32")]
    written = model("TreeEnsembleRegressor", 3, data, **attributes)
    same(ours(written, data), theirs(written, data), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_one_target_takes_the_first_entry_of_a_leaf(aggregate: str) -> None:
    """As skl2onnx's decision_leaf wants it, which writes the entry of a leaf once for each
    class.
    """
    leaves = {
        "target_treeids": [0] * 4,
        "target_nodeids": [1, 1, 2, 2],
        "target_ids": [0] * 4,
        "target_weights": [1.0, 2, 5, 3],
    }
    attributes: dict[str, Any] = {
        **STUMP,
        **leaves,
        "n_targets": 1,
        "aggregate_function": aggregate,
        "base_values": [10.0],
    }
    written = model("TreeEnsembleRegressor", 3, [SIDES], **attributes)
    (made,) = ours(written, [SIDES])
    assert made.tolist() == [[11], [15]]
    same([made], theirs(written, [SIDES]))


def test_numbers_of_f64_come_as_tensors() -> None:
    """A split between two neighbours of f32."""
    data = [np.array([[1 + 1e-9], [1 + 3e-9]])]
    attributes: dict[str, Any] = {
        **STUMP,
        "n_targets": 1,
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
    }
    attributes["nodes_values"] = None
    attributes["nodes_values_as_tensor"] = numpy_helper.from_array(np.array([1 + 2e-9, 0, 0]))
    attributes["target_weights_as_tensor"] = numpy_helper.from_array(np.array([1.0, 2.0]))
    written = model("TreeEnsembleRegressor", 3, data, **attributes)
    same(ours(written, data), theirs(written, data))
    assert ours(written, data)[0].tolist() == [[1], [2]]


def test_a_transform_is_applied_to_one_target_too() -> None:
    """As ONNX says; ONNX Runtime leaves it out but for PROBIT."""
    leaves: dict[str, Any] = {
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [-1.0, 2.0],
    }
    written = model(
        "TreeEnsembleRegressor",
        3,
        [SIDES],
        **STUMP,
        **leaves,
        n_targets=1,
        post_transform="LOGISTIC",
    )
    np.testing.assert_allclose(ours(written, [SIDES])[0], 1 / (1 + np.exp([[1], [-2]])), rtol=1e-6)


@pytest.mark.parametrize("tracks", [0, 1])
@pytest.mark.parametrize("mode", ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"])
def test_nan_goes_where_the_node_says(mode: str, tracks: int) -> None:
    """To the false branch unless told; ONNX Runtime goes to the true one where it compares with
    NEQ.
    """
    leaves = {
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 0.0],
    }
    nodes = {
        **STUMP,
        "nodes_modes": [f"BRANCH_{mode}", "LEAF", "LEAF"],
        "nodes_missing_value_tracks_true": [tracks, 0, 0],
    }
    data = [np.array([[np.nan], [-1], [0], [1]], np.float32)]
    written = model("TreeEnsembleRegressor", 3, data, **{**nodes, **leaves, "n_targets": 1})
    (made,) = ours(written, data)
    assert made[0] == tracks
    np.testing.assert_array_equal(made[1:], theirs(written, data)[0][1:])


def _ensemble(**attributes: Any) -> dict[str, Any]:
    """Two trees of TreeEnsemble-5: x0 in {2, 4}, else x1 <= 1; and x1 > 0."""
    tensor = numpy_helper.from_array
    return {
        "n_targets": 2,
        "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 1],
        "nodes_modes": tensor(np.array([6, 0, 3], np.uint8)),
        "nodes_splits": tensor(np.array([0, 1, 0], np.float32)),
        "nodes_truenodeids": [0, 1, 3],
        "nodes_trueleafs": [1, 1, 1],
        "nodes_falsenodeids": [1, 2, 4],
        "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 1, 0],
        "leaf_weights": tensor(np.array([1, 2, 4, 8, 16], np.float32)),
        "membership_values": tensor(np.array([2, 4, np.nan], np.float32)),
        **attributes,
    }


@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
def test_nodes_by_their_places(aggregate: int) -> None:
    data = [np.array([[2, 0], [4, 2], [3, 1], [3, 2], [0, -1]], np.float32)]
    written = model("TreeEnsemble", 5, data, **_ensemble(aggregate_function=aggregate))
    same(ours(written, data), theirs(written, data))


@pytest.mark.parametrize(
    ("number", "transform"), [(0, "NONE"), (1, "SOFTMAX"), (2, "LOGISTIC"), (3, "SOFTMAX_ZERO")]
)
def test_transforms_by_number(number: int, transform: str) -> None:
    """As ONNX counts them; ONNX Runtime takes 1 for LOGISTIC and 2 for SOFTMAX."""
    data = [np.array([[2, 0], [4, 2], [3, 1]], np.float32)]
    plain = ours(model("TreeEnsemble", 5, data, **_ensemble()), data)[0].astype(np.float64)
    powers = np.exp(plain - plain.max(axis=1, keepdims=True))
    expected = {
        "NONE": plain,
        "SOFTMAX": powers / powers.sum(axis=1, keepdims=True),
        "LOGISTIC": 1 / (1 + np.exp(-plain)),
        "SOFTMAX_ZERO": np.where(plain == 0, 0, powers)
        / np.where(plain == 0, 0, powers).sum(axis=1, keepdims=True),
    }
    (made,) = ours(model("TreeEnsemble", 5, data, **_ensemble(post_transform=number)), data)
    np.testing.assert_allclose(made, expected[transform], rtol=1e-6)


def test_leaves_at_any_depth() -> None:
    """A tree of one leaf, and one that is a chain: comparison n is node 2n, with leaf 2n + 1 and
    the next comparison as children.
    """
    depth = 23
    comparisons = [
        (0, 2 * number, number, "BRANCH_GT", 2 * number + 2, 2 * number + 1)
        for number in range(depth)
    ]
    leaves = [(0, 2 * number + 1) for number in range(depth)] + [(0, 2 * depth), (1, 0)]
    nodes = [*comparisons, *((*leaf, 0, "LEAF", 0, 0) for leaf in leaves)]
    names = ("treeids", "nodeids", "values", "modes", "truenodeids", "falsenodeids")
    attributes: dict[str, Any] = {
        f"nodes_{name}": list(one)
        for name, one in zip(names, zip(*nodes, strict=True), strict=True)
    }
    attributes |= {
        "nodes_values": [float(split) for split in attributes["nodes_values"]],
        "nodes_featureids": [0] * len(nodes),
    }
    attributes |= {
        "target_treeids": [tree for tree, _ in leaves],
        "target_nodeids": [node for _, node in leaves],
    }
    attributes |= {
        "target_ids": [0] * len(leaves),
        "target_weights": [float(number) for number in range(len(leaves))],
        "n_targets": 1,
    }
    data = [np.linspace(-1, depth, 2 * depth + 3).astype(np.float32)[:, None]]
    written = model("TreeEnsembleRegressor", 3, data, **attributes)
    same(ours(written, data), theirs(written, data))


def test_a_set_of_members() -> None:
    data = [np.array([[2, 0], [4, 2], [3, 1], [3, 2]], np.float16)]
    (made,) = ours(model("TreeEnsemble", 5, data, **_half(_ensemble())), data)
    assert made.dtype == np.float16
    assert made.tolist() == [[17, 0], [1, 8], [0, 10], [4, 8]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("members", [[2, 4], [2, -2], [0, 1], [2, 40]])
def test_only_what_equals_a_member_is_one(members: list[float], dtype: type) -> None:
    """ONNX Runtime cuts values to integers first where a member is below 1 or above the bits of
    a word: 2.5 is 2 there.
    """
    values: np.ndarray = np.array([2, 2.5, -2, -1.5, 0, 0.5, 1, 34, 40, 40.5], dtype)
    attributes = _ensemble(
        n_targets=1,
        tree_roots=[0],
        nodes_falsenodeids=[1, 1, 1],
        nodes_falseleafs=[1, 1, 1],
        leaf_targetids=[0] * 5,
        nodes_splits=numpy_helper.from_array(np.zeros(3, dtype)),
        leaf_weights=numpy_helper.from_array(np.array([1, 0, 0, 0, 0], dtype)),
        membership_values=numpy_helper.from_array(np.array([*members, np.nan], dtype)),
    )
    data = [np.stack([values, np.zeros_like(values)], axis=1)]
    written = model("TreeEnsemble", 5, data, **attributes)
    assert ours(written, data)[0].ravel().tolist() == np.isin(values, members).tolist()
    whole = values == np.trunc(values)
    np.testing.assert_array_equal(ours(written, data)[0][whole], theirs(written, data)[0][whole])


def _half(attributes: dict[str, Any]) -> dict[str, Any]:
    """Numbers as f16, which ONNX Runtime does not take."""
    names = ("nodes_splits", "leaf_weights", "membership_values")
    return attributes | {
        name: numpy_helper.from_array(numpy_helper.to_array(attributes[name]).astype(np.float16))
        for name in names
    }


ONE_TARGET: dict[str, Any] = {
    "n_targets": 1,
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
}
REFUSED: dict[str, tuple[str, int, dict[str, Any], str]] = {
    "a circle": (
        "TreeEnsembleRegressor",
        3,
        {**STUMP, **ONE_TARGET, "nodes_truenodeids": [0, 0, 0]},
        "form a cycle",
    ),
    "a node that is not there": (
        "TreeEnsembleRegressor",
        3,
        {**STUMP, **ONE_TARGET, "nodes_truenodeids": [8, 0, 0]},
        "does not exist",
    ),
    "a feature that is not there": (
        "TreeEnsembleRegressor",
        3,
        {**STUMP, **ONE_TARGET, "nodes_featureids": [3, 0, 0]},
        "feature 3 of data",
    ),
    "a target that is not there": (
        "TreeEnsembleRegressor",
        3,
        {**STUMP, **ONE_TARGET, "target_ids": [0, 4]},
        "adds to target 4",
    ),
    "too few weights": (
        "TreeEnsembleRegressor",
        3,
        {**STUMP, **ONE_TARGET, "target_weights": [1.0]},
        "target_weights 1",
    ),
    "an unknown mode": (
        "TreeEnsembleRegressor",
        3,
        {**STUMP, **ONE_TARGET, "nodes_modes": ["IF", "LEAF", "LEAF"]},
        "holds 'IF'",
    ),
    "another transform": (
        "TreeEnsembleRegressor",
        3,
        {**STUMP, **ONE_TARGET, "post_transform": "TANH"},
        "is 'TANH'",
    ),
    "another aggregate": (
        "TreeEnsembleRegressor",
        3,
        {**STUMP, **ONE_TARGET, "aggregate_function": "MEDIAN"},
        "is 'MEDIAN'",
    ),
    "too many base values": (
        "TreeEnsembleRegressor",
        3,
        {**STUMP, **ONE_TARGET, "base_values": [1.0, 2.0]},
        "base_values has 2",
    ),
    "a root that is not there": (
        "TreeEnsemble",
        5,
        _ensemble(tree_roots=[0, 9]),
        "a tree leads to",
    ),
    "a circle of places": (
        "TreeEnsemble",
        5,
        _ensemble(nodes_falsenodeids=[0, 2, 4]),
        "form a cycle",
    ),
    "no sets": ("TreeEnsemble", 5, _ensemble(membership_values=None), "0 sets"),
}


@pytest.mark.parametrize(
    ("type", "version", "attributes", "message"), REFUSED.values(), ids=REFUSED.keys()
)
def test_what_is_refused_says_why(
    type: str, version: int, attributes: dict[str, Any], message: str
) -> None:
    data = [np.ones((2, 2), np.float32)]
    with pytest.raises(loopscope.RunStopped, match=message):
        ours(model(type, version, data, **attributes), data)


def test_no_rows() -> None:
    empty = np.zeros((0, 1), np.float32)
    assert ours(model("TreeEnsembleRegressor", 3, [empty], **STUMP, **ONE_TARGET), [empty])[
        0
    ].shape == (0, 1)
