"""The operations that a runtime really runs for a model, and what each of them stands for, from
the runtime itself.
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
    runtime_of,
    said_alone,
)


@dataclass(frozen=True, slots=True)
class Layer:
    """One operation of the graph that a runtime runs."""

    name: str
    kind: str
    """What runs, in the runtime's words: ``TensorIterator``, ``GatedDeltaNet``, ``Subgraph``;
    for ONNX Runtime the operation.
    """
    stands_for: tuple[str, ...]
    """The names of the operations of the model that it computes."""
    outputs: tuple[str, ...] = ()
    """The names of what it gives; ONNX only."""
    bodies: tuple[tuple[str, tuple[Layer, ...]], ...] = ()
    """The graphs inside, by the attribute that holds them; ONNX only: OpenVINO does not show
    them.
    """


def compiled(
    model: Model,
    *,
    device: str = "CPU",
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> tuple[str, tuple[Layer, ...]]:
    """The name and version of the runtime of a model, OpenVINO for IR and ONNX Runtime for ONNX,
    and the operations that it runs; the runtime compiles the model in a process of its own.

    ``document`` is the content of an ONNX file, for a model that was read from its bytes.
    ``EngineError`` when the runtime is not installed, does not take the model or the device, or is
    no longer waited for.
    """
    called = CALLED[model.dialect]
    if not runtime_of(model):
        package = PACKAGES[model.dialect]
        raise EngineError(
            f"to see what {called} makes of the model, install {package}: pip install {package}"
        )
    with tempfile.TemporaryDirectory(prefix="loopscope-") as name:
        folder = Path(name)
        plain, told = document_file(model, folder, document), folder / "layers.json"
        process = Path(__file__).with_name(f"{PACKAGES[model.dialect]}_layers_process.py")
        patience = Patience(seconds, stopped)
        said = said_alone(
            called, "compile", process, plain, device, told, patience=patience, of=f" for {device}"
        )
        return said, _layers(json.loads(told.read_text("utf-8")))


def _layers(told: Sequence[dict[str, object]]) -> tuple[Layer, ...]:
    """What a process told, with its graphs inside."""
    made: list[Layer] = []
    for one in told:
        bodies = one.get("bodies", {})
        assert isinstance(bodies, dict)
        inside = tuple((str(name), _layers(body)) for name, body in bodies.items())
        names = [
            tuple(map(str, given)) if isinstance(given := one.get(key, []), list) else ()
            for key in ("stands_for", "outputs")
        ]
        made.append(Layer(str(one["name"]), str(one["kind"]), names[0], names[1], inside))
    return tuple(made)
