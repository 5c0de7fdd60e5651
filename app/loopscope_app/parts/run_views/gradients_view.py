"""Gradients: the choice of an output and of tensors to differentiate it by, the verdict, norms over
the iterations, contributions, and the run on a canvas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import loopscope
from loopscope.errors import elided, neutral
from loopscope.explain import WalkedBack, branches_of
from loopscope.ir import decode, significant
from loopscope_app.actions import gradients
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.gradients import (
    branch_headline,
    headline,
    sentences,
    sources,
    targets,
    usual_sources,
)
from loopscope_app.parts.run_views import adjoint_view, compared_page
from loopscope_app.parts.widgets import lanes, markup, place_lists
from loopscope_app.state.focus import loop_in_focus
from loopscope_app.state.open_model import Opened
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
    bar = _show_differentiated(session, opened)
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
            on_click=gradients.leave,
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
        on_click=gradients.walk_back,
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
