"""Conversion of one model by OpenVINO's frontends in a subprocess."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from loopscope.ir.model import Model
from loopscope.ir.readable import significant
from loopscope.native.run_once import run_alone
from loopscope.read.file_limits import ReadLimits
from loopscope.read.openvino import read_openvino
from loopscope.read.weights import WeightsFile

_PROCESS = Path(__file__).with_name("conversion_process.py")
How = Literal["read", "convert", "partly"]


def run_openvino(source: Path, target: Path, how: How, limits: ReadLimits) -> None:
    """Write the IR of a model to ``target``. ``ValueError`` with the reason if OpenVINO fails."""
    try:
        result = run_alone(
            _PROCESS, str(source), str(target), how, seconds=limits.conversion_seconds
        )
    except TimeoutError:
        limit = f"the limit 'conversion_seconds' of {significant(limits.conversion_seconds, 6)}"
        raise ValueError(f"OpenVINO did not convert it within {limit}") from None
    if result.code != 0 or not target.exists():
        raise ValueError(
            f"OpenVINO does not convert it: {result.reason or 'its frontend crashed on the file'}"
        )


def read_converted(target: Path, document: bytes, limits: ReadLimits) -> Model:
    """Read an IR whose weights are beside ``target``."""
    return read_openvino(document, WeightsFile(target.with_suffix(".bin").read_bytes()), "", limits)
