"""Files exchanged with the process of another runtime, in the format of
``engine/loopscope/ops/stored.py``.

The other side is ``onnxruntime_process.py``, which imports nothing of Loopscope and uses lists,
dictionaries and None.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loopscope.ops import stored

NARROW = frozenset({"bf16", "f8e4m3", "f8e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"})
"""Types unknown to numpy that ONNX Runtime exchanges, as in ``onnxruntime_process.py``."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A value of a kind that cannot be exchanged."""

    kind: str


def write(path: Path, values: Sequence[object]) -> None:
    """Write values of the executor by position."""
    stored.write(path, stored.packed({str(number): value for number, value in enumerate(values)}))


def read(path: Path) -> dict[str, Any]:
    """Return the outputs that a runtime wrote, by name in order; raise ``ValueError`` for another
    file.

    The file contains the outputs by position, their ``names`` and, as JSON, the kinds of the
    ``unread`` outputs.
    """
    with np.load(path, allow_pickle=False) as file:
        entries = {name: file[name] for name in file.files}
    names = [str(name) for name in entries.pop("names")]
    unread = json.loads(str(entries.pop("unread", "{}")))
    values = stored.unpacked(entries) | {number: Unread(kind) for number, kind in unread.items()}
    return {name: values[str(number)] for number, name in enumerate(names)}


def arrays(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the plain tensors of an output file by output name, reading one at a time."""
    with np.load(path, allow_pickle=False) as file:
        for number, name in enumerate(file["names"]):
            if str(number) in file.files:
                yield str(name), file[str(number)]
