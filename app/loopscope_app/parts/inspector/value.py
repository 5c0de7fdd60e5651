"""A whole tensor: as number, table, picture, histogram, code; its download; its course over the
iterations of its loop, and its difference to another iteration.

The course is that of the value or of its mean.
"""

from __future__ import annotations

import re

import numpy as np
import streamlit as st

import loopscope
from loopscope.errors import EngineError
from loopscope.ir import iteration_range, iteration_words, type_name
from loopscope.ops import is_tensor
from loopscope.view import has_nan, scalar_text, value_preview
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.iteration_table import curve
from loopscope_app.describe.loop_execution import PlaceInLoop, place_in_loop
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import current

_PICTURE_LEAST = 4
_CODE_MOST = 4096


def show(debugger: loopscope.Debugger, address: str, array: np.ndarray) -> None:
    if not is_tensor(array):
        _container(array)
        return
    shape = "scalar" if array.ndim == 0 else " × ".join(map(str, array.shape))
    marks = markup.chip(type_name(array.dtype)) + markup.chip(shape)
    if address in current().run.changes:
        marks += markup.chip("set by hand", "warn")
    if has_nan(array):
        marks += markup.chip("NaN", "bad")
    if array.size == 1:
        element = array.reshape(-1)[0]
        text = repr(element) if array.dtype.kind == "O" else scalar_text(element)
        markup.show(
            f'<div class="value">{markup.text(text, 400)}'
            f"</div>{marks}{_difference(debugger, address, array)}"
        )
    else:
        markup.show(f"{marks}{_difference(debugger, address, array)}{_statistics(array)}")
        _tables(array)
    show_course(debugger, address, array)
    show_difference(debugger, address, array)
    _code(array)


def _container(value: object) -> None:
    """Show a value of ONNX that is not a tensor: a sequence with one element in full, an empty
    optional, a map.
    """
    if not isinstance(value, tuple) or not value:
        markup.show(f'<div class="value">{markup.text(value_preview(value), 400)}</div>')
        return
    number = int(
        st.number_input(
            f"Element of {len(value):,}", 0, len(value) - 1, 0, key=f"value_element_{len(value)}"
        )
    )
    element = value[number]
    if not isinstance(element, np.ndarray):
        markup.show(f'<div class="value">{markup.text(value_preview(element), 400)}</div>')
    elif element.size == 1:
        markup.show(
            f'<div class="value">{markup.text(value_preview(element), 400)}'
            f"</div>{markup.chip(type_name(element.dtype))}"
        )
    else:
        shape = " × ".join(map(str, element.shape))
        markup.show(
            f"{markup.chip(type_name(element.dtype))}{markup.chip(shape)}{_statistics(element)}"
        )
        _tables(element)


def _statistics(array: np.ndarray) -> str:
    statistics = tensor_summary.statistics(array)
    if statistics is None:
        return ""
    cells = statistics.cells()
    return (
        '<div class="stats">'
        + "".join(f"<div><span>{name}</span>{number}</div>" for name, number in cells)
        + "</div>"
    )


_FLOATS = st.column_config.NumberColumn(format="%.7g")
"""Seven digits, as many as f32 has; otherwise the table writes 1e-16 as a row of zeros."""


def _tables(array: np.ndarray) -> None:
    if not array.size:
        markup.show("It has no elements.", "quiet")
        return
    leading = _leading(array)
    matrix = tensor_summary.plane(array, leading)
    rows, columns = matrix.shape
    if array.ndim == 1 and array.size <= tensor_summary.TABLE_COLUMNS:
        matrix = matrix.reshape(1, -1)
    if min(rows, columns) >= _PICTURE_LEAST and matrix.dtype.kind != "O":
        markup.show(f'<img alt="heat map" class="heat" src="{tensor_summary.heat_map(matrix)}">')
    first = 0
    if rows > tensor_summary.TABLE_ROWS and matrix.shape[0] == rows:
        first = st.number_input(
            "First row",
            0,
            rows - 1,
            0,
            step=tensor_summary.TABLE_ROWS,
            key=f"value_first_row_{rows}",
        )
    first_column = 0
    if matrix.shape[1] > tensor_summary.TABLE_COLUMNS:
        first_column = st.number_input(
            "First column",
            0,
            matrix.shape[1] - 1,
            0,
            step=tensor_summary.TABLE_COLUMNS,
            key=f"value_first_column_{matrix.shape[1]}",
        )
    table = tensor_summary.table(matrix, first, first_column)
    has_floats = table.dtypes.iloc[0].kind == "f"
    st.dataframe(
        table,
        height="auto" if matrix.shape[0] < 7 else 265,
        width="stretch",
        hide_index=matrix.shape[0] == 1,
        column_config=dict.fromkeys(table.columns, _FLOATS) if has_floats else None,
        key="value_table",
    )
    bars = tensor_summary.histogram(array) if array.size >= 32 else []
    if bars:
        st.vega_lite_chart(_bars(bars), height=110, width="stretch", key="value_histogram")


def _leading(array: np.ndarray) -> list[int]:
    """Return the positions along the axes before the last two, as the user chose them."""
    if array.ndim <= 2:
        return []
    columns = st.columns(min(array.ndim - 2, 6))
    return [
        int(
            columns[axis % 6].number_input(
                f"axis {axis}", 0, length - 1, 0, key=f"value_axis_{axis}_{length}"
            )
        )
        for axis, length in enumerate(array.shape[:-2])
    ]


def _bars(bars: list[dict[str, float]]) -> dict[str, object]:
    return {
        "data": {"values": bars},
        "mark": {"type": "bar", "tooltip": True},
        "encoding": {
            "x": {"field": "from", "type": "quantitative", "bin": {"binned": True}, "title": None},
            "x2": {"field": "to"},
            "y": {"field": "count", "type": "quantitative", "title": None},
        },
    }


def _difference(debugger: loopscope.Debugger, address: str, array: np.ndarray) -> str:
    """Return how much changed since the same place one iteration earlier, as words."""
    nest = place_in_loop(address)
    before = value_at(debugger, nest, nest.iteration - 1) if nest and nest.iteration else None
    if before is None:
        return ""
    return f'<div class="quiet">{markup.text(tensor_summary.difference(before, array))}</div>'


def download(address: str, array: np.ndarray) -> None:
    """Show a button that downloads a tensor."""
    if not is_tensor(array):
        return
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", address.removeprefix("main/"))[:80] or "value"
    st.download_button(
        "Download .npy",
        lambda: tensor_summary.npy(array),
        file_name=f"{name}.npy",
        key="value_download",
        on_click="ignore",
        width="stretch",
    )


def _code(array: np.ndarray) -> None:
    """Show a small tensor as code, written only while the section is open (60 ms at the limit)."""
    if array.size > _CODE_MOST:
        return
    section = st.expander("NumPy code", key="value_code", on_change="rerun")
    if section.open:
        text = tensor_summary.as_code(array)
        lines = text.count("\n")
        section.code(text, language="python", height=160 if lines > 5 else "content")


MOST_ITERATIONS = 120
MOST_ELEMENTS = 1 << 16
"""Largest number of elements over all iterations. More would slow down every step."""


def value_at(debugger: loopscope.Debugger, nest: PlaceInLoop, iteration: int) -> np.ndarray | None:
    """Return the value in another iteration, or None."""
    try:
        return debugger.value(nest.at(iteration))
    except EngineError:
        return None


def show_course(debugger: loopscope.Debugger, address: str, array: np.ndarray) -> None:
    nest = place_in_loop(address)
    record = debugger.record(nest.loop) if nest else None
    if nest is None or record is None or array.dtype.kind == "O" or not array.size:
        return
    begun = max(record.iterations or 0, nest.iteration + 1)
    first = max(0, min(nest.iteration - MOST_ITERATIONS // 2, begun - MOST_ITERATIONS))
    shown = range(first, min(begun, first + MOST_ITERATIONS))
    if len(shown) < 2 or array.size * len(shown) > MOST_ELEMENTS:
        return
    numbers = [_value_or_mean(value_at(debugger, nest, iteration)) for iteration in shown]
    known = [number for number in numbers if number is not None]
    if len(known) < 2:
        return
    what = "Value" if array.size == 1 else "Mean"
    ends = f"from {tensor_summary.short(min(known))} to {tensor_summary.short(max(known))}"
    picture = curve(numbers, nest.iteration - first, height=64)
    change_words = f"{what} in {iteration_range(shown[0], shown[-1])}, {ends}"
    markup.show(
        f'{markup.section("Over the iterations")}<div class="history">{picture}</div><span '
        f'class="quiet">{change_words}</span>'
    )


def _value_or_mean(array: np.ndarray | None) -> float | None:
    numbers = tensor_summary.numbers(np.asarray(array)) if array is not None else None
    if numbers is None or not numbers.size:
        return None
    with np.errstate(all="ignore"):
        mean = float(numbers.mean())
    return mean if np.isfinite(mean) else None


DIFFERENCE, OTHER_ITERATION = "difference", "difference_iteration"
_MAX_CHANGES = 5


def show_difference(debugger: loopscope.Debugger, address: str, array: np.ndarray) -> None:
    """Show the difference on request, in loops of more than one iteration."""
    nest = place_in_loop(address)
    record = debugger.record(nest.loop) if nest else None
    begun = max(record.iterations or 0, nest.iteration + 1) if nest and record else 0
    if nest is None or begun < 2:
        return
    switch, field = st.columns([1.5, 1], vertical_alignment="center", gap="small")
    if not switch.toggle("Difference to iteration", key=DIFFERENCE):
        return
    usual = nest.iteration - 1 if nest.iteration else 1
    other = int(
        field.number_input(
            "Iteration",
            0,
            begun - 1,
            usual,
            key=f"{OTHER_ITERATION}_{nest.loop}_{begun}",
            label_visibility="collapsed",
        )
    )
    before = value_at(debugger, nest, other)
    if before is None:
        markup.show(f"It has no value in {iteration_words(other)}.", "quiet")
        return
    markup.show(markup.text(change_words(before, array, other)))
    change = change_between(before, array)
    if change is None or change.size < 2 or not change.any():
        return
    plane = tensor_summary.plane(change, [0] * max(change.ndim - 2, 0))
    if min(plane.shape) >= 2:
        markup.show(
            f'<img alt="where it changed" class="heat" src="{tensor_summary.heat_map(plane)}">'
        )
    rows = [
        (
            f'<span class="mono">{list(place)}</span>',
            f'<span class="mono">{tensor_summary.short(was)} → {tensor_summary.short(now)}</span>',
        )
        for place, was, now in largest_changes(before, array)
    ]
    markup.show(markup.section("Largest changes") + markup.facts(rows))


def change_words(before: np.ndarray, now: np.ndarray, iteration: int) -> str:
    """Return what changed since another iteration, as a sentence.

    >>> change_words(np.array([1.0, 2.0]), np.array([1.0, 4.0]), 3)
    'Against iteration 3: 1 of 2 elements changed, by up to 2.'
    >>> change_words(np.array([1.0]), np.array([1.0]), 1)
    'As in iteration 1.'
    >>> change_words(np.array([True]), np.array([False]), 4)
    'It was true in iteration 4.'
    """
    change = tensor_summary.difference(
        before, now, against="against", where=iteration_words(iteration)
    )
    return change[:1].upper() + change[1:] + "."


def change_between(before: np.ndarray, now: np.ndarray) -> np.ndarray | None:
    """Return the change of each element as float64; None if shapes differ or elements are not
    numbers.

    >>> change_between(np.array([1, 2]), np.array([3, 2])).tolist()
    [2.0, 0.0]
    """
    if np.shape(before) != np.shape(now) or np.size(now) > tensor_summary.SCANNED:
        return None
    left = tensor_summary.numbers(np.asarray(before))
    right = tensor_summary.numbers(np.asarray(now))
    if left is None or right is None:
        return None
    with np.errstate(all="ignore"):
        change: np.ndarray = np.asarray(right - left)
    change[(left == right) | (np.isnan(left) & np.isnan(right))] = 0.0
    return change


def largest_changes(
    before: np.ndarray, now: np.ndarray
) -> list[tuple[tuple[int, ...], float, float]]:
    """Return index, old and new number of the elements that changed most; changes that are not
    finite come first.
    """
    change = change_between(before, now)
    left = tensor_summary.numbers(np.asarray(before))
    right = tensor_summary.numbers(np.asarray(now))
    if change is None or left is None or right is None:
        return []
    size = np.where(np.isfinite(change), np.abs(change), np.inf).reshape(-1)
    order = [
        int(position)
        for position in np.argsort(-size, kind="stable")[:_MAX_CHANGES]
        if size[position] > 0
    ]
    places = [
        tuple(int(index) for index in np.unravel_index(position, change.shape))
        for position in order
    ]
    return [(place, float(left[place]), float(right[place])) for place in places]
