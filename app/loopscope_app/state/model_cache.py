"""Cache of models from files, shared by all sessions and limited in bytes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary, WeakValueDictionary

import loopscope
from loopscope.checks import Report
from loopscope.debug import model_bytes
from loopscope.ir import Model

MOST_BYTES = 64 * 2**20
"""Size limit of cached models that no session uses."""
Age = tuple[tuple[int, int], ...]
"""Time of the last change in nanoseconds, and size in bytes, of each file of a model."""


def age_of(file: Path) -> Age:
    """Return the age of a model's files. Raise ``OSError`` if one of them disappears meanwhile."""
    statuses = [part.stat() for part in _files_of_model(file)]
    return tuple((status.st_mtime_ns, status.st_size) for status in statuses)


def _files_of_model(file: Path) -> list[Path]:
    """Return the files that a model is read from."""
    # The paths "." and "/" have no name.
    weights = [file.with_suffix(ending) for ending in (".bin", ".index")] if file.name else []
    parts = (file, *weights, file / "saved_model.pb")
    return [part for part in parts if part.exists()]


@dataclass(eq=False)
class ModelCache:
    """Cache of models.

    Sizes are current: mapped weights, and the data that the plans of runs derived from them.
    """

    most_bytes: int
    _latest: OrderedDict[str, Model] = field(default_factory=OrderedDict[str, Model])
    """The most recent models, used or not."""
    _alive: WeakValueDictionary[str, Model] = field(default_factory=WeakValueDictionary[str, Model])
    """All models in use, by path."""
    _ages: WeakKeyDictionary[Model, Age] = field(default_factory=WeakKeyDictionary[Model, Age])
    _reports: WeakKeyDictionary[Model, Report] = field(
        default_factory=WeakKeyDictionary[Model, Report]
    )
    _lock: Lock = field(default_factory=Lock)

    def read(self, file: Path) -> tuple[Model, Report | None]:
        """Return the model of a file and its noted check report.

        The file is read again if it or its weights changed.
        """
        age = age_of(file)
        with self._lock:
            model = self._alive.get(str(file))
            fresh = model is not None and self._ages.get(model) == age
        if model is None or not fresh:
            model = loopscope.read_model(str(file))
        with self._lock:
            self._alive[str(file)], self._ages[model] = model, age
            self._latest[str(file)] = model
            self._latest.move_to_end(str(file))
            report = self._reports.get(model)
        self.trim()
        return model, report

    def note(self, model: Model, report: Report) -> None:
        """Store the check report of a model."""
        with self._lock:
            self._reports[model] = report

    def trim(self) -> None:
        """Drop the oldest models until the rest is within the limit; a model in use stays alive."""
        with self._lock:
            latest = list(self._latest.items())
        remaining = self.most_bytes
        for path, model in reversed(latest):
            remaining -= model_bytes(model)
            if remaining < 0:
                with self._lock:
                    self._latest.pop(path, None)

    @property
    def held_bytes(self) -> int:
        """Size of all models that are used or cached."""
        with self._lock:
            models = set(self._alive.values())
        return sum(model_bytes(model) for model in models)


MODEL_CACHE = ModelCache(MOST_BYTES)
