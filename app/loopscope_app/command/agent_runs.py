"""Models, inputs and saved runs that an agent names by path; they run within limits.

The latest run is cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loopscope
from loopscope.debug import run_stopped
from loopscope.errors import InputError
from loopscope.ir import Model
from loopscope.read import ReadLimits
from loopscope.run_file import SavedRun, is_run_file, read_run, resume
from loopscope_app.command.agent_files import AllowedFiles
from loopscope_app.command.given_inputs import are_words, inputs_in_words, read_inputs

_UNPACKED = 2**30
"""Size limit in bytes of an unpacked saved run."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedPath:
    """The model, and the saved run if there is one, that a path names."""

    model: Model
    saved: SavedRun | None = None
    """The saved run; None if the file is a model."""

    @property
    def document(self) -> bytes:
        """Content of an ONNX file inside a saved run; empty for models that have a path."""
        return self.saved.document if self.saved else b""


class AgentRuns:
    """Models and runs by path.

    ``inputs`` is the path of an .npz file, or values as text, or empty. ``values`` maps input names
    to values and overrides ``inputs``.
    """

    def __init__(self, files: AllowedFiles, limits: loopscope.Limits) -> None:
        self.limits = limits
        self._files = files
        self._latest: tuple[tuple[object, ...], loopscope.Debugger, NamedPath] | None = None
        """The last run with the key of its inputs: an agent often asks several questions about one
        run.
        """
        self.generated = ""
        """Description of the generated inputs of the last run."""

    @property
    def seconds(self) -> float:
        """Time limit of a run or a comparison."""
        return self.limits.seconds or 60.0

    def named(self, path: str) -> NamedPath:
        """Return a model, or the model of a saved run; nothing runs."""
        file = self._files.model(path)
        if not is_run_file(str(file)):
            return NamedPath(loopscope.read_model(file))
        saved = read_run(file, limits=ReadLimits(unpacked_bytes=_UNPACKED))
        return NamedPath(saved.model, saved)

    def run(
        self, path: str, inputs: str = "", values: Mapping[str, Any] | None = None
    ) -> loopscope.Debugger:
        """Return the run of a model, as far as it goes; for a saved run its last step."""
        files = [
            self._files.model(path),
            *([self._files.inputs(inputs)] if inputs and not are_words(inputs) else []),
        ]
        key = (*map(_version, files), inputs, repr(values))
        if self._latest is None or self._latest[0] != key:
            self.forget()  # frees its memory before the next run takes some
            named = self.named(path)
            if named.saved is None:
                debugger = loopscope.Debugger(
                    named.model, self.inputs_of(named, inputs, values), limits=self.limits
                )
                debugger.run()
            else:
                self.inputs_of(named, inputs, values)
                debugger = resume(named.saved, limits=self.limits)
                debugger.seek(debugger.steps)
            self._latest = key, debugger, named
        return self._latest[1]

    def finished(
        self, path: str, inputs: str, values: Mapping[str, Any] | None
    ) -> loopscope.Debugger:
        """Return the run of a model. Raise ``RunStopped`` if it did not finish."""
        return _at_end(self.run(path, inputs, values))

    def recorded(
        self, path: str, inputs: Mapping[str | int, Any], rounding: Mapping[str, str]
    ) -> loopscope.Debugger:
        """Return a finished run with every value recorded and values rounded. The cached run is
        dropped.
        """
        self.forget()
        record = loopscope.Record(everything=True)
        debugger = loopscope.Debugger(
            self.named(path).model,
            dict(inputs),
            limits=self.limits,
            record=record,
            rounding=rounding,
        )
        debugger.run()
        return _at_end(debugger)

    def inputs_of(
        self, named: NamedPath, inputs: str, values: Mapping[str, Any] | None
    ) -> dict[str | int, Any]:
        """Return the inputs of a run. Raise ``InputError`` if inputs are passed for a saved run."""
        if named.saved is not None:
            if inputs or values:
                raise InputError(
                    "a saved run has its own inputs: `inputs` and `values` apply to a model only"
                )
            return dict(enumerate(named.saved.inputs))
        positions = {
            name: position
            for position, signature in enumerate(named.model.inputs)
            for name in (signature.name, *signature.names)
        }
        overridden = {positions[name] for name in values or {} if name in positions}
        parsed: Mapping[str | int, Any] = {}
        self.generated = ""
        if are_words(inputs):
            parsed, generated = inputs_in_words(inputs, named.model)
            self.generated = generated.in_words(overridden) if generated else ""
        elif inputs:
            parsed = read_inputs(str(self._files.inputs(inputs)), named.model)
        result: dict[str | int, Any] = {
            key: value for key, value in parsed.items() if key not in overridden
        }
        result.update(values or {})
        return result

    @property
    def saved_step(self) -> int:
        """Step at which the latest run was saved; 0 if it is not a saved run."""
        saved = self._latest[2].saved if self._latest else None
        return saved.description.step if saved else 0

    def forget(self) -> None:
        """Drop the latest run."""
        self._latest = None


def _at_end(debugger: loopscope.Debugger) -> loopscope.Debugger:
    if debugger.state != "finished":
        raise run_stopped(debugger.machine, debugger.failure or "the run did not finish", "error")
    return debugger


def _version(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return str(path), status.st_mtime_ns, status.st_size
