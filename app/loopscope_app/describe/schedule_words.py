"""What a schedule of a loop says, in sentences: how long it is, what its window gains, and what
got ahead of what.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.explain import Dependences, Lead, Schedule, TicksOf, leads, operation_ticks, schedule
from loopscope.ir import decode
from loopscope_app.describe.wording import times


def sentences(
    found: Dependences,
    made: Schedule,
    window: int,
    workers: int,
    ticks_of: TicksOf = operation_ticks,
) -> tuple[str, ...]:
    """Of a schedule with such a window and so many workers; names of the model in `backticks`."""
    return (
        _length(found, made, workers),
        *_window_words(found, made, window, workers, ticks_of),
        *_lead_words(leads(found, made)),
    )


def cut(found: Dependences) -> str:
    """That a schedule has not all iterations; empty where it has."""
    if found.is_cut:
        return "Only the first operations of iteration 0 are scheduled: there are too many."
    shown = len(found.begins)
    return (
        f"Only the first {shown:,} of {times(found.iterations)} are scheduled."
        if shown < found.iterations
        else ""
    )


def _length(found: Dependences, made: Schedule, workers: int) -> str:
    work = sum(one is not None for one in found.operations)
    what = f"**{_ticks(made.length)}** for {work:,} operation{'s' * (work != 1)} of {times(len(found.begins))}"
    if workers == 1:
        return f"{what}: one worker runs one operation at a time, whatever the window."
    return f"{what}, {_factor(made.work, made.length)} one operation at a time."


def _window_words(
    found: Dependences, made: Schedule, window: int, workers: int, ticks_of: TicksOf
) -> Iterator[str]:
    """What overlapping iterations gain, and whether more workers would gain anything."""
    if window > 1 and workers > 1:
        alone = schedule(found, 1, workers, ticks_of).length
        if alone > made.length:
            yield f"One iteration at a time would take {alone:,}: this window makes it {_factor(alone, made.length)} that."
        else:
            yield "One iteration at a time takes no longer: this window gains nothing here."
    free = schedule(found, window, None, ticks_of).length
    if free < made.length:
        yield f"With enough workers: {_ticks(free)}."
    elif (
        window < len(found.begins)
        and schedule(found, len(found.begins), None, ticks_of).length < made.length
    ):
        yield "More workers gain nothing, a wider window does."
    else:
        yield "More workers gain nothing: operations that wait for each other take that long."


def _lead_words(found: tuple[Lead, ...]) -> Iterator[str]:
    """Of the one that is furthest behind."""
    if not found:
        return
    most = max(found, key=lambda one: one.iterations)
    leader, follower = f"`{decode(most.leader)}`", f"`{decode(most.follower)}`"
    if most.is_complete:
        yield f"{leader} ends before {follower} is computed once, and is never behind it."
    elif most.iterations:
        yield f"{leader} gets up to {times(most.iterations)} ahead of {follower}, never behind."
    else:
        yield f"{leader} and {follower} go side by side."


def _ticks(count: int) -> str:
    return f"{count:,} tick{'s' * (count != 1)}"


def _factor(slow: int, fast: int) -> str:
    """How much faster, before the word that says than what.

    >>> _factor(100, 50), _factor(7, 7)
    ('2.0 times as fast as', 'as fast as')
    """
    return "as fast as" if slow == fast or not fast else f"{slow / fast:.1f} times as fast as"
