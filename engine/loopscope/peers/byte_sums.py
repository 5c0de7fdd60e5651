"""Detection of byte products that ONNX Runtime accumulates in 16 bits on this processor."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

from loopscope.checks.rules.byte_weights import eight_bit_weights
from loopscope.checks.subject import Subject
from loopscope.errors import EngineError, elided
from loopscope.ir.address import Address
from loopscope.ir.model import Model
from loopscope.ir.readable import readable
from loopscope.ir.walk import graphs
from loopscope.ops.dialect import catalogue_for
from loopscope.peers import npz_protocol
from loopscope.peers.other_runtimes import Patience, run_file
from loopscope.peers.report import ValueDifference

_MAX_INPUT, _WEIGHT = 255, 127
_FUSED_TYPES = frozenset({
    *("QuantizeLinear", "DequantizeLinear", "Cast", "Mul", "Add", "Relu", "Clip", "MaxPool"),
    *("Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"),
})  # fmt: skip
"""Operations that ONNX Runtime fuses with a byte product, or that only move its result."""


def sentence(model: Model, first: ValueDifference | None, patience: Patience) -> str:
    """Return a sentence if ONNX Runtime differs because it sums pairs of byte products in 16 bits
    here.

    Return an empty text unless the model has weights for which that matters, in the first differing
    operation if one is known.
    """
    if model.dialect != "onnx":
        return ""
    places = [
        weight.where.address for weight in eight_bit_weights(Subject(model, catalogue_for("onnx")))
    ]
    if first is not None:
        places = _source_products(model, Address.parse(first.address).static, places)
    if not places or not sums_in_16_bits(patience):
        return ""
    place = elided(readable(places[0]))
    return (
        f"This processor has no VNNI: ONNX Runtime adds pairs of products of 8-bit weights, "
        f"as in {place}, in 16 bits, where they stop at 32767 or -32768. "
        f"Here the sums are exact (LS921)."
    )


def _source_products(model: Model, address: str, places: Sequence[str]) -> list[str]:
    """Return the given place that is the operation at an address, or reaches it through rounding
    and bias alone.

    ONNX Runtime fuses a product with the rounding of its result, so that the rounded value is the
    first that can differ.
    """
    graph_address, _, label = address.rpartition("/")
    graph = next(
        (
            candidate
            for candidate in graphs(model)
            if candidate.address == graph_address and label in candidate.labels.values()
        ),
        None,
    )
    if graph is None:
        return []
    layers = {label: layer for layer, label in graph.labels.items()}
    waiting = [layers[label]]
    for layer in waiting:
        place, node = f"{graph.address}/{graph.labels[layer]}", graph.graph.by_id[layer]
        if place in places:
            return [place]
        if node.type in _FUSED_TYPES:
            waiting += [
                source.layer
                for source in graph.graph.sources[layer]
                if source is not None and source.layer not in waiting
            ]
    return []


def sums_in_16_bits(patience: Patience) -> bool:
    """Return True if ONNX Runtime gives 32767 for 2 x 255 x 127 on this processor; False if it
    cannot run.
    """
    kinds = {
        "x": (TensorProto.UINT8, (1, 2)),
        "w": (TensorProto.INT8, (2, 1)),
        "y": (TensorProto.INT32, (1, 1)),
    }
    *inputs, output = [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()]
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])], "pair", inputs, [output]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        npz_protocol.write(
            folder / "inputs.npz",
            [np.full((1, 2), _MAX_INPUT, np.uint8), np.full((2, 1), _WEIGHT, np.int8)],
        )
        (folder / "pair.onnx").write_bytes(model.SerializeToString())
        try:
            _, outputs = run_file("onnx", folder, folder / "pair.onnx", patience)
        except EngineError:
            return False
        return int(npz_protocol.read(outputs)["y"].item()) != 2 * _MAX_INPUT * _WEIGHT
