"""The searches of the domain com.microsoft, written as the loops that they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import FunctionProto, NodeProto

from loopscope.read.onnx.attributes import Given
from loopscope.read.onnx.searches.beams import Beams
from loopscope.read.onnx.searches.decoder_search import GRAPHS, OURS, Search
from loopscope.read.onnx.searches.encoder_beams import EncoderBeams
from loopscope.read.onnx.searches.token_by_token import Greedy, Sampling

__all__ = ["GRAPHS", "OURS", "SEARCHES", "search"]

SEARCHES: Mapping[str, Sequence[type[Search]]] = {
    "GreedySearch": (Greedy,),
    "BeamSearch": (Beams, EncoderBeams),
    "Sampling": (Sampling,),
}
"""By the operation's type, for each kind of graphs that it may have."""


def search(node: NodeProto, attributes: Given, version: int) -> FunctionProto | None:
    """A function of the node's inputs, in ONNX of this opset; None where the search is not run
    here.
    """
    found = (kind.of(node, attributes, version) for kind in SEARCHES[node.op_type])
    return next((one for one in found if one is not None), None)
