"""Detection of products with packed weights whose other operand a runtime quantises dynamically."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from loopscope.debug.run import Run
from loopscope.errors import EngineError, elided
from loopscope.executor.plan.unpacked_weights import unpacking
from loopscope.ir.readable import readable
from loopscope.peers import npz_protocol, onnx_model
from loopscope.peers.comparing import apart, not_compared
from loopscope.peers.other_runtimes import Patience, document_file, run_file

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


def sentence(
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
