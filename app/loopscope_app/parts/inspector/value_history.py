"""A value over the iterations of its loop: its course, and its difference to another iteration.

The course is that of the value or of its mean.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

import loopscope
from loopscope.errors import EngineError
from loopscope.ir import iteration_range, iteration_words
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.loop_execution import PlaceInLoop, place_in_loop
from loopscope_app.describe.loop_tape import curve
from loopscope_app.parts.widgets import markup

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
    numbers = [_number(value_at(debugger, nest, iteration)) for iteration in shown]
    known = [number for number in numbers if number is not None]
    if len(known) < 2:
        return
    what = "Value" if array.size == 1 else "Mean"
    ends = f"from {tensor_summary.short(min(known))} to {tensor_summary.short(max(known))}"
    picture = curve(numbers, nest.iteration - first, height=64)
    words = f"{what} in {iteration_range(shown[0], shown[-1])}, {ends}"
    markup.show(
        f'{markup.section("Over the iterations")}<div class="history">{picture}</div><span '
        f'class="quiet">{words}</span>'
    )


def _number(array: np.ndarray | None) -> float | None:
    numbers = tensor_summary.numbers(np.asarray(array)) if array is not None else None
    if numbers is None or not numbers.size:
        return None
    with np.errstate(all="ignore"):
        mean = float(numbers.mean())
    return mean if np.isfinite(mean) else None


KEY, OTHER = "difference", "difference_iteration"
_LARGEST = 5


def show_difference(debugger: loopscope.Debugger, address: str, array: np.ndarray) -> None:
    """Show the difference on request, in loops of more than one iteration."""
    nest = place_in_loop(address)
    record = debugger.record(nest.loop) if nest else None
    begun = max(record.iterations or 0, nest.iteration + 1) if nest and record else 0
    if nest is None or begun < 2:
        return
    switch, field = st.columns([1.5, 1], vertical_alignment="center", gap="small")
    if not switch.toggle("Difference to iteration", key=KEY):
        return
    usual = nest.iteration - 1 if nest.iteration else 1
    other = int(
        field.number_input(
            "Iteration",
            0,
            begun - 1,
            usual,
            key=f"{OTHER}_{nest.loop}_{begun}",
            label_visibility="collapsed",
        )
    )
    before = value_at(debugger, nest, other)
    if before is None:
        markup.show(f"It has no value in {iteration_words(other)}.", "quiet")
        return
    markup.show(markup.text(words(before, array, other)))
    change = between(before, array)
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
        for place, was, now in largest(before, array)
    ]
    markup.show(markup.section("Largest changes") + markup.facts(rows))


def words(before: np.ndarray, now: np.ndarray, iteration: int) -> str:
    """Return what changed since another iteration, as a sentence.

    >>> words(np.array([1.0, 2.0]), np.array([1.0, 4.0]), 3)
    'Against iteration 3: 1 of 2 elements changed, by up to 2.'
    >>> words(np.array([1.0]), np.array([1.0]), 1), words(np.array([True]), np.array([False]), 4)
    ('As in iteration 1.', 'It was true in iteration 4.')
    """
    change = tensor_summary.difference(
        before, now, against="against", where=iteration_words(iteration)
    )
    return change[:1].upper() + change[1:] + "."


def between(before: np.ndarray, now: np.ndarray) -> np.ndarray | None:
    """Return the change of each element as float64; None if shapes differ or elements are not
    numbers.

    >>> between(np.array([1, 2]), np.array([3, 2])).tolist()
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


def largest(before: np.ndarray, now: np.ndarray) -> list[tuple[tuple[int, ...], float, float]]:
    """Return index, old and new number of the elements that changed most; changes that are not
    finite come first.
    """
    change = between(before, now)
    left = tensor_summary.numbers(np.asarray(before))
    right = tensor_summary.numbers(np.asarray(now))
    if change is None or left is None or right is None:
        return []
    size = np.where(np.isfinite(change), np.abs(change), np.inf).reshape(-1)
    order = [
        int(position)
        for position in np.argsort(-size, kind="stable")[:_LARGEST]
        if size[position] > 0
    ]
    places = [
        tuple(int(index) for index in np.unravel_index(position, change.shape))
        for position in order
    ]
    return [(place, float(left[place]), float(right[place])) for place in places]
