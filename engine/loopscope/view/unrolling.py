"""Loops drawn as copies of their body: which iterations are in sight, and how that follows the
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
    """The folding with a loop drawn as copies, round the cursor's iteration; what was unrolled
    is drawn once again.
    """
    address = without_iterations(address)
    if folding.window(address) is not None:
        return replace(
            folding, unrolled=tuple(one for one in folding.unrolled if one.address != address)
        )
    if address in folding.folded:
        folding = toggle(model, folding, address)
    iteration, total = (None, None) if run is None else run_of(run, address)
    made = Unrolled(
        address, 0, max(FEWEST_COPIES, min(count, count if total is None else total)), total
    )
    return replace(folding, unrolled=(*folding.unrolled, _round(made, iteration)))


def shift(folding: Folding, address: str, windows: int) -> Folding:
    """The window of an unrolled loop so many windows later, or earlier; it stays among the
    iterations that there are.
    """
    return _changed(
        folding, address, lambda one: _within(replace(one, first=one.first + windows * one.count))
    )


def resize(folding: Folding, address: str, more: int) -> Folding:
    """So many copies more, or fewer."""
    return _changed(
        folding,
        address,
        lambda one: _within(
            replace(one, count=min(MOST_COPIES, max(FEWEST_COPIES, one.count + more)))
        ),
    )


def place(folding: Folding, address: str, first: int, count: int) -> Folding:
    """The window of an unrolled loop at an iteration, with so many copies, as far as there are
    so many.
    """
    count = min(MOST_COPIES, max(FEWEST_COPIES, count))
    return _changed(folding, address, lambda one: _within(replace(one, first=first, count=count)))


def followed(folding: Folding, run: Run) -> Folding:
    """The folding after the cursor has moved: windows that it has left come after it, and learn
    how many iterations there are.
    """
    if not folding.unrolled:
        return folding
    made = []
    for one in folding.unrolled:
        iteration, total = run_of(run, one.address)
        made.append(_round(replace(one, total=total), iteration))
    return replace(folding, unrolled=tuple(made))


def run_of(run: Run, address: str) -> tuple[int | None, int | None]:
    """Of the loop's execution at the cursor: the iteration that the cursor is in, and how many
    there are when it is known.
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
        unrolled=tuple(change(one) if one.address == address else one for one in folding.unrolled),
    )


def _round(one: Unrolled, iteration: int | None) -> Unrolled:
    if iteration is None or one.first <= iteration < one.first + one.count:
        return one
    return _within(replace(one, first=iteration // one.count * one.count))


def _within(one: Unrolled) -> Unrolled:
    most = one.first if one.total is None else max(0, one.total - one.count)
    return replace(one, first=max(0, min(one.first, most)))
