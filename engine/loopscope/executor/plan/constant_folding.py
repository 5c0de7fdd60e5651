"""Kernels that need not run again because their inputs never change: weights that a model stores
in a smaller type and converts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import is_
from typing import Any

import numpy as np

from loopscope.executor.plan.plan import settle

_KEPT_AT_ONCE = 1 << 20
"""Bytes up to which outputs are stored when they are computed first."""


class FoldedKernel:
    """A kernel whose inputs are constants: it stores its outputs and returns them for the very same
    inputs, unless they are larger than expected.

    Large outputs are stored at the second call: a run that is the only one does not pay for memory
    that nothing would use again. Stored outputs are the inputs of the next operation of a chain, so
    that a whole chain is folded by one run. A value that a person sets is no array of before.
    """

    def __init__(self, kernel: Callable[..., Any], most_bytes: int) -> None:
        self._kernel, self._most_bytes = kernel, most_bytes
        self._last: tuple[Any, ...] | None = None
        """The inputs of the last call; None before the first."""
        self._kept: tuple[tuple[Any, ...], Any] | None = None
        """What it got and what it made of that; set as one, for the threads that share a plan."""

    def __call__(self, *arguments: Any) -> Any:
        kept = self._kept
        if kept is not None and _are_same(kept[0], arguments):
            return kept[1]
        made = self._kernel(*arguments)
        repeated = self._last is not None and _are_same(self._last, arguments)
        if (kept is None or repeated) and all(map(_never_changes, arguments)):
            each = made if isinstance(made, tuple) else (made,)
            most = min(self._most_bytes, _KEPT_AT_ONCE) if self._last is None else self._most_bytes
            if sum(getattr(one, "nbytes", math.inf) for one in each) <= most:
                made = tuple(map(_frozen, made)) if isinstance(made, tuple) else _frozen(made)
                self._kept = arguments, made
        self._last = arguments
        return made


def _are_same(some: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _never_changes(value: Any) -> bool:
    return isinstance(value, np.generic) or (
        isinstance(value, np.ndarray) and not value.flags.writeable
    )


def _frozen(value: Any) -> Any:
    """As the machine holds it, so that what takes it gets the very same each time."""
    value = settle(value)
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value
