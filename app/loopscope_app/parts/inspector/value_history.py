"""One place over all iterations of its innermost loop: the course of its value, or of its mean."""

from __future__ import annotations

import numpy as np

import loopscope
from loopscope.errors import EngineError
from loopscope.ir import iteration_range
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


def show(debugger: loopscope.Debugger, address: str, array: np.ndarray) -> None:
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
