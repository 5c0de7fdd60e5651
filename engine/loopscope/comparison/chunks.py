"""Comparison of a sequential loop with a chunked one: many iterations beside one.

The states after the last iteration of each chunk are compared. A value that the chunked loop
computes for all steps of a chunk at once is compared with the sequential value of each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loopscope.comparison.deviation import Deviations, is_comparable
from loopscope.errors import InputError


@dataclass(frozen=True, slots=True)
class Alignment:
    """Ratio of iterations of the first run to iterations of the second; None follows the counts."""

    ratio: tuple[int, int] | None = None

    @staticmethod
    def parse(text: str) -> Alignment:
        """Parse ``64:1``, ``1:64`` or ``auto``; ``InputError`` for other texts.

        >>> Alignment.parse("64:1")
        Alignment(ratio=(64, 1))
        """
        if text == "auto":
            return Alignment()
        left, _, right = text.partition(":")
        if left.isdecimal() and right.isdecimal() and len(text) < 20:
            ratio = int(left), int(right)
            if min(ratio) == 1:
                return Alignment(ratio)
        raise InputError(
            f"--align: {text!r} is not an alignment: expected N:1, 1:N or auto, such as 64:1"
        )

    def chunks(self, left: int, right: int) -> Chunks | None:
        """Return the chunks of two loops by their iteration counts; None if no side is chunked."""
        longer: Literal[0, 1] = 0 if left >= right else 1
        if self.ratio is None:
            size = _chunk_size(max(left, right), min(left, right))
        else:
            longer = 0 if self.ratio[0] >= self.ratio[1] else 1
            size = max(self.ratio)
        return None if size <= 1 else Chunks(longer, size)


@dataclass(frozen=True, slots=True)
class Chunks:
    """A chunked loop beside a sequential one."""

    longer: Literal[0, 1]
    """Number of the run with the sequential loop."""
    size: int
    """Number of iterations of the sequential loop per iteration of the chunked one."""

    def step_words(self, iteration: int, total: int) -> str:
        """Return the steps of a chunk as words.

        >>> Chunks(0, 64).step_words(1, 100)
        'chunk 1 (steps 64 to 99)'
        """
        first, last = iteration * self.size, min((iteration + 1) * self.size, total) - 1
        steps = f"steps {first:,} to {last:,}" if first < last else f"step {first:,}"
        return f"chunk {iteration:,} ({steps})"


def _chunk_size(longer: int, shorter: int) -> int:
    """Return the chunk size that both counts allow: a power of two, else a divisor; else 1.

    >>> _chunk_size(100, 2), _chunk_size(15, 5), _chunk_size(5, 5), _chunk_size(200, 137)
    (64, 3, 1, 1)
    """
    if not shorter or longer == shorter:
        return 1
    size = 2
    while -(-longer // size) > shorter:
        size *= 2
    if -(-longer // size) == shorter:
        return size
    return longer // shorter if longer % shorter == 0 else 1


def step_axis(step_shape: tuple[int, ...], chunk_shape: tuple[int, ...], size: int) -> int | None:
    """Return the axis of a chunk's value along which the values of its steps lie.

    Return None if the shapes do not fit, or if several axes do.

    >>> step_axis((2, 8), (2, 64, 8), 64), step_axis((2, 1, 8), (2, 64, 8), 64)
    (1, 1)
    """
    axes = [
        axis
        for axis, length in enumerate(chunk_shape)
        if length == size
        and step_shape
        in (
            chunk_shape[:axis] + chunk_shape[axis + 1 :],
            (*chunk_shape[:axis], 1, *chunk_shape[axis + 1 :]),
        )
    ]
    return axes[0] if len(axes) == 1 else None


def first_step_apart(
    outputs: Sequence[tuple[str, object, object]], steps: int, tolerance: float
) -> tuple[str, int, float] | None:
    """Return the first output element along an axis of ``steps`` that is over the tolerance.

    The result is the output's name, the step and the relative error. None if all agree.
    """
    differing: list[tuple[int, str, float]] = []
    for name, left, right in outputs:
        if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray):
            continue
        if left.shape != right.shape or not is_comparable(left) or not is_comparable(right):
            continue
        axes = [axis for axis, length in enumerate(left.shape) if length == steps]
        if len(axes) != 1 or steps < 2:
            continue
        sides = [np.moveaxis(side, axes[0], 0) for side in (left, right)]
        relative = Deviations.of(*sides).relative
        over = np.flatnonzero(~(relative <= tolerance))
        if len(over):
            differing.append((int(over[0]), name, float(relative[over[0]])))
    if not differing:
        return None
    step, name, error = min(differing)
    return name, step, error
