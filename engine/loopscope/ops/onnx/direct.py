"""ONNX operations that need no reference kernel: plain numpy, optionals, and what the onnx
package declares but does not compute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import re2

from loopscope.errors import MOST_OF_A_SENTENCE, elided, shorten
from loopscope.ops.arithmetic.cumulative import cumulative_sum
from loopscope.ops.onnx.along_axes import FOLDING
from loopscope.ops.onnx.attention import ATTENTION
from loopscope.ops.onnx.col2im import COLUMNS
from loopscope.ops.onnx.conditions import one_axis
from loopscope.ops.onnx.element_movement import PLACES
from loopscope.ops.onnx.elementwise import NUMBERS
from loopscope.ops.onnx.integers import INTEGERS
from loopscope.ops.onnx.normalizing import NORMALIZING
from loopscope.ops.onnx.quantizing import QUANTIZING
from loopscope.ops.onnx.roi_align import REGIONS
from loopscope.ops.onnx.row import Direct
from loopscope.ops.onnx.updates import UPDATES
from loopscope.ops.onnx.windows import conv
from loopscope.ops.values import NO_VALUE

Kernel = Callable[..., Any]


def identity(value: Any, /) -> Any:
    """The very same value, a tensor, sequence or optional."""
    return value


def optional(value: Any = None, /, **types: object) -> Any:
    """An optional that holds the value, or nothing."""
    return NO_VALUE if value is None else value


def optional_has_element(value: Any = None, /) -> Any:
    """Whether there is a value."""
    return np.bool_(value is not None and value is not NO_VALUE)


def optional_get_element(value: Any = None, /) -> Any:
    """The value; ``ValueError`` when there is none."""
    if value is None or value is NO_VALUE:
        raise ValueError("the optional holds no value")
    return value


def global_lp_pool(tensor: np.ndarray, /, *, p: float = 2) -> np.ndarray:
    """The p-norm over all spatial axes, which stay with length 1."""
    axes = tuple(range(2, tensor.ndim))
    powers = np.abs(tensor.astype(np.float64)) ** p
    return np.asarray(powers.sum(axis=axes, keepdims=True) ** (1 / p)).astype(tensor.dtype)


def regex_full_match(texts: np.ndarray, /, *, pattern: str | None = None) -> np.ndarray:
    """Whether each text as a whole matches the pattern, in RE2's syntax and in time linear in
    the text.
    """
    try:
        compiled = re2.compile(pattern or "", _QUIET)
    except re2.error as error:
        raise ValueError(
            f"the pattern {shorten(repr(pattern))} is none of RE2: {_decoded(error)}"
        ) from None
    found = [compiled.fullmatch(str(text)) is not None for text in texts.reshape(-1).tolist()]
    return np.array(found, np.bool_).reshape(texts.shape)


_QUIET = re2.Options()
_QUIET.log_errors = False


def _decoded(error: Exception) -> str:
    reason = error.args[0] if error.args else b""
    return elided(
        reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason),
        MOST_OF_A_SENTENCE,
    )


def multinomial(
    logits: np.ndarray,
    /,
    *,
    state: int,
    sample_size: int = 1,
    dtype: int = 6,
    seed: float | None = None,
) -> Any:
    """Classes drawn from unnormalised log-probabilities, [batch, sample_size], and the next
    state.
    """
    random = np.random.RandomState(int(seed) % 2**32 if seed is not None else state % 2**32)
    weights = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    edges = np.cumsum(weights / weights.sum(axis=-1, keepdims=True), axis=-1)
    drawn = random.uniform(size=(len(logits), sample_size))
    classes = np.array(
        [
            np.searchsorted(row, points, side="right")
            for row, points in zip(edges, drawn, strict=True)
        ]
    )
    return np.minimum(classes, logits.shape[-1] - 1).astype(
        np.int64 if dtype == 7 else np.int32
    ), int(random.randint(2**31))


def cumulative(
    data: np.ndarray, axis: np.ndarray, /, *, exclusive: int = 0, reverse: int = 0
) -> np.ndarray:
    """Sums along an axis, which may also have the shape [1], as ONNX Runtime takes it; the onnx
    package computes with a scalar only.
    """
    data, axis = np.asarray(data), np.asarray(axis)
    one_axis(data, axis)
    return cumulative_sum(data, axis, exclusive=bool(exclusive), reverse=bool(reverse))


DIRECT: Mapping[str, Direct] = {
    **ATTENTION,
    **NUMBERS,
    **PLACES,
    **FOLDING,
    **INTEGERS,
    **NORMALIZING,
    **QUANTIZING,
    **COLUMNS,
    **REGIONS,
    **UPDATES,
    "Identity": Direct(kernel=identity, first=1, symbol="{0}", identity=True),
    "Optional": Direct(kernel=optional, first=15, always_tensor=False),
    "OptionalHasElement": Direct(kernel=optional_has_element, first=15),
    "OptionalGetElement": Direct(kernel=optional_get_element, first=15, always_tensor=False),
    "Conv": Direct(kernel=conv, first=1),
    "CumSum": Direct(kernel=cumulative, first=11),
    "GlobalLpPool": Direct(kernel=global_lp_pool, first=1),
    "RegexFullMatch": Direct(kernel=regex_full_match, first=20),
}

DRAWN: Mapping[str, Kernel] = {"Multinomial": multinomial}
