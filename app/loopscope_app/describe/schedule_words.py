"""Sentences about a schedule of a loop: its length, the gain of its window, and which value
leads.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.errors import counted
from loopscope.explain import Dependences, Lead, Schedule, TicksOf, leads, operation_ticks, schedule
from loopscope.ir import decode
from loopscope_app.describe.wording import times


def sentences(
    dependences: Dependences,
    plan: Schedule,
    window: int,
    workers: int,
    ticks_of: TicksOf = operation_ticks,
) -> tuple[str, ...]:
    """Return the sentences about a schedule; names of the model are in `backticks`."""
    return (
        _length(dependences, plan, workers),
        *_window_words(dependences, plan, window, workers, ticks_of),
        *_lead_words(leads(dependences, plan)),
    )


def cut(dependences: Dependences) -> str:
    """Return a note if a schedule does not contain all iterations, or an empty text."""
    if dependences.is_cut:
        return "Only the first operations of iteration 0 are scheduled: there are too many."
    count = len(dependences.begins)
    return (
        f"Only the first {count:,} of {times(dependences.iterations)} are scheduled."
        if count < dependences.iterations
        else ""
    )


def _length(dependences: Dependences, plan: Schedule, workers: int) -> str:
    work = sum(operation is not None for operation in dependences.operations)
    operations = f"{counted(work, 'operation')} of {times(len(dependences.begins))}"
    summary = f"**{_ticks(plan.length)}** for {operations}"
    if workers == 1:
        return f"{summary}: one worker runs one operation at a time, for any window."
    return f"{summary}, {_factor(plan.work, plan.length)} one operation at a time."


def _window_words(
    dependences: Dependences, plan: Schedule, window: int, workers: int, ticks_of: TicksOf
) -> Iterator[str]:
    """Yield the gain of overlapping iterations, and of more workers."""
    saves_nothing = False
    if window > 1 and workers > 1:
        serial = schedule(dependences, 1, workers, ticks_of).length
        if serial > plan.length:
            factor = _factor(serial, plan.length)
            yield (
                f"One iteration at a time would take {serial:,}: "
                f"this window makes it {factor} that."
            )
        else:
            saves_nothing = True
    unlimited = schedule(dependences, window, None, ticks_of).length
    overlapping = "Overlapping iterations saves nothing here"
    if unlimited < plan.length:
        yield from (f"{overlapping}.",) if saves_nothing else ()
        yield f"With enough workers: {_ticks(unlimited)}."
    elif (
        window < len(dependences.begins)
        and schedule(dependences, len(dependences.begins), None, ticks_of).length < plan.length
    ):
        yield from (f"{overlapping}.",) if saves_nothing else ()
        yield "More workers save nothing, a wider window does."
    elif saves_nothing:
        yield (f"{overlapping}; neither do more workers: each operation waits for the one before.")
    else:
        yield "More workers save nothing: each operation waits for the one before."


def _lead_words(all_leads: tuple[Lead, ...]) -> Iterator[str]:
    """Yield a sentence about the largest lead."""
    if not all_leads:
        return
    largest = max(all_leads, key=lambda lead: lead.iterations)
    leader, follower = f"`{decode(largest.leader)}`", f"`{decode(largest.follower)}`"
    if largest.is_complete:
        yield f"{leader} ends before {follower} is computed once, and is never behind it."
    elif largest.iterations:
        yield f"{leader} gets up to {times(largest.iterations)} ahead of {follower}, never behind."
    else:
        yield f"{leader} and {follower} go side by side."


def _ticks(count: int) -> str:
    return counted(count, "tick")


def _factor(slow: int, fast: int) -> str:
    """Return how much faster it is, as the beginning of a comparison.

    >>> _factor(100, 50), _factor(7, 7)
    ('2.0 times as fast as', 'as fast as')
    """
    return "as fast as" if slow == fast or not fast else f"{slow / fast:.1f} times as fast as"
