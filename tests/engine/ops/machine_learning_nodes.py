"""Nodes of ai.onnx.ml as models, run here and by ONNX Runtime; random trees for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, ValueInfoProto, helper

import loopscope

DOMAIN = "ai.onnx.ml"
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def model(
    type: str, version: int, inputs: Sequence[np.ndarray], outputs: int = 1, **attributes: Any
) -> bytes:
    """One node; attributes that are None are left out."""
    given = {name: value for name, value in attributes.items() if value is not None}
    names = [f"x{number}" for number in range(len(inputs))]
    made = [f"y{number}" for number in range(outputs)]
    node = helper.make_node(type, names, made, domain=DOMAIN, **given)
    asked = [
        helper.make_tensor_value_info(name, _kind(one), [None] * one.ndim)
        for name, one in zip(names, inputs, strict=True)
    ]
    graph = helper.make_graph([node], "one", asked, [ValueInfoProto(name=name) for name in made])
    opsets = [helper.make_opsetid(DOMAIN, version), helper.make_opsetid("", 17)]
    data: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return data


def _kind(one: np.ndarray) -> int:
    return TensorProto.STRING if one.dtype == object else helper.np_dtype_to_tensor_dtype(one.dtype)


def ours(data: bytes, inputs: Sequence[np.ndarray]) -> list[Any]:
    return [
        np.asarray(one) for one in loopscope.run(loopscope.read_model(data), list(inputs)).outputs
    ]


def theirs(data: bytes, inputs: Sequence[np.ndarray]) -> list[Any]:
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return list(session.run(None, {f"x{number}": one for number, one in enumerate(inputs)}))


def same(
    here: Sequence[np.ndarray], there: Sequence[np.ndarray], rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Labels and shapes and element types alike; floats but for the roundings of f32, in which
    ONNX Runtime adds up.
    """
    for one, other in zip(here, there, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        if other.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
        else:
            assert one.tolist() == other.tolist()


def forest(
    random: np.random.Generator, *, trees: int, features: int, modes: Sequence[str], missing: bool
) -> tuple[dict[str, Any], list]:
    """Attributes of the nodes of random trees, and (tree, node) of each leaf."""
    names = (
        "treeids",
        "nodeids",
        "featureids",
        "values",
        "modes",
        "truenodeids",
        "falsenodeids",
        "missing_value_tracks_true",
    )
    nodes: dict[str, list[Any]] = {f"nodes_{name}": [] for name in names}
    leaves: list[tuple[int, int]] = []
    for tree in range(trees):
        size = int(random.integers(1, 6))  # that many nodes compare; tree 0 is one leaf
        inner = size if tree else 0
        for node in range(2 * inner + 1):
            leaf = node >= inner
            split = float(np.float32(random.integers(-2, 3) / 2))
            mode = "LEAF" if leaf else modes[int(random.integers(len(modes)))]
            row = (
                tree,
                node,
                int(random.integers(features)),
                split,
                mode,
                *_children(node, leaf),
                int(missing and random.random() < 0.5),
            )
            for name, value in zip(names, row, strict=True):
                nodes[f"nodes_{name}"].append(value)
            if leaf:
                leaves.append((tree, node))
    return nodes, leaves


def _children(node: int, leaf: bool) -> tuple[int, int]:
    return (0, 0) if leaf else (2 * node + 1, 2 * node + 2)


def entries(
    random: np.random.Generator,
    leaves: Sequence[tuple[int, int]],
    kind: str,
    targets: Sequence[int],
    *,
    negative: bool,
) -> Any:
    """Attributes of what each leaf adds: to one target of those, or to all of them."""
    rows = []
    for tree, node in leaves:
        added = targets if random.random() < 0.5 else [targets[int(random.integers(len(targets)))]]
        rows += [
            (tree, node, one, float(np.float32(random.random() - 0.5 * negative))) for one in added
        ]
    trees, nodes, ids, weights = (list(one) for one in zip(*rows, strict=True))
    return {
        f"{kind}_treeids": trees,
        f"{kind}_nodeids": nodes,
        f"{kind}_ids": ids,
        f"{kind}_weights": weights,
    }
