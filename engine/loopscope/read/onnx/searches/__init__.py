"""The search operations of domain com.microsoft, rewritten as loops over the decoder's graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import FunctionProto, NodeProto

from loopscope.read.onnx.node_attributes import AttributeMap
from loopscope.read.onnx.searches.beams import Beams
from loopscope.read.onnx.searches.decoder_search import GRAPH_DOMAIN, SEARCH_DOMAIN, Search
from loopscope.read.onnx.searches.encoder_beams import EncoderBeams
from loopscope.read.onnx.searches.token_by_token import Greedy, Sampling
from loopscope.read.onnx.searches.whisper_beams import WhisperBeams

__all__ = ["GRAPH_DOMAIN", "SEARCHES", "SEARCH_DOMAIN", "search"]

SEARCHES: Mapping[str, Sequence[type[Search]]] = {
    "GreedySearch": (Greedy,),
    "BeamSearch": (Beams, EncoderBeams, WhisperBeams),
    "Sampling": (Sampling,),
    "WhisperBeamSearch": (WhisperBeams,),
}
"""Implementations by operation type, one for each supported kind of graphs."""


def search(node: NodeProto, attributes: AttributeMap, version: int) -> FunctionProto | None:
    """Return the search as a function of the node's inputs, in ONNX of this opset.

    None if Loopscope does not support the search.
    """
    functions = (kind.of(node, attributes, version) for kind in SEARCHES[node.op_type])
    return next((function for function in functions if function is not None), None)
