"""The searches of the domain com.microsoft, written as the loops that they are."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import FunctionProto, NodeProto

from engine.read.onnx.attributes import Given
from engine.read.onnx.searches.beams import Beams
from engine.read.onnx.searches.decoder_search import GRAPHS, Search
from engine.read.onnx.searches.token_by_token import Greedy, Sampling

__all__ = ["GRAPHS", "SEARCHES", "search"]

SEARCHES: Mapping[str, type[Search]] = {"GreedySearch": Greedy, "BeamSearch": Beams, "Sampling": Sampling}
"""By the operation's type."""


def search(node: NodeProto, attributes: Given, version: int) -> FunctionProto | None:
    """A function of the node's inputs, in ONNX of this opset; None where the search is not run here."""
    return SEARCHES[node.op_type].of(node, attributes, version)
