"""Detection of products that a runtime computes less exactly than the definition.

These are byte products that ONNX Runtime accumulates in 16 bits on this processor, and products
with packed weights whose other operand a runtime quantises dynamically.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from loopscope.checks.rule import Subject
from loopscope.checks.rules.onnxruntime_results import eight_bit_weights
from loopscope.debug.run import Run
from loopscope.errors import EngineError, elided
from loopscope.executor.plan.analyses import unpacking
from loopscope.ir.address import Address, graphs
from loopscope.ir.model import Model
from loopscope.ir.readable import readable
from loopscope.ops.dialect import catalogue_for
from loopscope.peers import npz_protocol, onnx_model
from loopscope.peers.comparing import apart, not_compared
from loopscope.peers.other_runtimes import Patience, document_file, run_file
from loopscope.peers.report import ValueDifference

_DISABLING_PROPERTIES = {
    "openvino": "DYNAMIC_QUANTIZATION_GROUP_SIZE=0",
    "onnx": "session.qdq_matmulnbits_accuracy_level=1",
}
_LEVEL_ATTRIBUTE = "accuracy_level"
_EXACT_LEVEL = 1
"""Highest accuracy_level at which a product is computed in f32; 0 lets the runtime choose, with the
same result.
"""
_MAX_WEIGHT_BITS = 8


def quantization_sentence(
    run: Run,
    inputs: Sequence[Any],
    differing: Sequence[str],
    patience: Patience,
    tolerance: float,
    document: bytes = b"",
) -> str:
    """Return a sentence if the named outputs agree once the runtime does not quantise dynamically.

    Return an empty text otherwise. ``document``: the content of an ONNX file, for a model read from
    bytes.
    """
    dialect = run.model.dialect
    places = list(_products(run)) if differing else []
    if not places:
        return ""
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        npz_protocol.write(folder / "inputs.npz", inputs)
        try:
            file = document_file(run.model, folder, document)
            if any(by_level for _, by_level in places):
                file = onnx_model.with_attribute(
                    file, _LEVEL_ATTRIBUTE, _EXACT_LEVEL, folder / "exact.onnx"
                )
            runtime, outputs = run_file(
                dialect, folder, file, patience, (_DISABLING_PROPERTIES[dialect],)
            )
        except EngineError:
            if patience.stopped():
                raise
            return ""
        peer_outputs = tuple(npz_protocol.read(outputs).values())
    pairs = zip(run.model.outputs, run.result.outputs, peer_outputs, strict=True)
    if any(
        not_compared(own, peer) or apart(own, peer, tolerance)
        for signature, own, peer in pairs
        if signature.name in differing
    ):
        return ""
    settings = dict.fromkeys(
        f"{_LEVEL_ATTRIBUTE}={_EXACT_LEVEL}" if by_level else _DISABLING_PROPERTIES[dialect]
        for _, by_level in places
    )
    first = elided(readable(places[0][0]))
    return (
        f"{runtime} quantizes by itself what it multiplies by packed weights, as in {first}: "
        f"with {' and '.join(settings)} it gives what is given here."
    )


def _products(run: Run) -> Iterator[tuple[str, bool]]:
    """Yield the address of each product with weights of at most 8 bits.

    The second item is True if the node's attribute allows dynamic quantisation.
    """
    for program in run.plan.programs:
        unpacks = {
            number: weights
            for number, weights in unpacking(run.plan, program).items()
            if weights.bits <= _MAX_WEIGHT_BITS
        }
        unpacked_slots = {
            slot for number in unpacks for slot in program.instructions[number].outputs
        }
        for number, instruction in enumerate(program.instructions):
            level = instruction.node.attributes.get(_LEVEL_ATTRIBUTE, 0)
            if isinstance(level, int) and level > _EXACT_LEVEL:
                yield f"{program.address}/{instruction.label}", True
            elif number not in unpacks and unpacked_slots.intersection(instruction.inputs):
                yield f"{program.address}/{instruction.label}", False


_MAX_INPUT, _WEIGHT = 255, 127
_FUSED_TYPES = frozenset({
    *("QuantizeLinear", "DequantizeLinear", "Cast", "Mul", "Add", "Relu", "Clip", "MaxPool"),
    *("Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"),
})  # fmt: skip
"""Operations that ONNX Runtime fuses with a byte product, or that only move its result."""


def byte_sums_sentence(model: Model, first: ValueDifference | None, patience: Patience) -> str:
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
