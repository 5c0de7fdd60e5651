"""Files of ``loopscope mcp``: models, inputs and saved runs that a client names, and the pages that
it requests.

A named file is in the allowed folders after links are resolved. Runs are within limits, and the
latest one is cached. Pages are new files in one folder, bounded in size and number.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import loopscope
from loopscope.debug import run_stopped
from loopscope.errors import InputError, ReadError, WriteError, listed, shorten
from loopscope.ir import Model
from loopscope.read import ReadLimits, what_is_at
from loopscope.replaced_file import replaced_file
from loopscope.run_file import ENDING, SavedRun, is_run_file, read_run, resume
from loopscope_app.command.given_inputs import are_words, inputs_in_words, read_inputs
from loopscope_app.page import page_of

MODELS = (".xml", ".onnx", ENDING)
_INPUTS, _INPUT_BYTES = ".npz", 2**29
_LISTED, _DEPTH = 40, 4
"""Number of files that an error lists, and depth of the search for them."""


class AllowedFiles:
    """Files in the allowed folders.

    Paths are resolved before they are checked, so that neither ``..`` nor a link leads out.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        """Raise ``ReadError`` for a path that is not a folder."""
        self.folders = tuple(map(_real, folders))
        for name, folder in zip(folders, self.folders, strict=True):
            if not folder.is_dir():
                raise ReadError(f"--folder {shorten(name)!r} is not a folder")

    def model(self, text: str) -> Path:
        """Return the path of a model. Raise ``ReadError`` if it or its weights are outside the
        folders.
        """
        path = self._inside(text, MODELS)
        if path.suffix.lower() not in MODELS:
            raise ReadError(
                f"{shorten(text)!r} is not a model that can be opened: expected a file that ends "
                f"with {', '.join(MODELS[:-1])} or {MODELS[-1]}"
            )
        weights = path.with_suffix(".bin")
        if weights.exists() and not self._holds(_real(weights)):
            raise ReadError(
                f"the weights beside {shorten(text)!r} are a link that leads out of the given "
                "folders"
            )
        return path

    def inputs(self, text: str) -> Path:
        """Return the path of an .npz file of bounded unpacked size.

        Raise ``ReadError`` if the file is outside the folders, is not an .npz file or is too large.
        """
        path = self._inside(text, (_INPUTS,))
        try:
            with zipfile.ZipFile(path) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
        # zipfile raises NotImplementedError for an archive of a version that it does not read.
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise ReadError(
                f"{shorten(text)!r} is not an .npz file: one that numpy.savez wrote is expected"
            ) from None
        if size > _INPUT_BYTES:
            raise ReadError(
                f"{shorten(text)!r} has {size:,} bytes: expected at most {_INPUT_BYTES:,}"
            )
        return path

    def _inside(self, text: str, endings: Sequence[str]) -> Path:
        if "\0" in text:
            raise ReadError("a path has no zero bytes")
        if text != text.encode("utf-8", "replace").decode("utf-8"):
            raise ReadError(
                f"the path {shorten(text)!r} is not a text that a file system accepts: expected "
                "whole characters"
            )
        for folder in self.folders:
            path = _real(folder / text)
            if self._holds(path) and what_is_at(path) == "file":
                return path
        files = listed(
            [shorten(str(path)) for path in islice(self._files(endings), _LISTED)], _LISTED
        )
        advice = (
            f"; there are {files}"
            if files
            else f"; none of their files ends with {' or '.join(endings)}"
        )
        raise ReadError(
            f"there is no file {shorten(text)!r} in the given folders: expected a path in one of "
            f"them{advice}"
        )

    def _files(self, endings: Sequence[str]) -> Iterator[Path]:
        """Yield files in the allowed folders, relative to them, outermost first, down to a limited
        depth.
        """
        for folder in self.folders:
            for depth in range(_DEPTH):
                for path in sorted(folder.glob("*/" * depth + "*")):
                    if (
                        path.suffix.lower() in endings
                        and what_is_at(path)
                        and self._holds(_real(path))
                    ):
                        yield path.relative_to(folder)

    def _holds(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self.folders)


def _real(path: str | Path) -> Path:
    """Return the path with links resolved; a circle of links resolves to itself."""
    return Path(os.path.realpath(path))


MOST_PAGES = 100
"""Pages that one server writes."""
MEGABYTES = 5
_MAX_STEM = 60


class AgentPages:
    """Writer of pages. It replaces no file, and no title leads out of the folder."""

    def __init__(self, folder: str) -> None:
        """Raise ``ReadError`` if the path is not a folder."""
        self.folder = Path(os.path.realpath(folder))
        self._written = 0
        if not self.folder.is_dir():
            raise ReadError(f"--pages {shorten(folder)!r} is not a folder")

    def write(
        self, debugger: loopscope.Debugger, title: str, note: str, *, with_values: bool
    ) -> dict[str, Any]:
        """Write a page; return its path and size. Raise ``WriteError`` if the server wrote its
        maximum.
        """
        if self._written >= MOST_PAGES:
            raise WriteError(f"this server wrote its maximum of {MOST_PAGES} pages")
        page = page_of(
            debugger, title=title, note=note, with_values=with_values, most_bytes=MEGABYTES * 2**20
        ).encode()
        path = self._new_file(title, page)
        self._written += 1
        return {
            "path": str(path),
            "bytes": len(page),
            "opens_at_step": debugger.cursor.step,
            "steps": debugger.steps,
        }

    def _new_file(self, title: str, content: bytes) -> Path:
        stem = re.sub(r"[\W_]+", "_", title, flags=re.ASCII).strip("_")[:_MAX_STEM] or "page"
        for number in range(1, 10_000):
            path = self.folder / f"{stem}{f'_{number}' if number > 1 else ''}.html"
            try:
                path.touch(exist_ok=False)
                _fill(path, content)
            except FileExistsError:
                continue
            except OSError as error:
                raise WriteError(
                    f"{path.name} cannot be written: {error.strerror or error}"
                ) from None
            return path
        raise WriteError(f"there are too many pages called {stem}")


def _fill(path: Path, content: bytes) -> None:
    """Write a file whose name is reserved; remove the file if that fails."""
    try:
        with replaced_file(path) as file:
            file.write(content)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


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
        key = (*map(_file_version, files), inputs, repr(values))
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
        return _run_to_end(self.run(path, inputs, values))

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
        return _run_to_end(debugger)

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


def _run_to_end(debugger: loopscope.Debugger) -> loopscope.Debugger:
    if debugger.state != "finished":
        raise run_stopped(debugger.machine, debugger.failure or "the run did not finish", "error")
    return debugger


def _file_version(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return str(path), status.st_mtime_ns, status.st_size
