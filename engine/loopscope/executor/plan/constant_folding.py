"""Kernels with constant inputs, which run only once: for example the conversion of weights stored
in a smaller type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import is_
from typing import Any

import numpy as np

from loopscope.executor.plan.plan import settle

_STORED_AT_FIRST_CALL = 1 << 20
"""Bytes up to which outputs are stored at the first call."""


class FoldedKernel:
    """A kernel with constant inputs. It stores its outputs, unless they are larger than expected,
    and returns them for identical inputs.

    Large outputs are stored at the second call, so that a single run does not use memory in vain.
    Stored outputs are the inputs of the next operation in a chain, so that one run folds the whole
    chain. An override is a different array and is not folded.
    """

    def __init__(self, kernel: Callable[..., Any], most_bytes: int) -> None:
        self._kernel, self._most_bytes = kernel, most_bytes
        self._last: tuple[Any, ...] | None = None
        """Inputs of the last call; None before the first."""
        self._stored: tuple[tuple[Any, ...], Any] | None = None
        """Inputs and stored outputs, assigned together because threads share a plan."""

    def stored_outputs(self, arguments: tuple[Any, ...]) -> Any | None:
        """Return the stored outputs for identical inputs; None if none are stored."""
        stored = self._stored
        return stored[1] if stored is not None and _are_same(stored[0], arguments) else None

    def __call__(self, *arguments: Any) -> Any:
        stored = self._stored
        if stored is not None and _are_same(stored[0], arguments):
            return stored[1]
        result = self._kernel(*arguments)
        repeated = self._last is not None and _are_same(self._last, arguments)
        if (stored is None or repeated) and all(map(_never_changes, arguments)):
            outputs = result if isinstance(result, tuple) else (result,)
            limit = (
                min(self._most_bytes, _STORED_AT_FIRST_CALL)
                if self._last is None
                else self._most_bytes
            )
            if sum(getattr(output, "nbytes", math.inf) for output in outputs) <= limit:
                result = (
                    tuple(map(_freeze, result)) if isinstance(result, tuple) else _freeze(result)
                )
                self._stored = arguments, result
        self._last = arguments
        return result


def _are_same(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))


def _never_changes(value: Any) -> bool:
    return isinstance(value, np.generic) or (
        isinstance(value, np.ndarray) and not value.flags.writeable
    )


def _freeze(value: Any) -> Any:
    """Return the value in the machine's representation, read-only, so that every reader gets the
    same object.
    """
    value = settle(value)
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value
