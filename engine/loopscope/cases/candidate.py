"""A smaller model that may still show a fault, with its inputs and its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from loopscope.debug.debugger import Debugger
from loopscope.errors import ValueUnavailable
from loopscope.executor.machine.limits import Limits
from loopscope.ir.model import Model
from loopscope.ir.walk import nodes

_LIMITS = Limits(iterations=200_000, seconds=20.0)
"""Limits of one run of a smaller model. A changed condition may never end a loop."""
_SEED = 1


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model with a value for each input, in order."""

    model: Model
    inputs: tuple[Any, ...]
    place: str = ""
    """Address of the graph in the original model, with iterations; empty for the outermost."""

    def changed(self, model: Model, inputs: tuple[Any, ...] | None = None) -> Candidate:
        """Return a candidate of the same place with another model, and other inputs."""
        return Candidate(model, self.inputs if inputs is None else inputs, self.place)

    @cached_property
    def run(self) -> Debugger:
        """The run to its end; raises the errors of ``Debugger``."""
        run = Debugger(self.model, list(self.inputs), limits=_LIMITS, seed=_SEED)
        run.run()
        return run

    @property
    def finished(self) -> bool:
        return self.run.state == "finished"

    @cached_property
    def outputs(self) -> tuple[Any, ...]:
        """The outputs of the run, in order; ``ValueUnavailable`` if it did not finish."""
        if not self.finished:
            raise ValueUnavailable(self.run.failure or "the run did not finish")
        return tuple(self.run.result.outputs)

    @cached_property
    def node_count(self) -> int:
        """Number of operations in all graphs, without Parameters, Results and Consts."""
        return sum(
            node.type not in ("Parameter", "Result") and node.constant is None
            for _, node in nodes(self.model)
        )

    @cached_property
    def element_count(self) -> int:
        """Number of elements of inputs and constants."""
        constants = sum(
            node.constant.elements for _, node in nodes(self.model) if node.constant is not None
        )
        return constants + sum(np.size(value) for value in self.inputs if _is_array(value))


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def arrays(values: Sequence[Any]) -> list[np.ndarray]:
    """Return the values that are arrays of numbers."""
    return [
        np.asarray(value) for value in values if _is_array(value) and value.dtype.kind in "biuf"
    ]
