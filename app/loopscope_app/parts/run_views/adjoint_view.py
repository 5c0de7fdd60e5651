"""A forward/backward loop pair: the norm of each adjoint over the iterations on a log scale, and
contributions to shared weights.
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
"""Number of iterations up to which a block has room for words. Longer loops are drawn as a
curve.
"""
_ADJOINT, _CONTRIBUTION = 46, 20
"""Heights of lanes."""
_SENTENCES = 8
_walks: WeakKeyDictionary[loopscope.Debugger, tuple[object, WalkedBack, lanes.Chart]] = (
    WeakKeyDictionary()
)
"""The last picture of each run. It is valid until another backward iteration has run."""


def show(session: UserSession, loop: LoopInFocus) -> None:
    """Show the norms, if the loop in focus belongs to a pair and its backward loop has begun."""
    debugger = session.run.debugger
    entry = None if debugger is None else _found(debugger, loop.address)
    if entry is None or debugger is None:
        return
    walk, chart = entry
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
    cached = _walks.get(debugger)
    try:
        state = (address, debugger.steps if debugger.state == "paused" else -1)
        if cached is None or cached[0] != state:
            walk = walked_back(debugger, address)
            cached = _walks[debugger] = (state, walk, chart_of(walk))
    except EngineError:
        return None
    return cached[1], cached[2]


def _here(walk: WalkedBack, loop: LoopInFocus) -> int | None:
    """Return the forward iteration of the cursor, or the one whose backward iteration has the
    cursor.
    """
    if loop.current is None:
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


def _sentences(walk: WalkedBack) -> list[str]:
    sentences = [
        f"Adjoint of `{adjoint.name}` **{adjoint.sentence}**." for adjoint in walk.adjoints
    ]
    sentences += [
        f"Gradient of `{adjoint.name}`: {adjoint.sentence}." for adjoint in walk.contributions
    ]
    more = [f"And {len(sentences) - _SENTENCES:,} more."] if len(sentences) > _SENTENCES else []
    return [walk.sentence, *sentences[:_SENTENCES], *more]


def chart_of(walk: WalkedBack) -> lanes.Chart:
    """Return the norms over the forward iterations as a chart; the last place is the end."""
    drawn = [
        replace(
            _lane(
                f"adjoint of {adjoint.name}",
                adjoint.places,
                adjoint.norms,
                _ADJOINT,
                lambda place: _at(place, walk.count),
                walk.count + 1,
            ),
            verdict=adjoint.fate.kind,
            note=adjoint.sentence,
        )
        for adjoint in walk.adjoints
    ]
    drawn += [
        _lane(
            f"gives {adjoint.name}",
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
        norm_text = short_number(norm)
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


def log_levels(norms: np.ndarray) -> list[float | None]:
    """Return the logarithms of norms scaled to 0 to 1, None for norms that are 0 or not finite.

    1 is the largest norm. 0 is the smallest, or a tenth of the largest if no norm is smaller.

    >>> log_levels(np.array([1e-4, 1e-2, 0, 1.0, np.inf]))
    [0.0, 0.5, None, 1.0, None]
    """
    usable = np.isfinite(norms) & (norms > 0)
    logs = np.log10(norms, where=usable, out=np.zeros(len(norms)))
    high = float(logs[usable].max()) if usable.any() else 0.0
    span = max(high - float(logs[usable].min()), 1.0) if usable.any() else 1.0
    return [
        1 - (high - float(level)) / span if use else None
        for level, use in zip(logs, usable, strict=True)
    ]
