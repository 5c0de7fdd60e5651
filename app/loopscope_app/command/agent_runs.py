"""What an agent names: a model file with inputs, or a saved run; read within given folders, run
within given limits, the latest kept.
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
from loopscope_app.command.allowed_files import AllowedFiles
from loopscope_app.command.given_inputs import are_words, inputs_in_words, read_inputs

_UNPACKED = 2**30
"""Bytes that a saved run may unpack to here."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedPath:
    """What a path names."""

    model: Model
    saved: SavedRun | None = None
    """The run, where the file is one of a saved run."""

    @property
    def document(self) -> bytes:
        """The content of an ONNX file that is inside a saved run; empty for all others, which
        have a path.
        """
        return self.saved.document if self.saved else b""


class AgentRuns:
    """Models and runs by path. ``inputs`` is the path of an .npz file, or values in words, or
    empty; ``values`` gives inputs by name and goes before it.
    """

    def __init__(self, files: AllowedFiles, limits: loopscope.Limits) -> None:
        self.limits = limits
        self._files = files
        self._latest: tuple[tuple[object, ...], loopscope.Debugger, NamedPath] | None = None
        """The last run with what it was made of: several questions are asked about one."""
        self.made_up = ""
        """Which inputs of the last run nobody gave, in words."""

    @property
    def seconds(self) -> float:
        """That a run or a comparison may take."""
        return self.limits.seconds or 60.0

    def named(self, path: str) -> NamedPath:
        """A model, or the model of a saved run, of which nothing runs."""
        file = self._files.model(path)
        if not is_run_file(file.name):
            return NamedPath(loopscope.read_model(file))
        saved = read_run(file, limits=ReadLimits(unpacked_bytes=_UNPACKED))
        return NamedPath(saved.model, saved)

    def run(
        self, path: str, inputs: str = "", values: Mapping[str, Any] | None = None
    ) -> loopscope.Debugger:
        """The run of a model as far as it comes; a saved one as it was recorded, at its newest
        step.
        """
        files = [
            self._files.model(path),
            *([self._files.inputs(inputs)] if inputs and not are_words(inputs) else []),
        ]
        made_of = (*map(_version, files), inputs, repr(values))
        if self._latest is None or self._latest[0] != made_of:
            self.forget()  # before the next one takes its memory
            named = self.named(path)
            if named.saved is None:
                debugger = loopscope.Debugger(
                    named.model, self.given(named, inputs, values), limits=self.limits
                )
                debugger.run()
            else:
                self.given(named, inputs, values)
                debugger = resume(named.saved, limits=self.limits)
                debugger.seek(debugger.steps)
            self._latest = made_of, debugger, named
        return self._latest[1]

    def finished(
        self, path: str, inputs: str, values: Mapping[str, Any] | None
    ) -> loopscope.Debugger:
        """The same, which must have come to its end."""
        return _at_end(self.run(path, inputs, values))

    def recorded(
        self, path: str, given: Mapping[str | int, Any], rounding: Mapping[str, str]
    ) -> loopscope.Debugger:
        """A finished run with every value, of the model with values rounded; nothing else is
        kept meanwhile.
        """
        self.forget()
        record = loopscope.Record(everything=True)
        debugger = loopscope.Debugger(
            self.named(path).model,
            dict(given),
            limits=self.limits,
            record=record,
            rounding=rounding,
        )
        debugger.run()
        return _at_end(debugger)

    def given(
        self, named: NamedPath, inputs: str, values: Mapping[str, Any] | None
    ) -> dict[str | int, Any]:
        """The inputs; ``InputError`` when others are named for a saved run, which has its own."""
        if named.saved is not None:
            if inputs or values:
                raise InputError(
                    "a saved run has its inputs in it: give `inputs` and `values` with a model"
                )
            return dict(enumerate(named.saved.inputs))
        positions = {
            name: position
            for position, one in enumerate(named.model.inputs)
            for name in (one.name, *one.names)
        }
        by_name = {positions[name] for name in values or {} if name in positions}
        given: Mapping[str | int, Any] = {}
        self.made_up = ""
        if are_words(inputs):
            given, made_up = inputs_in_words(inputs, named.model)
            self.made_up = made_up.in_words(by_name) if made_up else ""
        elif inputs:
            given = read_inputs(str(self._files.inputs(inputs)), named.model)
        made: dict[str | int, Any] = {
            key: value for key, value in given.items() if key not in by_name
        }
        made.update(values or {})
        return made

    @property
    def saved_step(self) -> int:
        """The step at which the latest run was saved; 0 where it was not."""
        saved = self._latest[2].saved if self._latest else None
        return saved.description.step if saved else 0

    def forget(self) -> None:
        """Lets go of the latest run."""
        self._latest = None


def _at_end(debugger: loopscope.Debugger) -> loopscope.Debugger:
    if debugger.state != "finished":
        raise run_stopped(debugger.machine, debugger.failure or "the run did not finish", "error")
    return debugger


def _version(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return str(path), status.st_mtime_ns, status.st_size
