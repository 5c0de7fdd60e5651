"""Loops drawn as copies of their body: the window of visible iterations, and how it follows the
cursor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from loopscope.debug.run import Run
from loopscope.ir.model import Model
from loopscope.view.folding import COPIES, FEWEST_COPIES, MOST_COPIES, Folding, Unrolled, toggle
from loopscope.view.graph import without_iterations


def unroll(
    model: Model, folding: Folding, address: str, run: Run | None = None, count: int = COPIES
) -> Folding:
    """Return the folding with a loop unrolled around the cursor's iteration; or with it rolled up
    again.
    """
    address = without_iterations(address)
    if folding.window(address) is not None:
        return replace(
            folding,
            unrolled=tuple(
                unrolled for unrolled in folding.unrolled if unrolled.address != address
            ),
        )
    if address in folding.folded:
        folding = toggle(model, folding, address)
    iteration, total = (None, None) if run is None else run_of(run, address)
    window = Unrolled(
        address, 0, max(FEWEST_COPIES, min(count, count if total is None else total)), total
    )
    return replace(folding, unrolled=(*folding.unrolled, _around_iteration(window, iteration)))


def shift(folding: Folding, address: str, windows: int) -> Folding:
    """Move the window of an unrolled loop by a number of windows, within the loop's iterations."""
    return _changed(
        folding,
        address,
        lambda window: _clamped(replace(window, first=window.first + windows * window.count)),
    )


def resize(folding: Folding, address: str, more: int) -> Folding:
    """Change the number of copies by ``more``."""
    return _changed(
        folding,
        address,
        lambda window: _clamped(
            replace(window, count=min(MOST_COPIES, max(FEWEST_COPIES, window.count + more)))
        ),
    )


def place(folding: Folding, address: str, first: int, count: int) -> Folding:
    """Set the window of an unrolled loop: first iteration and number of copies, within the
    limits.
    """
    count = min(MOST_COPIES, max(FEWEST_COPIES, count))
    return _changed(
        folding, address, lambda window: _clamped(replace(window, first=first, count=count))
    )


def followed(folding: Folding, run: Run) -> Folding:
    """Return the folding after the cursor has moved: windows follow it, and iteration counts are
    updated.
    """
    if not folding.unrolled:
        return folding
    windows = []
    for window in folding.unrolled:
        iteration, total = run_of(run, window.address)
        windows.append(_around_iteration(replace(window, total=total), iteration))
    return replace(folding, unrolled=tuple(windows))


def run_of(run: Run, address: str) -> tuple[int | None, int | None]:
    """Return the cursor's iteration of a loop, and the iteration count once the loop has ended.

    The execution is the one at the cursor. Unknown numbers are None.
    """
    for frame in run.frames():
        if frame.iteration is not None and frame.static.rpartition("/")[0] == address:
            place: str | None = frame.address.rpartition("/")[0].rpartition("[")[0]
            iteration: int | None = frame.iteration
            break
    else:
        place, iteration = run.resolve(address), None
    record = run.record(place) if place else None
    return (
        iteration,
        record.iterations if record is not None and record.ended_by is not None else None,
    )


def _changed(folding: Folding, address: str, change: Callable[[Unrolled], Unrolled]) -> Folding:
    address = without_iterations(address)
    return replace(
        folding,
        unrolled=tuple(
            change(window) if window.address == address else window for window in folding.unrolled
        ),
    )


def _around_iteration(window: Unrolled, iteration: int | None) -> Unrolled:
    if iteration is None or window.first <= iteration < window.first + window.count:
        return window
    return _clamped(replace(window, first=iteration // window.count * window.count))


def _clamped(window: Unrolled) -> Unrolled:
    last_first = window.first if window.total is None else max(0, window.total - window.count)
    return replace(window, first=max(0, min(window.first, last_first)))
