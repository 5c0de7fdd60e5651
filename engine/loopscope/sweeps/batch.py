"""Some samples of a sweep: their numbers, and what each input of the model gets in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Samples, in order."""

    samples: np.ndarray
    """The number of each, from 0 on."""
    varying: Mapping[int, np.ndarray | Sequence[Any]]
    """By the input's position: its value in each sample, along the first axis; a list where
    samples differ in shape.
    """
    fixed: Mapping[int, Any]
    """By the input's position: what all samples have."""
    refused: Mapping[int, str] = field(default_factory=dict[int, str])
    """By its number why a sample cannot be read."""

    def __len__(self) -> int:
        return len(self.samples)

    def at(self, places: np.ndarray) -> Batch:
        """Some of them, by their places in this batch."""
        return Batch(
            self.samples[places],
            {
                key: one[places]
                if isinstance(one, np.ndarray)
                else [one[place] for place in places]
                for key, one in self.varying.items()
            },
            self.fixed,
            self.refused,
        )

    def inputs(self, place: int) -> dict[int, Any]:
        """The inputs of one sample, by position; ``InputError`` for one that cannot be read."""
        if (why := self.refused.get(int(self.samples[place]))) is not None:
            raise InputError(why)
        return {
            **self.fixed,
            **{key: one[place] for key, one in self.varying.items() if one[place] is not None},
        }
