"""The inputs that each source program was run with, and the file that it became."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loopscope.peers.source.program import SourceRun
from loopscope_samples.recipes import linear_attention
from tests.engine.peers.sources import FOLDER

Arrays = Mapping[str, np.ndarray]
X = np.array([1.0, -2.0, 3.0, 0.5], np.float32)
ROWS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


@dataclass(frozen=True, slots=True)
class Case:
    program: str
    name: str
    """Of the set of inputs."""
    file: str
    """The model that the program became; empty where a test makes it."""
    inputs: Arrays

    @property
    def model(self) -> Path:
        return FOLDER / self.file

    @property
    def happened(self) -> Path:
        """What the framework did, as its process wrote it."""
        return FOLDER / f"{self.program}.{self.name}.npz"

    def did(self) -> SourceRun:
        return SourceRun.read(self.happened)


def count(n: int) -> np.ndarray:
    return np.array(n, np.int64)


TORCH = (
    Case("doubling", "none", "doubling.xml", {"n": count(0), "x": X}),
    Case("doubling", "three", "doubling.xml", {"n": count(3), "x": X}),
    Case("choosing", "then", "choosing.xml", {"n": count(2), "x": X}),
    Case("choosing", "else", "choosing.xml", {"n": count(2), "x": -X}),
    Case("recurrent", "rows", "recurrent.onnx", {"x": ROWS, "h": np.zeros(3, np.float32)}),
    Case("mapping", "rows", "mapping.xml", {"x": ROWS, "y": np.ones(3, np.float32)}),
    Case("alternating", "four", "alternating.xml", {"n": count(4), "x": X}),
    Case("gated", "sixteen", "", linear_attention.inputs(16, seed=1)),
    Case("alternating", "none", "alternating.xml", {"n": count(0), "x": X}),
)

TENSORFLOW = (
    Case("tf_doubling", "none", "tf_doubling.xml", {"n": count(0), "x": X}),
    Case("tf_doubling", "three", "tf_doubling.xml", {"n": count(3), "x": X}),
    Case("tf_choosing", "then", "tf_choosing.xml", {"n": count(2), "x": X}),
    Case("tf_choosing", "else", "tf_choosing.xml", {"n": count(2), "x": -X}),
    Case("tf_nested", "four", "tf_nested.xml", {"n": count(4), "x": X}),
)


def told(did: SourceRun) -> list[object]:
    """All that a run says, in a form that can be compared."""
    found: list[object] = [
        did.inputs,
        [(name, None if value is None else value.tolist()) for name, value in did.outputs],
    ]
    for one in did.regions:
        values = [
            (
                value.name,
                value.carried,
                *(None if rows is None else rows.tolist() for rows in (value.starts, value.rows)),
            )
            for value in one.values
        ]
        found.append((one.name, one.kind, one.parent, one.body, one.counts, one.taken, values))
    return found
