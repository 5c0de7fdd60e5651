"""Loading of a model file by the installed runtimes, each in a process of its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from loopscope.native.run_once import CallStopped, never, run_alone
from loopscope.peers.other_runtimes import CALLED, PACKAGES

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
