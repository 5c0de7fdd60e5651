"""Models that were read from files: shared by all who look at them, and for a while kept for the
next one, within a bound in bytes.
"""

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
"""Of models that nobody looks at."""
Age = tuple[int, ...]


def _beside(file: Path) -> list[Path]:
    """The files that a model is read from."""
    weights = (
        [file.with_suffix(ending) for ending in (".bin", ".index")] if file.name else []
    )  # "." and "/" have no name
    return [one for one in (file, *weights, file / "saved_model.pb") if one.exists()]


@dataclass(eq=False)
class KeptModels:
    """Bytes are counted as they are now: weights as they are mapped, and what the plans of runs
    have made of them since.
    """

    most_bytes: int
    _latest: OrderedDict[str, Model] = field(default_factory=OrderedDict[str, Model])
    """The latest ones, also when nobody looks at them."""
    _alive: WeakValueDictionary[str, Model] = field(default_factory=WeakValueDictionary[str, Model])
    """All that somebody holds, by path."""
    _ages: WeakKeyDictionary[Model, Age] = field(default_factory=WeakKeyDictionary[Model, Age])
    _reports: WeakKeyDictionary[Model, Report] = field(
        default_factory=WeakKeyDictionary[Model, Report]
    )
    _lock: Lock = field(default_factory=Lock)

    def read(self, file: Path) -> tuple[Model, Report | None]:
        """The model of a file, and what the check says of it, once that was noted; read again
        when the file or its weights have changed.
        """
        age = tuple(one.stat().st_mtime_ns for one in _beside(file))
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
        """What the check says of a model."""
        with self._lock:
            self._reports[model] = report

    def trim(self) -> None:
        """Lets go of the models that were read the longest time ago, until the rest is within
        the bound; who looks at one keeps it.
        """
        with self._lock:
            latest = list(self._latest.items())
        left = self.most_bytes
        for path, model in reversed(latest):
            left -= model_bytes(model)
            if left < 0:
                with self._lock:
                    self._latest.pop(path, None)

    @property
    def held_bytes(self) -> int:
        """Of all models that are in use or kept."""
        with self._lock:
            models = set(self._alive.values())
        return sum(model_bytes(one) for one in models)


KEPT = KeptModels(MOST_BYTES)
