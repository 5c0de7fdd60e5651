"""Products with packed weights for which OpenVINO quantizes the other operand itself: it is asked to leave that, where outputs differ."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.debug.run import Run
from engine.errors import EngineError, elided
from engine.ir.readable import readable
from engine.peers import transport
from engine.peers.comparing import apart, not_compared
from engine.peers.other_runtimes import Patience, document_file, run_file
from engine.run.plan.unpacked_weights import unpacking

_OFF = "DYNAMIC_QUANTIZATION_GROUP_SIZE=0"
_MOST_BITS = 8


def sentence(run: Run, given: Sequence[Any], differing: Sequence[str], patience: Patience, tolerance: float) -> str:
    """That the outputs of these names differ only for that: they agree where OpenVINO is asked to leave it. Empty where that is not so."""
    place = _product(run) if run.model.dialect == "openvino" and differing else ""
    if not place:
        return ""
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        transport.write(folder / "inputs.npz", given)
        try:
            runtime, outputs = run_file("openvino", folder, document_file(run.model, folder, b""), patience, (_OFF,))
        except EngineError:
            if patience.stopped():
                raise
            return ""
        there = tuple(transport.read(outputs).values())
    pairs = zip(run.model.outputs, run.result.outputs, there, strict=True)
    if any(not_compared(one, other) or apart(one, other, tolerance) for called, one, other in pairs if called.name in differing):
        return ""
    return (
        f"{runtime} quantizes by itself what it multiplies by packed weights, as in {elided(readable(place))}: with {_OFF} it gives what is"
        " given here."
    )


def _product(run: Run) -> str:
    """The first operation that multiplies by weights of at most 8 bits; empty where there is none."""
    for program in run.plan.programs:
        unpacks = {number: of for number, of in unpacking(run.plan, program).items() if of.bits <= _MOST_BITS}
        made = {slot for number in unpacks for slot in program.instructions[number].outputs}
        for number, one in enumerate(program.instructions):
            if number not in unpacks and made.intersection(one.inputs):
                return f"{program.address}/{one.label}"
    return ""
