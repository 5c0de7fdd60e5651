"""Loading of a model file by the installed runtimes, each in a process of its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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

    @property
    def sentence(self) -> str:
        if self.reason:
            return f"{self.runtime} does not load it: {self.reason}"
        return f"{self.runtime} loads it"


def runtimes_load(
    file: Path, *, seconds: float = 120.0, stopped: Callable[[], bool] = never
) -> Iterator[RuntimeLoads]:
    """Yield for each installed runtime whether it loads and compiles a model file."""
    process = Path(__file__).with_name("loading_process.py")
    for dialect in _DIALECTS.get(file.suffix, ()):
        package, called = PACKAGES[dialect], CALLED[dialect]
        if importlib.util.find_spec(package) is None:
            continue
        try:
            ended = run_alone(process, package, str(file), seconds=seconds, stopped=stopped)
        except TimeoutError:
            yield RuntimeLoads(called, f"it did not finish within {seconds:g} seconds")
            continue
        except CallStopped:
            return
        if ended.code == 0:
            yield RuntimeLoads(f"{called} {ended.said.strip()}")
        else:
            yield RuntimeLoads(called, ended.reason or "it crashed")
