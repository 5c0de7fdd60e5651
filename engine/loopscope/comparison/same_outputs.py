"""Outputs of a changed model beside those of the original, on several sets of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.debug.debugger import Debugger
from loopscope.debug.session import run
from loopscope.errors import EngineError, shorten
from loopscope.executor.machine.limits import Limits
from loopscope.explain.executions import taken_paths
from loopscope.ir.model import Model
from loopscope.transform.specialise.known_facts import NO_PATHS, TakenPaths


@dataclass(frozen=True, slots=True)
class SameOutputs:
    """The result of a comparison."""

    runs: int
    """Number of input sets on which both models finished."""
    outside: int
    """Number of input sets on which the original fails, or takes other paths than assumed."""
    difference: str = ""
    """Sentence about the first difference; empty if all outputs are equal."""

    @property
    def sentence(self) -> str:
        if self.difference:
            return self.difference
        if not self.runs:
            return (
                "the outputs were not compared: on these inputs the original fails, or its "
                "branches and counts are other ones"
            )
        sets = "1 set" if self.runs == 1 else f"{self.runs:,} sets"
        return f"all outputs are equal, bit for bit, on {sets} of inputs"


def same_outputs(
    original: Model,
    changed: Model,
    inputs: Sequence[Mapping[str, Any]],
    assumed: TakenPaths = NO_PATHS,
    limits: Limits | None = None,
) -> SameOutputs:
    """Run both models on each set of inputs, and compare all outputs.

    The inputs are by the names of the original. The changed model may lack some of them. Sets on
    which the original does not take the ``assumed`` paths are not compared.
    """
    remaining = {signature.name for signature in changed.inputs}
    runs = outside = 0
    for values in inputs:
        try:
            expected = run(original, values, limits=limits).outputs
        except EngineError:
            outside += 1
            continue
        if (assumed.branches or assumed.counts) and not assumed.agrees(
            _paths(original, values, limits)
        ):
            outside += 1
            continue
        fed = {name: value for name, value in values.items() if name in remaining}
        try:
            results = run(changed, fed, limits=limits).outputs
        except EngineError as error:
            return SameOutputs(runs, outside, f"the result fails where the original runs: {error}")
        for number, signature in enumerate(original.outputs):
            text = _difference(expected[number], results[number])
            if text:
                name = shorten(signature.name, 60)
                return SameOutputs(runs, outside, f"the output {name!r} differs: {text}")
        runs += 1
    return SameOutputs(runs, outside)


def _paths(model: Model, values: Mapping[str, Any], limits: Limits | None) -> TakenPaths:
    debugger = Debugger(model, values, limits=limits)
    debugger.run()
    return taken_paths(debugger)


def _difference(expected: Any, result: Any) -> str:
    """Return how two outputs differ, or an empty text."""
    if not isinstance(expected, np.ndarray | np.generic) or not isinstance(
        result, np.ndarray | np.generic
    ):
        return "" if repr(expected) == repr(result) else "the values are not equal"
    left, right = np.asarray(expected), np.asarray(result)
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        return f"{left.dtype}{list(left.shape)} became {right.dtype}{list(right.shape)}"
    if left.dtype == object:
        return "" if left.tolist() == right.tolist() else "its texts are not equal"
    if left.tobytes() == right.tobytes() or np.array_equal(
        left, right, equal_nan=left.dtype.kind in "fc"
    ):
        return ""
    with np.errstate(all="ignore"):
        largest = np.nanmax(np.abs(left.astype(np.float64) - right.astype(np.float64)))
    return f"by up to {largest:.3g}"
