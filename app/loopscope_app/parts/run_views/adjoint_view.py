"""A forward/backward loop pair: the norm of each adjoint over the iterations on a log scale, and
contributions to shared weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

import loopscope
from loopscope.explain import AdjointHistory, WalkedBack, walks_of
from loopscope.ir import decode, iteration_words, significant
from loopscope.object_cache import cache_by_object
from loopscope_app.actions import moves
from loopscope_app.parts.widgets import lanes
from loopscope_app.state.focus import LoopInFocus
from loopscope_app.state.user_session import current

KEY = "adjoints"
_MOST_TICKS = 80
_WORDS_UP_TO = 16
"""Number of iterations up to which a block has room for words. Longer loops are drawn as a
curve.
"""
_ADJOINT, _CONTRIBUTION = 46, 20
"""Heights of lanes."""


@cache_by_object(
    key=lambda debugger: debugger.steps if debugger.state == "paused" else "over",
    newest_only=True,
)
def walks(debugger: loopscope.Debugger) -> tuple[WalkedBack, ...]:
    """Return the pairs of forward and backward loops whose backward loop has begun."""
    return walks_of(debugger)


def show(walk: WalkedBack, before: WalkedBack | None, cursor: int | None) -> None:
    """Draw the norms of a pair. ``before`` is the pair in the run without values set by hand."""
    chart = chart_of(walk, before)
    lanes.leave_room(chart)
    if chart.lanes and walk.walked:
        lanes.show(
            chart, key=KEY, cursor=cursor, wide=1, on_pick=lambda pick: _go(walk, int(pick.at))
        )


def cursor_of(walk: WalkedBack, loop: LoopInFocus | None) -> int | None:
    """Return the forward iteration of the cursor, or the one whose backward iteration has the
    cursor.
    """
    if loop is None or loop.current is None:
        return None
    if loop.address not in (walk.forward, walk.backward):
        return None
    return walk.mirrored(loop.current) if loop.address == walk.backward else loop.current


def _go(walk: WalkedBack, iteration: int) -> None:
    """Go to the backward iteration of a forward iteration; the end is where the backward loop
    begins.
    """
    debugger = current().run.debugger
    back = walk.mirrored(min(iteration, walk.count - 1))
    if debugger is not None and 0 <= back < walk.walked:
        moves.seek(f"{walk.backward}[{back}]/body")


@cache_by_object(newest_only=True)
def chart_of(walk: WalkedBack, before: WalkedBack | None = None) -> lanes.Chart:
    """Return the norms over the forward iterations as a chart; the last place is the end.

    Norms of ``before`` are dashed curves.
    """
    drawn = [
        replace(
            _lane(
                f"gradient of {adjoint.name}",
                adjoint.places,
                adjoint.norms,
                _ADJOINT,
                lambda place: _at(place, walk.count),
                walk.count + 1,
            ),
            verdict=adjoint.fate.kind,
            note=adjoint.sentence,
            second_line=_before(adjoint, before, walk.count + 1),
        )
        for adjoint in walk.adjoints
    ]
    drawn += [
        _lane(
            f"contribution to {adjoint.name}",
            adjoint.iterations,
            adjoint.norms,
            _CONTRIBUTION,
            iteration_words,
            walk.count + 1,
        )
        for adjoint in walk.contributions
    ]
    ticks = [*map(str, range(walk.count)), "end"] if walk.count < _MOST_TICKS else None
    label = (
        f"Norms over the iterations of {decode(walk.forward.rpartition('/')[2])}, on a log scale"
    )
    return lanes.Chart(label, "iteration", walk.count + 1, drawn, ticks=ticks)


def _before(
    adjoint: AdjointHistory, before: WalkedBack | None, extent: int
) -> list[float | None] | None:
    """Return the norms of the same adjoint without values set by hand, on the scale of this one."""
    twin = (
        next((entry for entry in before.adjoints if entry.name == adjoint.name), None)
        if before
        else None
    )
    if twin is None:
        return None
    levels = log_levels(twin.norms, [*adjoint.norms])
    line: list[float | None] = [None] * extent
    for place, level in zip(map(int, twin.places), levels, strict=True):
        if 0 <= place < extent and level is not None:
            line[place] = min(max(level, 0.0), 1.0)
    return line


def _at(place: int, count: int) -> str:
    return "at the end" if place == count else f"at the beginning of {iteration_words(place)}"


def _lane(
    name: str,
    places: Sequence[int] | np.ndarray,
    norms: np.ndarray,
    height: int,
    words: Callable[[int], str],
    extent: int,
) -> lanes.Lane:
    levels = log_levels(norms)
    ends = [*(int(place) for place in places[1:]), int(places[-1]) + 1] if len(places) else []
    blocks: list[lanes.Block] = []
    for place, end, norm, level in zip(map(int, places), ends, norms, levels, strict=True):
        kind: lanes.Kind = "nan" if not np.isfinite(norm) else "idle" if level is None else "heat"
        norm_text = significant(norm, 2)
        inside = norm_text if extent <= _WORDS_UP_TO else ""
        blocks.append(
            (
                place,
                end,
                kind,
                round(0.1 + 0.6 * (level or 0), 3),
                inside,
                f"{words(place)}: {norm_text}",
            )
        )
    curve = levels if len(places) == extent > _WORDS_UP_TO and height >= _ADJOINT else None
    return lanes.Lane(name, blocks, height, line=curve, note="Euclidean norm, on a log scale")


def log_levels(norms: np.ndarray, scale: Sequence[float] | None = None) -> list[float | None]:
    """Return the logarithms of norms scaled to 0 to 1, None for norms that are 0 or not finite.

    1 is the largest norm of ``scale``, which defaults to the norms themselves. 0 is the smallest,
    or a tenth of the largest if no norm is smaller.

    >>> log_levels(np.array([1e-4, 1e-2, 0, 1.0, np.inf]))
    [0.0, 0.5, None, 1.0, None]
    """
    usable = np.isfinite(norms) & (norms > 0)
    logs = np.log10(norms, where=usable, out=np.zeros(len(norms)))
    ends = [math.log10(norm) for norm in scale if 0 < norm < math.inf] if scale else logs[usable]
    high, low = (float(max(ends)), float(min(ends))) if len(ends) else (0.0, 0.0)
    span = max(high - low, 1.0)
    return [
        1 - (high - float(level)) / span if use else None
        for level, use in zip(logs, usable, strict=True)
    ]
