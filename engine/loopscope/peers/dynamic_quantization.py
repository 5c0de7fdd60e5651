"""Products with packed weights for which a runtime quantizes the other operand itself: it is
asked to leave that, where outputs differ.
"""

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

_OFF = {
    "openvino": "DYNAMIC_QUANTIZATION_GROUP_SIZE=0",
    "onnx": "session.qdq_matmulnbits_accuracy_level=1",
}
_LEVEL = "accuracy_level"
_EXACT = 1
"""The highest accuracy_level with which a product is one of f32; 0 leaves the choice, which is
the same.
"""
_MOST_BITS = 8


def sentence(
    run: Run,
    given: Sequence[Any],
    differing: Sequence[str],
    patience: Patience,
    tolerance: float,
    document: bytes = b"",
) -> str:
    """That the outputs of these names differ only for that: they agree where the runtime is asked
    to leave it. Empty where that is not so.

    ``document``: the content of an ONNX file, for a model that was read from its bytes.
    """
    dialect = run.model.dialect
    places = list(_products(run)) if differing else []
    if not places:
        return ""
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        npz_protocol.write(folder / "inputs.npz", given)
        try:
            file = document_file(run.model, folder, document)
            if any(by_level for _, by_level in places):
                file = onnx_model.with_attribute(file, _LEVEL, _EXACT, folder / "exact.onnx")
            runtime, outputs = run_file(dialect, folder, file, patience, (_OFF[dialect],))
        except EngineError:
            if patience.stopped():
                raise
            return ""
        there = tuple(npz_protocol.read(outputs).values())
    pairs = zip(run.model.outputs, run.result.outputs, there, strict=True)
    if any(
        not_compared(one, other) or apart(one, other, tolerance)
        for called, one, other in pairs
        if called.name in differing
    ):
        return ""
    asked = dict.fromkeys(
        f"{_LEVEL}={_EXACT}" if by_level else _OFF[dialect] for _, by_level in places
    )
    return (
        f"{runtime} quantizes by itself what it multiplies by packed weights, as in {elided(readable(places[0][0]))}: with"
        f" {' and '.join(asked)} it gives what is given here."
    )


def _products(run: Run) -> Iterator[tuple[str, bool]]:
    """Where something is multiplied by weights of at most 8 bits, and whether the node itself
    allows a runtime to quantize the other.
    """
    for program in run.plan.programs:
        unpacks = {
            number: of
            for number, of in unpacking(run.plan, program).items()
            if of.bits <= _MOST_BITS
        }
        made = {slot for number in unpacks for slot in program.instructions[number].outputs}
        for number, one in enumerate(program.instructions):
            level = one.node.attributes.get(_LEVEL, 0)
            if isinstance(level, int) and level > _EXACT:
                yield f"{program.address}/{one.label}", True
            elif number not in unpacks and made.intersection(one.inputs):
                yield f"{program.address}/{one.label}", False
