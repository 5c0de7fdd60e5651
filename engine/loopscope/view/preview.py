"""Previews of values on a picture: short texts on wires, and sparklines of folded loops.

A sparkline is a carried number over the iterations, in a few points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.debug.run import Run
from loopscope.errors import EngineError, neutral
from loopscope.executor.plan.plan import LoopRegion
from loopscope.ir.address import Address
from loopscope.ir.constant import Constant
from loopscope.ir.model import BackEdge, Body, LayerId
from loopscope.ir.readable import short_exponent, significant

_MAX_SCANNED = 1 << 20
"""Number of elements that are searched for NaN and infinity. A preview takes no longer than a step.
"""
_MAX_TEXT = 18


def number_text(value: object) -> str:
    """Return a short text of one element: integers and booleans exactly, floats with 4 significant
    digits.

    >>> number_text(np.float32(0.1)), number_text(np.int64(7)), number_text(np.bool_(True))
    ('0.1', '7', 'true')
    >>> number_text(np.float32(3)), number_text(1234567.0), number_text("abc")
    ('3', '1.235e6', '"abc"')
    >>> number_text(float("nan")), number_text(b"abc")  # an array of objects may contain anything
    ('NaN', "b'abc'")
    """
    if isinstance(value, float):  # the most frequent type first; np.float64 is a float
        return _float_text(value)
    if isinstance(value, str):
        return f'"{neutral(value, _MAX_TEXT)}"'
    if value is None:  # an omitted input of an ONNX function
        return "no value"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, np.void):
        return str(int(value.item()[0]))
    if isinstance(value, (complex, np.complexfloating)):
        return neutral(f"{complex(value):.4g}", _MAX_TEXT)
    try:
        return _float_text(float(value))  # type: ignore[arg-type]  # ml_dtypes' scalars convert
    except (TypeError, ValueError):
        return neutral(repr(value), _MAX_TEXT)


def _float_text(number: float) -> str:
    return str(number) if math.isinf(number) else significant(number)


def scalar_text(value: object) -> str:
    """Return a scalar exactly: a float with the digits that identify it among the numbers of its
    type.

    >>> scalar_text(np.float32(0.1)), scalar_text(np.float64(1) / 3), scalar_text(np.float32(3))
    ('0.1', '0.3333333333333333', '3')
    """
    if isinstance(value, np.floating) and np.isfinite(value):
        return short_exponent(str(value).removesuffix(".0"))
    return number_text(value)


def value_preview(value: object) -> str:
    """Return shape and first to last elements of a tensor, and marks for NaN and infinity.

    Scalars are exact.

    >>> value_preview(np.float32(0.1)), value_preview(np.array([1, 2]))
    ('0.1', '[2] 1, 2')
    >>> value_preview(np.zeros((0, 3)))
    '[0,3] empty'
    >>> value_preview(np.array([[0.1, 1, 2], [3, float("nan"), 4.2]]))
    '[2,3] 0.1,…,4.2 NaN'
    >>> value_preview(np.array([1, 2, float("-inf"), 4]))
    '[4] 1,…,4 inf'
    >>> value_preview((np.float32(1), np.zeros(2))), value_preview(None)
    ('2 in sequence: 1, [2] 0, 0', 'no value')
    """
    if not isinstance(value, (np.ndarray, np.generic)):
        return _container_preview(value)
    if isinstance(value, np.generic):
        return scalar_text(value)
    if value.ndim == 0:
        return scalar_text(value[()])
    shape = f"[{','.join(map(str, value.shape))}]"
    size = value.size
    if not size:
        return f"{shape} empty"
    if size <= 3:
        return (
            f"{shape} {', '.join(number_text(element) for element in value.reshape(-1).tolist())}"
        )
    first, last = value.item(0), value.item(-1)
    text = f"{shape} {number_text(first)},…,{number_text(last)}"
    marks = [mark for mark in not_finite(value) if mark not in text]
    return " ".join([text, *marks])


def _container_preview(value: object) -> str:
    """Return a preview of ONNX's other values: a sequence by its first elements, an optional, a
    map.
    """
    if isinstance(value, tuple):
        elements = ", ".join(value_preview(item) for item in value[:2])
        return (
            f"{len(value):,} in sequence: {elements}{' …' if len(value) > 2 else ''}"
            if value
            else "empty sequence"
        )
    return (
        "no value"
        if value is None
        else f"map of {len(value):,}"
        if isinstance(value, Mapping)
        else neutral(repr(value), _MAX_TEXT)
    )


def not_finite(value: np.ndarray | np.generic) -> tuple[str, ...]:
    """Return ``NaN`` and ``inf``, each if an element is one. The first million elements are
    searched.
    """
    if value.dtype.kind not in "fcV" or value.dtype.names:
        return ()
    flat = value.reshape(-1)[:_MAX_SCANNED] if value.size > _MAX_SCANNED else value
    with np.errstate(all="ignore"):
        if value.dtype.kind == "V":
            flat = flat.astype(np.float32)
        # The sum is one pass without an array of booleans. It may also overflow, or be inf - inf,
        # so that each element is checked if it is not finite.
        if np.isfinite(flat.sum(dtype=np.float32 if value.dtype.itemsize < 4 else None)):
            return ()
        tests = {"NaN": np.isnan, "inf": np.isinf}
        return tuple(name for name, test in tests.items() if test(flat).any())


def has_nan(value: np.ndarray | np.generic) -> bool:
    """Return True if an element is NaN. The first million elements are searched."""
    return "NaN" in not_finite(value)


def constant_text(constant: Constant) -> str:
    """Return the text of a constant in its consumer's box: up to four elements, else type and
    shape.
    """
    shape = f"[{','.join(map(str, constant.shape))}]"
    described = f"{constant.element_type} {shape}"
    if constant.elements > 4 or len(constant.shape) > 1 or len(constant.data) > 256:
        return described
    try:
        flat = constant.array().reshape(-1)
    except ValueError:
        return described
    texts = (
        [number_text(value) for value in flat.tolist()]
        if flat.dtype.kind in "biufO"
        else [number_text(value) for value in flat]
    )
    text = texts[0] if not constant.shape and texts else f"[{', '.join(texts)}]"
    return text if len(text) <= 28 else described


MAX_POINTS = 48


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Heights from 0 to 100 at equal distances; None for numbers that are not finite."""

    points: tuple[int | None, ...]
    now: float | None
    """Position of the cursor's iteration, 0 to 1; None outside of the loop."""
    not_finite: float | None
    """Position of the first NaN or infinity, 0 to 1."""

    def as_data(self) -> list[object]:
        """Return the sparkline as lists and numbers, for JSON."""
        return [list(self.points), self.now, self.not_finite]


def carried_number(body: Body) -> LayerId | None:
    """Return the carried Parameter for the sparkline: one with one element, or of unknown shape.

    Counters rank last, then unknown shapes, then integers.
    """
    best: tuple[tuple[bool, bool, bool], LayerId] | None = None
    for edge in body.back_edges:
        node = body.graph.by_id.get(edge.to_layer)
        if node is None or not node.outputs:
            continue
        port = node.outputs[0]
        known = port.shape.is_static and math.prod(port.shape.lengths) == 1
        if (
            port.element_type is None
            or not (port.element_type.is_float or port.element_type.is_integer)
            or not (known or port.shape.rank is None)
        ):
            continue
        rank = (_is_counter(body, edge), not known, not port.element_type.is_float)
        if best is None or rank < best[0]:
            best = rank, edge.to_layer
    return best[1] if best else None


def _is_counter(body: Body, edge: BackEdge) -> bool:
    """Return True if the carried value grows by a constant, which makes a straight line."""
    source = next(iter(body.graph.sources.get(edge.from_layer, ())), None)
    if source is None or body.graph.by_id[source.layer].type != "Add":
        return False
    sources = [
        source_ref.layer
        for source_ref in body.graph.sources[source.layer]
        if source_ref is not None
    ]
    return edge.to_layer in sources and any(
        body.graph.by_id[source_ref].constant is not None for source_ref in sources
    )


def sparkline(run: Run, parameter: str, iteration: int | None) -> Sparkline | None:
    """Return the sparkline of a carried Parameter at an address, or None if there is none yet.

    It reads about 50 values at most.
    """
    try:
        program, row = run.rows_of(Address.parse(parameter))
    except EngineError:
        return None
    region = program.region
    layer = program.layer_of_label.get(parameter.rpartition("/")[2])
    if not isinstance(region, LoopRegion) or layer is None:
        return None
    first, end = run.timeline.executions.rows_of(
        region, run.timeline.executions.parent_row(program, row)[0]
    )
    slot = program.slots[layer, 0]

    def numbers_at(row_index: int) -> list[float]:
        return list(
            np.asarray(run.values.get(run.timeline, program, row_index, slot))
            .reshape(-1)[:2]
            .astype(np.float64)
            .tolist()
        )

    def number(row_index: int) -> float:
        return next(iter(numbers_at(row_index)), math.nan)

    if end - first < 2 or len(numbers_at(first)) != 1:
        return None
    places = np.linspace(first, end - 1, min(MAX_POINTS, end - first)).astype(np.int64)
    rows = [int(row_index) for row_index in np.unique(places)]
    samples = [numbers_at(row_index) for row_index in rows]
    if any(len(value) != 1 for value in samples):  # a carried value may change its shape
        return None
    numbers = [value for (value,) in samples]
    span = end - 1 - first
    now = None if iteration is None else min(1.0, iteration / span)
    row_not_finite = _first_not_finite(rows, numbers, number)
    return Sparkline(
        _heights(numbers), now, None if row_not_finite is None else (row_not_finite - first) / span
    )


def _first_not_finite(
    rows: Sequence[int], numbers: Sequence[float], number: Callable[[int], float]
) -> int | None:
    """Return the first row that is not finite, from the ``numbers`` at ``rows``; None if all are.

    Bisects between the samples, assuming that later rows are not finite either.
    """
    samples = enumerate(numbers)
    index = next((index for index, value in samples if not math.isfinite(value)), None)
    if index is None:
        return None
    finite, not_finite = rows[max(index - 1, 0)], rows[index]
    while not_finite - finite > 1:
        middle = (finite + not_finite) // 2
        if math.isfinite(number(middle)):
            finite = middle
        else:
            not_finite = middle
    return not_finite


def _heights(numbers: list[float]) -> tuple[int | None, ...]:
    finite = [value for value in numbers if math.isfinite(value)]
    if not finite:
        return (None,) * len(numbers)
    lower, upper = min(finite), max(finite)
    height = upper - lower
    return tuple(
        None
        if not math.isfinite(value)
        else 50
        if not height or not math.isfinite(height)
        else round((value - lower) / height * 100)
        for value in numbers
    )
