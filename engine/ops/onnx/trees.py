"""Decision trees of ONNX-ML as arrays, and which leaf of each tree a row comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from engine.ops.bounds import check_elements

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)
"""How a node compares a feature with its split, numbered as in attribute nodes_modes of TreeEnsemble."""
_AT_ONCE = 2**20
"""So many leaves, of rows times trees, are looked for together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """M nodes that compare, numbered from 0, and L leaves, numbered from M on; leaf l adds the entries from starts[l] to starts[l + 1]."""

    features: np.ndarray
    splits: np.ndarray
    modes: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    missing: np.ndarray
    """Whether NaN goes the way of yes."""
    roots: np.ndarray
    starts: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    members: Mapping[int, np.ndarray]
    """What a node of mode MEMBER compares with."""

    @property
    def nodes(self) -> int:
        return len(self.features)


def checked(forest: Forest, targets: int) -> Forest:
    """``ValueError`` when a node leads nowhere or round in a circle, or a leaf adds to no target."""
    end = forest.nodes + len(forest.starts) - 1
    for name, places in (("a node", np.concatenate([forest.yes, forest.no])), ("a tree", forest.roots)):
        if ((places < 0) | (places >= end)).any():
            raise ValueError(f"{name} leads to a node or leaf that is not there")
    if ((forest.targets < 0) | (forest.targets >= targets)).any():
        raise ValueError(f"a leaf adds to target {int(forest.targets.max())}, expected 0 to below {targets}")
    if (forest.features < 0).any():
        raise ValueError(f"a node compares feature {int(forest.features.min())}, expected 0 or more")
    inner = np.arange(forest.nodes)
    edges = np.concatenate([np.stack([inner, one]) for one in (forest.yes, forest.no)], axis=1)
    edges = edges[:, edges[1] < forest.nodes]
    graph = sparse.csr_array((np.ones(edges.shape[1], np.int8), edges), shape=(forest.nodes, forest.nodes))
    components, _ = csgraph.connected_components(graph, connection="strong")
    if (edges[0] == edges[1]).any() or components < forest.nodes:
        raise ValueError("the nodes of a tree lead round in a circle")
    return forest


def leaves(forest: Forest, rows: np.ndarray) -> np.ndarray:
    """The leaf of each row (N, features) in each tree: (N, trees)."""
    if forest.nodes and forest.features.max() >= rows.shape[1]:
        raise ValueError(f"a tree compares feature {int(forest.features.max())} of data that has {rows.shape[1]}")
    trees = len(forest.roots)
    places = np.tile(forest.roots, len(rows))
    active = np.flatnonzero(places < forest.nodes)
    while active.size:
        nodes = places[active]
        values = rows[active // trees, forest.features[nodes]]
        places[active] = np.where(_decided(forest, nodes, values), forest.yes[nodes], forest.no[nodes])
        active = active[places[active] < forest.nodes]
    return (places - forest.nodes).reshape(len(rows), trees)


def _decided(forest: Forest, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Whether each value goes the way of yes at its node; one that is missing (NaN) goes where the node says."""
    modes, splits = forest.modes[nodes], forest.splits[nodes]
    answers = np.zeros(len(nodes), np.bool_)
    for mode in np.unique(modes).tolist():
        chosen = modes == mode
        answers[chosen] = _compared(mode, values[chosen], splits[chosen], nodes[chosen], forest.members)
    return np.where(np.isnan(values), forest.missing[nodes], answers)


_COMPARISONS: Mapping[int, np.ufunc] = {
    LEQ: np.less_equal,
    LT: np.less,
    GTE: np.greater_equal,
    GT: np.greater,
    EQ: np.equal,
    NEQ: np.not_equal,
}


def _compared(mode: int, values: np.ndarray, splits: np.ndarray, nodes: np.ndarray, members: Mapping[int, np.ndarray]) -> np.ndarray:
    if mode in _COMPARISONS:
        return np.asarray(_COMPARISONS[mode](values, splits))
    if mode != MEMBER:
        raise ValueError(f"nodes_modes holds {mode}, expected 0 to 6")
    answers = np.zeros(len(nodes), np.bool_)
    for node in np.unique(nodes).tolist():
        answers[nodes == node] = np.isin(values[nodes == node], members[node])
    return answers


def summed(forest: Forest, rows: np.ndarray, targets: int, how: str) -> tuple[np.ndarray, np.ndarray]:
    """What the leaves add to each target, (N, targets), and whether any does; where none does it is 0.

    ``how`` is SUM, AVERAGE (over all trees), MIN or MAX.
    """
    check_elements(len(rows) * targets, "the scores of the trees")
    block = max(_AT_ONCE // max(len(forest.roots), targets, 1), 1)
    parts = [_summed(forest, rows[start : start + block], targets, how) for start in range(0, len(rows), block)]
    if not parts:
        return np.zeros((0, targets)), np.zeros((0, targets), np.bool_)
    return np.concatenate([scores for scores, _ in parts]), np.concatenate([added for _, added in parts])


def _summed(forest: Forest, rows: np.ndarray, targets: int, how: str) -> tuple[np.ndarray, np.ndarray]:
    found = leaves(forest, rows).reshape(-1)
    counts = forest.starts[found + 1] - forest.starts[found]
    owner = np.repeat(np.arange(len(found)), counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    entries = forest.starts[found][owner] + within
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
            raise ValueError(f"aggregate_function is {str(other)[:40]!r}, expected SUM, AVERAGE, MIN or MAX")
    return np.where(added, scores, 0).reshape(-1, targets), added.reshape(-1, targets)


def of_one_length(lists: Mapping[str, Sequence[Any] | np.ndarray]) -> None:
    """``ValueError`` when lists that describe the same nodes or leaves have different lengths."""
    lengths = {name: len(one) for name, one in lists.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError("the attributes have different lengths: " + ", ".join(f"{name} {length}" for name, length in lengths.items()))
