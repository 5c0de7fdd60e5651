"""Operations that a runtime executes for a model, with the model operations that each of them
represents.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from loopscope.errors import EngineError
from loopscope.ir.model import Model
from loopscope.native.run_once import never
from loopscope.peers.other_runtimes import (
    CALLED,
    PACKAGES,
    Patience,
    document_file,
    run_runtime_process,
    runtime_of,
)


@dataclass(frozen=True, slots=True)
class Layer:
    """An operation of the graph that a runtime executes."""

    name: str
    kind: str
    """Operation as the runtime names it: ``TensorIterator``, ``GatedDeltaNet``, ``Subgraph``; ONNX
    Runtime's operation type.
    """
    stands_for: tuple[str, ...]
    """Names of the model operations that it computes."""
    outputs: tuple[str, ...] = ()
    """Names of the outputs; ONNX only."""
    bodies: tuple[tuple[str, tuple[Layer, ...]], ...] = ()
    """Inner graphs by attribute name; ONNX only, because OpenVINO does not show them."""


def compiled(
    model: Model,
    *,
    device: str = "CPU",
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> tuple[str, tuple[Layer, ...]]:
    """Return name and version of a model's runtime, and the operations that it executes.

    The runtime is OpenVINO for IR and ONNX Runtime for ONNX. It compiles the model in a separate
    process. ``document`` is the content of an ONNX file, for a model read from bytes. Raise
    ``EngineError`` if the runtime is not installed, does not support the model or device, or
    exceeds the time.
    """
    called = CALLED[model.dialect]
    if not runtime_of(model):
        package = PACKAGES[model.dialect]
        raise EngineError(
            f"to see what {called} makes of the model, install {package}: pip install {package}"
        )
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        plain, target = document_file(model, folder, document), folder / "layers.json"
        process = Path(__file__).with_name(f"{PACKAGES[model.dialect]}_layers_process.py")
        patience = Patience(seconds, stopped)
        version = run_runtime_process(
            called,
            "compile",
            process,
            plain,
            device,
            target,
            patience=patience,
            detail=f" for {device}",
        )
        return version, _layers(json.loads(target.read_text("utf-8")))


def _layers(entries: Sequence[dict[str, object]]) -> tuple[Layer, ...]:
    """Convert the layers that a process reported, including inner graphs."""
    result: list[Layer] = []
    for entry in entries:
        bodies = entry.get("bodies", {})
        assert isinstance(bodies, dict)
        inside = tuple((str(name), _layers(body)) for name, body in bodies.items())
        names = [
            tuple(map(str, listed)) if isinstance(listed := entry.get(key, []), list) else ()
            for key in ("stands_for", "outputs")
        ]
        result.append(Layer(str(entry["name"]), str(entry["kind"]), names[0], names[1], inside))
    return tuple(result)
