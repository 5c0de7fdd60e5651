"""Gradients: the verdict, norms over the iterations, contributions, and the run on a canvas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import loopscope
from loopscope.errors import elided
from loopscope.explain import WalkedBack, branches_of
from loopscope.ir import decode, significant
from loopscope_app.actions import gradients
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.gradients import branch_headline, headline, sentences
from loopscope_app.parts.panels import backward_panel
from loopscope_app.parts.run_views import adjoint_view, compared_page
from loopscope_app.parts.widgets import lanes, markup, place_lists
from loopscope_app.state.focus import loop_in_focus
from loopscope_app.state.user_session import UserSession

PAIR, TABLE = "gradient_pair", "gradient_table"
_HEADER_REM = 10.5
"""Height in rem of header, controls and a line."""
_BAD = ("vanishes", "explodes", "is cut off", "does not flow", "is not a number")


def show(session: UserSession, canvas: Callable[[UserSession], None]) -> None:
    """Draw the view. ``canvas`` draws the run at its cursor."""
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return
    bar = backward_panel.show(session, opened)
    pairs, branches = adjoint_view.walks(debugger), branches_of(debugger)
    walk = _chosen(pairs, bar)
    if walk is None:
        lanes.leave_room(None, _HEADER_REM)
        _without_pair(session, debugger, branch_headline(branches))
    else:
        words = headline(walk) or walk.sentence
        is_bad = any(adjoint.fate.kind in _BAD for adjoint in walk.adjoints)
        compared_page.show_verdict(words, "bad" if is_bad else "good")
        cursor = adjoint_view.cursor_of(walk, loop_in_focus(session))
        adjoint_view.show(walk, _without_changes(session, walk), cursor)
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
    return next(
        (pair for pair in adjoint_view.walks(original) if pair.forward == walk.forward), None
    )


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
    sources = Counter(_source(title) for title in gradients_by_name)
    rows = [
        (elided(_source(title) if sources[_source(title)] == 1 else title, 60), *_size(value))
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
