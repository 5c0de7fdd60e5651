"""A runtime's process that runs many models one after the other."""

from __future__ import annotations

import importlib.util
import json
import queue
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Literal, Self

from loopscope.errors import EngineError
from loopscope.ir.model import Model
from loopscope.native.run_once import CallStopped, Ended, never
from loopscope.peers import npz_protocol
from loopscope.write import write_model

RuntimeName = Literal["onnxruntime", "openvino"]
TITLES: dict[RuntimeName, str] = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
_POLL_SECONDS = 0.05
UNOPTIMIZED = "session.unoptimized=1"
"""Setting of ONNX Runtime: without graph optimisations."""


def expect_installed(runtime: RuntimeName) -> None:
    """Raise ``EngineError`` if a runtime's package is not installed."""
    if importlib.util.find_spec(runtime) is None:
        raise EngineError(f"{TITLES[runtime]} is not installed: pip install {runtime}")


class RuntimeFailed(EngineError):
    """The error of a runtime that does not run a model; ``reason`` is the runtime's own."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class RuntimeProcess:
    """A process of ONNX Runtime or OpenVINO; a process that dies is started again.

    It is a context manager, and ends with its block. ``stopped`` returns True once the caller no
    longer waits.
    """

    def __init__(
        self, runtime: RuntimeName, *, seconds: float = 60.0, stopped: Callable[[], bool] = never
    ) -> None:
        self.runtime: RuntimeName = runtime
        self.title = TITLES[runtime]
        self.version = ""
        """Name and version, after the first model that ran."""
        self._seconds, self._stopped = seconds, stopped
        self._scratch = tempfile.TemporaryDirectory(prefix="loopscope-")
        self._folder = Path(self._scratch.name)
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
        self._scratch.cleanup()

    def outputs(self, model: Model, inputs: Sequence[Any], *settings: str) -> tuple[Any, ...]:
        """Return the outputs of a model for inputs by position, in the executor's form.

        Raise ``RuntimeFailed`` if the runtime does not run the model, and ``CallStopped``.
        """
        file = self._folder / ("model.onnx" if model.dialect == "onnx" else "model.xml")
        write_model(model, file)
        return self.outputs_of_file(file, inputs, *settings)

    def outputs_of_file(self, file: Path, inputs: Sequence[Any], *settings: str) -> tuple[Any, ...]:
        """Return the outputs of a model file, as ``outputs``."""
        npz_protocol.write(self._folder / "inputs.npz", inputs)
        target = self._folder / "outputs.npz"
        target.unlink(missing_ok=True)
        ended = self._call([*settings, str(self._folder / "inputs.npz"), str(file), str(target)])
        if ended.code != 0 or not target.exists():
            reason = ended.reason or "it crashed"
            raise RuntimeFailed(f"{self.title} does not run the model: {reason}", reason)
        self.version = ended.said.splitlines()[-1]
        return tuple(npz_protocol.read(target).values())

    def _call(self, words: Sequence[str]) -> Ended:
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(list(words)) + "\n")
            process.stdin.flush()
        except OSError:
            return self._crashed()
        deadline = time.monotonic() + self._seconds
        while True:
            try:
                line = self._answers.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if self._stopped():
                    self._end()
                    raise CallStopped from None
                if time.monotonic() > deadline:
                    self._end()
                    reason = f"it did not finish within {self._seconds:g} seconds"
                    return Ended(1, "", reason)
                continue
            return Ended(*json.loads(line)) if line else self._crashed()

    def _crashed(self) -> Ended:
        self._end()
        return Ended(-1, "", "")

    def _start(self) -> subprocess.Popen[str]:
        folder = Path(__file__).parent
        # -P: imports must not come from the folder of the file.
        command = [
            sys.executable,
            "-P",
            str(folder / "repeating_process.py"),
            str(folder / f"{self.runtime}_process.py"),
        ]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command,
            text=True,
            errors="replace",
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl+C reaches only this process, which ends the child
        )
        self._process, self._answers = process, queue.SimpleQueue()
        Thread(target=_forward, args=(process, self._answers), daemon=True).start()
        return process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    try:
                        stream.close()
                    except (OSError, ValueError):
                        continue


def _forward(process: subprocess.Popen[str], answers: queue.SimpleQueue[str]) -> None:
    """Put each answer of a process into a queue, and an empty text once it has ended."""
    assert process.stdout is not None
    try:
        for line in process.stdout:
            answers.put(line)
    except (OSError, ValueError):
        pass  # the stream was closed
    answers.put("")
