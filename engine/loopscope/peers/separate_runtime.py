"""Runtimes without a run of ours to compare: whether they load a model, and what they give.

Each installed runtime loads a file in a process of its own. The model's runtime is asked for inputs
with which our run does not finish.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from loopscope.debug.inputs import Inputs
from loopscope.debug.run import Run
from loopscope.errors import EngineError, elided
from loopscope.native.run_once import CallStopped, never, run_alone
from loopscope.ops.values import is_tensor
from loopscope.peers.comparing import shape_text
from loopscope.peers.other_runtimes import CALLED, PACKAGES, Patience, ask_outputs, runtime_of

_MAX_SHAPES = 4


def runtime_alone(
    run: Run,
    inputs: Inputs,
    *,
    seconds: float = 120.0,
    document: bytes = b"",
    stopped: Callable[[], bool] = never,
) -> str:
    """Return a sentence: the runtime fails as well, with its reason, or runs the model, with the
    output shapes.

    Return an empty text if the runtime is not installed. Raise ``EngineError`` if ``stopped``
    returns True before the runtime ends.
    """
    if not runtime_of(run.model):
        return ""
    try:
        runtime, outputs = ask_outputs(run.model, inputs, Patience(seconds, stopped), document)
    except EngineError as error:
        if stopped():
            raise
        called = CALLED[run.model.dialect]
        reason = str(error).removeprefix(f"{called} does not run the model: ").removesuffix(".")
        return f"{called} does not run the model with these inputs either: {reason}."
    shapes = [
        f"{elided(signature.name)!r} {shape_text(np.asarray(value))}"
        if is_tensor(value)
        else f"{elided(signature.name)!r}"
        for signature, value in zip(run.model.outputs, outputs, strict=True)
    ]
    more = f" and {len(shapes) - _MAX_SHAPES:,} more" if len(shapes) > _MAX_SHAPES else ""
    listed = ", ".join(shapes[:_MAX_SHAPES])
    return f"{runtime} runs the model with these inputs: it gives {listed}{more}."


_DIALECTS = {".onnx": ("onnx", "openvino"), ".xml": ("openvino",)}
"""Runtimes that read a kind of file, by the dialect that they are the runtime of."""


@dataclass(frozen=True, slots=True)
class RuntimeLoads:
    """The answer of one runtime."""

    runtime: str
    """Name, with the version if it loads the model."""
    reason: str = ""
    """Reason why it does not load the model; empty if it does."""
    original_fails: bool = False
    """True if it does not load the original model either."""

    @property
    def sentence(self) -> str:
        if self.original_fails:
            return f"{self.runtime} loads neither it nor the original: {self.reason}"
        if self.reason:
            return f"{self.runtime} does not load it: {self.reason}"
        return f"{self.runtime} loads it"


def runtimes_load(
    file: Path,
    original: Path | None = None,
    *,
    seconds: float = 120.0,
    stopped: Callable[[], bool] = never,
) -> Iterator[RuntimeLoads]:
    """Yield for each installed runtime whether it loads and compiles a model file.

    A runtime that does not is tried on the ``original`` that the file was made of.
    """
    for dialect in _DIALECTS.get(file.suffix, ()):
        if importlib.util.find_spec(PACKAGES[dialect]) is None:
            continue
        try:
            answer = _loads(dialect, file, seconds, stopped)
            if answer.reason and original is not None:
                fails = bool(_loads(dialect, original, seconds, stopped).reason)
                answer = replace(answer, original_fails=fails)
        except CallStopped:
            return
        yield answer


def _loads(dialect: str, file: Path, seconds: float, stopped: Callable[[], bool]) -> RuntimeLoads:
    package, called = PACKAGES[dialect], CALLED[dialect]
    process = Path(__file__).with_name("loading_process.py")
    try:
        ended = run_alone(process, package, str(file), seconds=seconds, stopped=stopped)
    except TimeoutError:
        return RuntimeLoads(called, f"it did not finish within {seconds:g} seconds")
    if ended.code == 0:
        return RuntimeLoads(f"{called} {ended.said.strip()}")
    return RuntimeLoads(called, ended.reason or "it crashed")
