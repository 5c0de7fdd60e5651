"""Products of bytes that ONNX Runtime sums in 16 bits: the processor at hand is asked, where
numbers differ, so that it can be said.
"""

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

_HIGHEST, _WEIGHT = 255, 127
_JOINED = frozenset({
    *("QuantizeLinear", "DequantizeLinear", "Cast", "Mul", "Add", "Relu", "Clip", "MaxPool"),
    *("Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"),
})  # fmt: skip
"""Operations that ONNX Runtime joins with a product of bytes, or that only move its result."""


def sentence(model: Model, first: ValueDifference | None, patience: Patience) -> str:
    """Why ONNX Runtime differs: it sums pairs of products in 16 bits on this processor, and the
    model has weights for which that matters, those of the first operation that differs where one is
    known. Empty where that is not so.
    """
    if model.dialect != "onnx":
        return ""
    places = [
        found.where.address for found in eight_bit_weights(Subject(model, catalogue_for("onnx")))
    ]
    if first is not None:
        places = _behind(model, Address.parse(first.address).static, places)
    if not places or not sums_in_16_bits(patience):
        return ""
    return (
        f"This processor has no VNNI: ONNX Runtime adds pairs of products of 8-bit weights, as in {elided(readable(places[0]))}, in 16"
        " bits, where they stop at 32767 or -32768. Here the sums are exact (LS921)."
    )


def _behind(model: Model, address: str, places: Sequence[str]) -> list[str]:
    """Return those of the places that are the operation at an address, or whose result reaches it
    through rounding and bias alone.

    ONNX Runtime joins a product with the rounding of its result, so that the rounded value is the
    first that can differ.
    """
    around, _, label = address.rpartition("/")
    graph = next(
        (
            place
            for place in graphs(model)
            if place.address == around and label in place.labels.values()
        ),
        None,
    )
    if graph is None:
        return []
    layers = {label: layer for layer, label in graph.labels.items()}
    waiting = [layers[label]]
    for layer in waiting:
        where, node = f"{graph.address}/{graph.labels[layer]}", graph.graph.by_id[layer]
        if where in places:
            return [where]
        if node.type in _JOINED:
            waiting += [
                one.layer
                for one in graph.graph.sources[layer]
                if one is not None and one.layer not in waiting
            ]
    return []


def sums_in_16_bits(patience: Patience) -> bool:
    """Whether ONNX Runtime gives 32767 for 2 x 255 x 127 on this processor; False where it
    cannot be asked.
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
            [np.full((1, 2), _HIGHEST, np.uint8), np.full((2, 1), _WEIGHT, np.int8)],
        )
        (folder / "pair.onnx").write_bytes(model.SerializeToString())
        try:
            _, outputs = run_file("onnx", folder, folder / "pair.onnx", patience)
        except EngineError:
            return False
        return int(npz_protocol.read(outputs)["y"].item()) != 2 * _HIGHEST * _WEIGHT
