"""What goes to the process of another runtime, and what it gives back: files of
``engine/loopscope/ops/stored.py``.

The other end is ``onnxruntime_process.py``, which imports nothing of ours and says the same with
lists, dictionaries and None.
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
"""Types beside numpy's own that ONNX Runtime is given and gives, as ``onnxruntime_process.py``
has them.
"""


@dataclass(frozen=True, slots=True)
class Unread:
    """A value of a kind that cannot be sent."""

    kind: str


def write(path: Path, values: Sequence[object]) -> None:
    """Values of the machine, by position."""
    stored.write(path, stored.packed({str(number): value for number, value in enumerate(values)}))


def read(path: Path) -> dict[str, Any]:
    """What a runtime wrote: outputs by name, in their order. ``ValueError`` when it is no such
    file.

    Beside the outputs by position, the file has their ``names`` and, as JSON by position, the kinds
    of those that are ``unread``.
    """
    with np.load(path, allow_pickle=False) as file:
        entries = {name: file[name] for name in file.files}
    names = [str(name) for name in entries.pop("names")]
    unread = json.loads(str(entries.pop("unread", "{}")))
    values = stored.unpacked(entries) | {number: Unread(kind) for number, kind in unread.items()}
    return {name: values[str(number)] for number, name in enumerate(names)}


def arrays(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """The plain tensors in such a file by the name of the output, one read after the other."""
    with np.load(path, allow_pickle=False) as file:
        for number, name in enumerate(file["names"]):
            if str(number) in file.files:
                yield str(name), file[str(number)]
