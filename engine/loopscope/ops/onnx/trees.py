"""Decision trees of ONNX-ML as arrays, and the leaf of each tree that a row reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from loopscope.ops.kernel_checks import check_elements

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)
"""Comparisons of a feature with a node's split, numbered as in attribute nodes_modes of
TreeEnsemble.
"""
_BLOCK_LEAVES = 2**18
"""Number of leaves (rows times trees) searched at a time."""
_STRIDE = 4
"""Number of comparisons after which rows that have reached a leaf are removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """M nodes that compare, numbered from 0, and L leaves, numbered from M; leaf l adds the entries
    from starts[l] to starts[l + 1].

    Lists of nodes continue over the leaves, which lead to themselves: a row that has reached a leaf
    remains in it.
    """

    nodes: int
    """Number of nodes that compare, M."""
    features: np.ndarray
    splits: np.ndarray
    modes: np.ndarray
    kinds: tuple[int, ...]
    """Modes that occur."""
    ways: np.ndarray
    """Successors of node n: at 2n if its comparison does not hold, at 2n + 1 if it does."""
    missing: np.ndarray
    """True at n if the comparison of node n holds for NaN."""
    roots: np.ndarray
    starts: np.ndarray
    each: int
    """Number of entries of every leaf; 0 if the numbers differ."""
    targets: np.ndarray
    weights: np.ndarray
    members: Mapping[int, np.ndarray]
    """Set that a node of mode MEMBER compares with, by node."""


def laid_out(
    target_count: int,
    *,
    features: np.ndarray,
    splits: np.ndarray,
    modes: np.ndarray,
    yes: np.ndarray,
    no: np.ndarray,
    missing: np.ndarray,
    roots: np.ndarray,
    starts: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    members: Mapping[int, np.ndarray],
) -> Forest:
    """Return a forest from lists of the nodes that compare. Raise ``ValueError`` if a node leads
    nowhere or in a circle, or a leaf adds to an unknown target.
    """
    leaf = np.arange(len(features), len(features) + len(starts) - 1)
    _check_ways(yes, no, roots, len(features) + len(leaf))
    if ((targets < 0) | (targets >= target_count)).any():
        raise ValueError(
            f"a leaf adds to target {int(targets.max())}, expected 0 to below {target_count}"
        )
    if (features < 0).any():
        raise ValueError(f"a node compares feature {int(features.min())}, expected 0 or more")
    counts = np.diff(starts)
    return Forest(
        nodes=len(features),
        features=np.concatenate([features, np.zeros_like(leaf)]),
        splits=np.concatenate([splits, np.zeros(len(leaf))]),
        modes=np.concatenate([modes, np.zeros_like(leaf)]),
        kinds=tuple(np.unique(modes).tolist()),
        ways=np.stack([np.concatenate([no, leaf]), np.concatenate([yes, leaf])], axis=1).reshape(
            -1
        ),
        missing=np.concatenate([missing, np.zeros(len(leaf), np.bool_)]),
        roots=roots,
        starts=starts,
        each=int(counts[0]) if counts.size and (counts == counts[0]).all() else 0,
        targets=targets,
        weights=weights,
        members=members,
    )


def _check_ways(yes: np.ndarray, no: np.ndarray, roots: np.ndarray, end: int) -> None:
    for name, places in (("a node", np.concatenate([yes, no])), ("a tree", roots)):
        if ((places < 0) | (places >= end)).any():
            raise ValueError(f"{name} leads to a node or leaf that does not exist")
    nodes = len(yes)
    edges = np.concatenate(
        [np.stack([np.arange(nodes), successors]) for successors in (yes, no)], axis=1
    )
    edges = edges[:, edges[1] < nodes]
    graph = sparse.csr_array((np.ones(edges.shape[1], np.int8), edges), shape=(nodes, nodes))
    components, _ = csgraph.connected_components(graph, connection="strong")
    if (edges[0] == edges[1]).any() or components < nodes:
        raise ValueError("the nodes of a tree form a cycle")


def leaves(forest: Forest, rows: np.ndarray) -> np.ndarray:
    """Return the leaf of each row (N, features) in each tree: (N, trees)."""
    if forest.nodes and (last_feature := int(forest.features.max())) >= rows.shape[1]:
        raise ValueError(f"a tree compares feature {last_feature} of data that has {rows.shape[1]}")
    trees, flat, missing = len(forest.roots), rows.reshape(-1), bool(np.isnan(rows).any())
    places = np.tile(forest.roots, len(rows))
    active = np.flatnonzero(places < forest.nodes)
    nodes, start = places[active], active // max(trees, 1) * rows.shape[1]
    while active.size:
        for _ in range(_STRIDE):
            values = flat.take(start + forest.features.take(nodes))
            holds = _compare(forest, nodes, values)
            if missing:
                holds = np.where(np.isnan(values), forest.missing.take(nodes), holds)
            nodes = forest.ways.take(2 * nodes + holds)
        places[active] = nodes
        going = np.flatnonzero(nodes < forest.nodes)
        active, nodes, start = active.take(going), nodes.take(going), start.take(going)
    return (places - forest.nodes).reshape(len(rows), trees)


def _compare(forest: Forest, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return True for each node whose comparison holds for its value."""
    splits = forest.splits.take(nodes)
    if len(forest.kinds) == 1:
        return _compare_by_mode(forest.kinds[0], values, splits, nodes, forest.members)
    modes, answers = forest.modes.take(nodes), np.zeros(len(nodes), np.bool_)
    for mode in forest.kinds:
        chosen = modes == mode
        answers[chosen] = _compare_by_mode(
            mode, values[chosen], splits[chosen], nodes[chosen], forest.members
        )
    return answers


_COMPARISONS: Mapping[int, np.ufunc] = {
    LEQ: np.less_equal,
    LT: np.less,
    GTE: np.greater_equal,
    GT: np.greater,
    EQ: np.equal,
    NEQ: np.not_equal,
}


def _compare_by_mode(
    mode: int,
    values: np.ndarray,
    splits: np.ndarray,
    nodes: np.ndarray,
    members: Mapping[int, np.ndarray],
) -> np.ndarray:
    if mode in _COMPARISONS:
        return np.asarray(_COMPARISONS[mode](values, splits))
    if mode != MEMBER:
        raise ValueError(f"nodes_modes holds {mode}, expected 0 to 6")
    answers = np.zeros(len(nodes), np.bool_)
    for node in np.intersect1d(nodes, list(members)).tolist():
        answers[nodes == node] = np.isin(values[nodes == node], members[node])
    return answers


def summed(
    forest: Forest, rows: np.ndarray, targets: int, how: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the leaves for each target, (N, targets), 0 without a leaf, and True for
    each target that a leaf adds to.

    ``how`` is SUM, AVERAGE (over all trees), MIN or MAX.
    """
    check_elements(len(rows) * targets, "the scores of the trees")
    block = max(_BLOCK_LEAVES // max(len(forest.roots), targets, 1), 1)
    parts = [
        _sum_block(forest, rows[start : start + block], targets, how)
        for start in range(0, len(rows), block)
    ]
    if not parts:
        return np.zeros((0, targets)), np.zeros((0, targets), np.bool_)
    return np.concatenate([scores for scores, _ in parts]), np.concatenate(
        [added for _, added in parts]
    )


def _sum_block(
    forest: Forest, rows: np.ndarray, targets: int, how: str
) -> tuple[np.ndarray, np.ndarray]:
    reached = leaves(forest, rows).reshape(-1)
    owner, entries = _entries_of(forest, reached)
    places = owner // max(len(forest.roots), 1) * targets + forest.targets[entries]
    size = len(rows) * targets
    added = np.bincount(places, minlength=size) > 0
    match how:
        case "SUM" | "AVERAGE":
            scores = np.bincount(places, forest.weights[entries], size).astype(np.float64)
            scores /= max(len(forest.roots), 1) if how == "AVERAGE" else 1
        case "MIN" | "MAX":
            scores = np.full(size, np.inf if how == "MIN" else -np.inf)
            (np.minimum if how == "MIN" else np.maximum).at(scores, places, forest.weights[entries])
        case other:
            raise ValueError(
                f"aggregate_function is {str(other)[:40]!r}, expected SUM, AVERAGE, MIN or MAX"
            )
    return np.where(added, scores, 0).reshape(-1, targets), added.reshape(-1, targets)


def _entries_of(forest: Forest, reached: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of all reached leaves, and for each entry the index of its leaf."""
    if forest.each == 1:
        return np.arange(len(reached)), reached
    counts = forest.starts[reached + 1] - forest.starts[reached]
    owner = np.repeat(np.arange(len(reached)), counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    return owner, forest.starts[reached][owner] + within


def of_one_length(lists: Mapping[str, Sequence[Any] | np.ndarray]) -> None:
    """Raise ``ValueError`` if lists that describe the same nodes or leaves have different
    lengths.
    """
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            "the attributes have different lengths: "
            + ", ".join(f"{name} {length}" for name, length in lengths.items())
        )
