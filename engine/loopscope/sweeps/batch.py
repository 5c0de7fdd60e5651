"""Batch of samples that a runner computes, and the stop request that ends it early.

A sample has a number and a value of each input. Any thread may request a stop, which reaches the
current run at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.errors import InputError
from loopscope.executor.machine.limits import RunControl


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Consecutive samples of a sweep."""

    samples: np.ndarray
    """Number of each sample, from 0."""
    varying: Mapping[int, np.ndarray | Sequence[Any]]
    """Values by input position, along the first axis; a list if samples differ in shape."""
    fixed: Mapping[int, Any]
    """Value that all samples share, by input position."""
    refused: Mapping[int, str] = field(default_factory=dict[int, str])
    """Reason why a sample cannot be read, by sample number."""

    def __len__(self) -> int:
        return len(self.samples)

    def at(self, places: np.ndarray) -> Batch:
        """Return some of the samples, by their index in this batch."""
        return Batch(
            self.samples[places],
            {
                key: values[places]
                if isinstance(values, np.ndarray)
                else [values[place] for place in places]
                for key, values in self.varying.items()
            },
            self.fixed,
            self.refused,
        )

    def inputs(self, place: int) -> dict[int, Any]:
        """Return the inputs of one sample by position; ``InputError`` for a sample that cannot be
        read.
        """
        if (reason := self.refused.get(int(self.samples[place]))) is not None:
            raise InputError(reason)
        return {
            **self.fixed,
            **{
                key: values[place]
                for key, values in self.varying.items()
                if values[place] is not None
            },
        }


class SweepStopped(Exception):
    """Signal that the current samples are abandoned, because their rows are incomplete."""


class Stop:
    """Stop request of one sweep, in the process of its runs."""

    def __init__(self) -> None:
        self.asked = False
        self._control: RunControl | None = None

    def ask(self) -> None:
        """Request the stop: the current run ends, and no further run begins."""
        self.asked = True
        if self._control is not None:
            self._control.stop.set()

    def watch(self, control: RunControl) -> None:
        """Register the run that begins now."""
        self._control = control
        if self.asked:
            control.stop.set()

    def check(self) -> None:
        """Raise ``SweepStopped`` after a request."""
        if self.asked:
            raise SweepStopped
