"""Gradients: what is differentiated by what, the verdict, and the run on a canvas.

Lanes show the norm of each adjoint over the iterations on a log scale, and contributions to shared
weights.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import loopscope
from loopscope.errors import elided, neutral
from loopscope.explain import AdjointHistory, WalkedBack, branches_of, walks_of
from loopscope.ir import decode, iteration_words, significant
from loopscope.object_cache import cache_by_object
from loopscope_app.actions import gradients, moves
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.gradients import (
    branch_headline,
    headline,
    sentences,
    sources,
    targets,
    usual_sources,
)
from loopscope_app.parts.run_views import compared_page
from loopscope_app.parts.widgets import lanes, markup, place_lists
from loopscope_app.state.focus import LoopInFocus, loop_in_focus
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession, current

PAIR, TABLE = "gradient_pair", "gradient_table"
_HEADER_REM = 10.5
"""Height in rem of header, controls and a line."""
_BAD = ("vanishes", "explodes", "is cut off", "does not flow", "is not a number")


def show(session: UserSession, canvas: Callable[[UserSession], None]) -> None:
    """Draw the view. ``canvas`` draws the run at its cursor."""
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return
    bar = _show_differentiated(session, opened)
    pairs, branches = walks(debugger), branches_of(debugger)
    walk = _chosen(pairs, bar)
    if walk is None:
        lanes.leave_room(None, _HEADER_REM)
        _without_pair(session, debugger, branch_headline(branches))
    else:
        words = headline(walk) or walk.sentence
        is_bad = any(adjoint.fate.kind in _BAD for adjoint in walk.adjoints)
        compared_page.show_verdict(words, "bad" if is_bad else "good")
        cursor = cursor_of(walk, loop_in_focus(session))
        _show_adjoints(walk, _without_changes(session, walk), cursor)
    if walk is None and debugger.state != "finished":
        canvas(session)
        return
    left, right = st.columns([1, 1], gap="medium")
    with left, st.container(key="gradient_left"):
        if walk is not None:
            lines = [*sentences(walk), walk.sentence]
            lines += _changed_words(session)
            markup.show("<br>".join(map(markup.prose, lines)), "walked_back prose")
        _results(debugger)
    with right:
        canvas(session)


def _show_differentiated(session: UserSession, opened: Opened) -> DeltaGenerator:
    """Show what is differentiated by what, and the way back from a gradient. Return their row."""
    row = st.container(key="gradient_bar", horizontal=True, vertical_alignment="center")
    with row:
        if opened.backward is not None:
            _back_to_model(opened)
        else:
            _gradient_choice(session, opened)
    return row


def _back_to_model(opened: Opened) -> None:
    if opened.forward is not None:
        st.button(
            "Back to the model",
            key="gradient_back",
            icon=":material/arrow_back:",
            on_click=gradients.open_forward_model,
            help="The model without its gradient, on the same inputs",
        )
    if opened.backward is not None:
        words = opened.backward.words
        markup.show(markup.text(words[:1].upper() + words[1:], 200), "quiet")


def _gradient_choice(session: UserSession, opened: Opened) -> None:
    wanted, by = targets(opened.model), sources(opened.model)
    target = f"backward_of_{session.run.generation}"
    chosen = f"backward_by_{session.run.generation}"
    markup.show("How does", "quiet nowrap")
    st.selectbox(
        "Differentiate",
        list(wanted),
        key=target,
        format_func=lambda name: neutral(wanted[name], 60),
        label_visibility="collapsed",
        width=220,
    )
    markup.show("change with", "quiet nowrap")
    st.multiselect(
        "with respect to",
        list(by),
        default=list(usual_sources(opened.model)) or list(by)[:1],
        key=chosen,
        format_func=lambda name: neutral(by[name], 60),
        label_visibility="collapsed",
        width=440,
    )
    st.button(
        "Compute",
        key="backward_go",
        type="primary",
        on_click=gradients.build_gradient,
        args=(target, chosen),
        help="Opens the model with this gradient, on the same inputs, and runs it",
    )


def _chosen(pairs: Sequence[WalkedBack], bar: DeltaGenerator) -> WalkedBack | None:
    """Return the chosen pair of loops; with several, show a choice in a bar."""
    if len(pairs) < 2:
        return pairs[0] if pairs else None
    number = bar.selectbox(
        "Loop",
        range(len(pairs)),
        key=PAIR,
        format_func=lambda index: decode(pairs[index].forward.rpartition("/")[2]),
        label_visibility="collapsed",
        width=320,
    )
    return pairs[number]


def _without_pair(session: UserSession, debugger: loopscope.Debugger, words: str) -> None:
    """Show the verdict on branches, or what to do first."""
    if words:
        compared_page.show_verdict(words, "bad" if "does not flow" in words else "good")
    elif session.model.opened is not None and session.model.opened.backward is None:
        markup.show(
            "Compute walks the run back from the chosen output: the norm of the gradient in each "
            "iteration, and the contribution of each iteration to shared weights.",
            "quiet",
        )
    if debugger.state == "paused" and (words or _is_gradient(session)):
        st.button("Run", key="gradient_run", on_click=gradients.run)


def _is_gradient(session: UserSession) -> bool:
    return session.model.opened is not None and session.model.opened.backward is not None


def _without_changes(session: UserSession, walk: WalkedBack) -> WalkedBack | None:
    """Return the same pair in the run without values set by hand, if there is one."""
    original = session.run.original
    if not session.run.changes or original is None:
        return None
    return next((pair for pair in walks(original) if pair.forward == walk.forward), None)


def _changed_words(session: UserSession) -> list[str]:
    if not session.run.changes:
        return []
    return ["With values set by hand; dashed: without them."]


def _results(debugger: loopscope.Debugger) -> None:
    """Show the computed gradients: the norm and the largest element of each."""
    if debugger.state != "finished":
        return
    outputs = zip(debugger.model.outputs, debugger.result.outputs, strict=True)
    gradients_by_name = {
        title: value
        for signature, value in outputs
        if isinstance(value, np.ndarray)
        and (title := _gradient_title((*signature.names, signature.name)))
    }
    counts = Counter(_source(title) for title in gradients_by_name)
    rows = [
        (elided(_source(title) if counts[_source(title)] == 1 else title, 60), *_size(value))
        for title, value in gradients_by_name.items()
    ]
    if rows:
        titles = ("gradient", "shape", "norm", "largest")
        place_lists.show_table(titles, rows, key=TABLE, now=None, on_pick=lambda number: None)


def _gradient_title(names: Sequence[str]) -> str:
    """Return a gradient's output name without "gradient of"; empty for another output."""
    name = next((name for name in names if "gradient of " in name), "")
    return name.partition("gradient of ")[2]


def _source(title: str) -> str:
    """Return the tensor with respect to which a gradient is.

    >>> _source("loss with respect to weight")
    'weight'
    """
    return title.partition(" with respect to ")[2] or title


def _size(value: np.ndarray) -> tuple[str, str, str]:
    """Return shape, Euclidean norm and largest magnitude of a gradient."""
    numbers = tensor_summary.numbers(value)
    shape = f"[{','.join(map(str, value.shape))}]"
    if numbers is None or not numbers.size:
        return shape, "0", "0"
    with np.errstate(all="ignore"):
        norm, largest = float(np.linalg.norm(numbers)), float(np.abs(numbers).max())
    return shape, significant(norm, 3), significant(largest, 3)


ADJOINTS = "adjoints"
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


def _show_adjoints(walk: WalkedBack, before: WalkedBack | None, cursor: int | None) -> None:
    """Draw the norms of a pair. ``before`` is the pair in the run without values set by hand."""
    chart = chart_of(walk, before)
    lanes.leave_room(chart)
    if chart.lanes and walk.walked:
        lanes.show(
            chart,
            key=ADJOINTS,
            cursor=cursor,
            wide=1,
            on_pick=lambda pick: _go_to_iteration(walk, int(pick.at)),
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


def _go_to_iteration(walk: WalkedBack, iteration: int) -> None:
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
            _norm_lane(
                f"gradient of {adjoint.name}",
                adjoint.places,
                adjoint.norms,
                _ADJOINT,
                lambda place: _place_text(place, walk.count),
                walk.count + 1,
            ),
            verdict=adjoint.fate.kind,
            note=adjoint.sentence,
            second_line=_norms_before(adjoint, before, walk.count + 1),
        )
        for adjoint in walk.adjoints
    ]
    drawn += [
        _norm_lane(
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


def _norms_before(
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


def _place_text(place: int, count: int) -> str:
    return "at the end" if place == count else f"at the beginning of {iteration_words(place)}"


def _norm_lane(
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
