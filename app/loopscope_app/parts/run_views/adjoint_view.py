"""A loop that is walked back: the norm of each adjoint over its iterations on a log scale, and
what each gave the shared weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

import loopscope
from loopscope.errors import EngineError
from loopscope.explain import WalkedBack, short_number, walked_back
from loopscope.ir import decode, iteration_words
from loopscope_app.actions import moves
from loopscope_app.parts.widgets import lanes, markup
from loopscope_app.state.focus import LoopInFocus
from loopscope_app.state.user_session import UserSession, current

KEY = "adjoints"
_MOST_TICKS = 80
_WORDS_UP_TO = 16
"""Iterations; beyond that a block has no room for words, and a curve is drawn."""
_ADJOINT, _CONTRIBUTION = 46, 20
"""Heights of lanes."""
_SENTENCES = 8
_walks: WeakKeyDictionary[loopscope.Debugger, tuple[object, WalkedBack, lanes.Chart]] = (
    WeakKeyDictionary()
)
"""The last picture of each run: it stays until another iteration has been walked back."""


def show(session: UserSession, loop: LoopInFocus) -> None:
    """Nothing where the loop in focus neither is walked back nor walks one back, or before that
    has begun.
    """
    debugger = session.run.debugger
    found = None if debugger is None else _found(debugger, loop.address)
    if found is None or debugger is None:
        return
    walk, chart = found
    # The strip comes first: on a small screen what is below is looked at last.
    if chart.lanes and walk.walked:
        lanes.show(
            chart,
            key=KEY,
            cursor=_here(walk, loop),
            wide=1,
            on_pick=lambda pick: _go(walk, int(pick.at)),
        )
    markup.show("<br>".join(map(markup.prose, _sentences(walk))), "walked_back")


def _found(debugger: loopscope.Debugger, address: str) -> tuple[WalkedBack, lanes.Chart] | None:
    kept = _walks.get(debugger)
    try:
        state = (address, debugger.steps if debugger.state == "paused" else -1)
        if kept is None or kept[0] != state:
            walk = walked_back(debugger, address)
            kept = _walks[debugger] = (state, walk, chart_of(walk))
    except EngineError:
        return None
    return kept[1], kept[2]


def _here(walk: WalkedBack, loop: LoopInFocus) -> int | None:
    """The iteration of the forward loop where the cursor is, or that is walked back there."""
    if loop.current is None:
        return None
    return walk.mirrored(loop.current) if loop.address == walk.backward else loop.current


def _go(walk: WalkedBack, iteration: int) -> None:
    """To where an iteration is walked back; the end is where the way back begins."""
    debugger = current().run.debugger
    back = walk.mirrored(min(iteration, walk.count - 1))
    if debugger is not None and 0 <= back < walk.walked:
        moves.seek(f"{walk.backward}[{back}]/body")


def _sentences(walk: WalkedBack) -> list[str]:
    told = [f"Adjoint of `{one.name}` **{one.sentence}**." for one in walk.adjoints]
    told += [f"Gradient of `{one.name}`: {one.sentence}." for one in walk.contributions]
    more = [f"And {len(told) - _SENTENCES:,} more."] if len(told) > _SENTENCES else []
    return [walk.sentence, *told[:_SENTENCES], *more]


def chart_of(walk: WalkedBack) -> lanes.Chart:
    """The norms over the forward loop's iterations; the last place is the end."""
    drawn = [
        replace(
            _lane(
                f"adjoint of {one.name}",
                one.places,
                one.norms,
                _ADJOINT,
                lambda at: _at(at, walk.count),
                walk.count + 1,
            ),
            verdict=one.fate.kind,
            note=one.sentence,
        )
        for one in walk.adjoints
    ]
    drawn += [
        _lane(
            f"gives {one.name}",
            one.iterations,
            one.norms,
            _CONTRIBUTION,
            iteration_words,
            walk.count + 1,
        )
        for one in walk.contributions
    ]
    ticks = [*map(str, range(walk.count)), "end"] if walk.count < _MOST_TICKS else None
    label = (
        f"Norms over the iterations of {decode(walk.forward.rpartition('/')[2])}, on a log scale"
    )
    return lanes.Chart(label, "iteration", walk.count + 1, drawn, ticks=ticks)


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
    ends = [*(int(one) for one in places[1:]), int(places[-1]) + 1] if len(places) else []
    blocks: list[lanes.Block] = []
    for place, end, norm, level in zip(map(int, places), ends, norms, levels, strict=True):
        kind: lanes.Kind = "nan" if not np.isfinite(norm) else "idle" if level is None else "heat"
        said = short_number(norm)
        inside = said if extent <= _WORDS_UP_TO else ""
        blocks.append(
            (
                place,
                end,
                kind,
                round(0.1 + 0.6 * (level or 0), 3),
                inside,
                f"{words(place)}: {said}",
            )
        )
    curve = levels if len(places) == extent > _WORDS_UP_TO and height >= _ADJOINT else None
    return lanes.Lane(name, blocks, height, line=curve, note="Euclidean norm, on a log scale")


def log_levels(norms: np.ndarray) -> list[float | None]:
    """By their logarithms, 1 for the largest, 0 for the smallest, or for a tenth of the largest
    where none is smaller than that.

    None for what is 0 or not finite.

    >>> log_levels(np.array([1e-4, 1e-2, 0, 1.0, np.inf]))
    [0.0, 0.5, None, 1.0, None]
    """
    usable = np.isfinite(norms) & (norms > 0)
    logs = np.log10(norms, where=usable, out=np.zeros(len(norms)))
    high = float(logs[usable].max()) if usable.any() else 0.0
    span = max(high - float(logs[usable].min()), 1.0) if usable.any() else 1.0
    return [
        1 - (high - float(one)) / span if use else None
        for one, use in zip(logs, usable, strict=True)
    ]
