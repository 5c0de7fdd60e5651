"""The page's address holds the moment: model or lesson, inputs, step, what is pinned, where it pauses, what is watched and looked at."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from app.actions import changing, models, moves, pausing, selection, teaching, unrolled_loops
from app.actions.memory_budget import with_room
from app.parts.frame import page_address
from app.state import looks
from app.state.launch import LAUNCH, must_be_local
from app.state.open_model import Opened, open_path, open_sample, with_inputs
from app.state.user_session import Message, Session, widget
from engine.errors import EngineError, shorten
from engine.ir.address import ROOT

SAMPLE, LARGE = "sample:", "large"
_NAMES = ("model", "lesson", "type", "set", "step", "node", "body", "unroll", "breakpoints", "watches")
LONGEST_QUESTION = 400
"""Characters of a question to the trace that an address holds."""


def arrive(session: Session) -> None:
    """On the first visit: what the page's address asks for, else the model that the command was started with."""
    session.arrived = True
    wanted = {name: st.query_params.get(name, "") for name in _NAMES}
    if wanted["lesson"]:
        session.learning.large = wanted["type"] == LARGE
        teaching.open_lesson(wanted["lesson"], wanted["set"])
    elif link := wanted["model"] or LAUNCH.model:
        try:
            with_room(lambda: models.show_model(_opened(link), wanted["set"]))
        except EngineError as error:
            session.message = Message(str(error))
    if session.model.opened is not None:
        if changes := st.query_params.get("whatif", ""):
            changing.restore(session, changes)
        _restore(session, wanted)
        looks.choose(st.query_params.to_dict())
        if session.run.changes and widget(looks.LENS.key) == "Compare":
            changing.show_outcome(session)
        session.run.asked = st.query_params.get("ask", "")[:LONGEST_QUESTION]
        _say_other_set(session, wanted["set"])


def _opened(link: str) -> Opened:
    if link.startswith(SAMPLE):
        return open_sample(link.removeprefix(SAMPLE))
    if link == LAUNCH.model:
        opened = open_path(link)
        return with_inputs(opened, LAUNCH.inputs) if LAUNCH.inputs else opened
    must_be_local()
    return open_path(link)


def _say_other_set(session: Session, wanted: str) -> None:
    """Sets that a user named are gone when the page is left."""
    if wanted and session.model.input_set != wanted and session.message is None:
        words = f"the link names the input set {shorten(repr(wanted), 60)}, which is not here: this run is on another"
        session.message = Message(words, "info")


def _restore(session: Session, wanted: Mapping[str, str]) -> None:
    step, node, body = wanted["step"], wanted["node"], wanted["body"]
    if body and body != ROOT:
        selection.open_body(body)
    if step:
        moves.seek(int(step) if step.isdecimal() and len(step) < 16 else step)
    if not session.learning.lesson:  # where a breakpoint would hide what is to be predicted, and a run tell it
        pausing.restore(session, wanted["breakpoints"], wanted["watches"])
        if step:
            moves.run_on()
    if node:
        selection.select(node)
    if wanted["unroll"]:
        unrolled_loops.restore(session, wanted["unroll"])


def remember(session: Session) -> None:
    """Writes the moment into the page's address, so that a link reopens it; nothing is sent when it is there already."""
    opened, debugger = session.model.opened, session.run.at_rest
    if opened is None or not opened.link or session.run.running is not None:
        return
    learning = session.learning
    moment = {
        "lesson": learning.lesson,
        "type": LARGE if learning.lesson and learning.large else "",
        "model": "" if learning.lesson else opened.link,
        "set": session.model.input_set,
        "whatif": changing.as_text(session.run.changes),
        "step": str(debugger.cursor.step) if debugger and debugger.cursor.step else "",
        "node": session.canvas.selected,
        "body": session.canvas.root if session.canvas.root != ROOT else "",
        "unroll": unrolled_loops.as_text(session),
        "breakpoints": pausing.breakpoints_as_text(debugger) if debugger else "",
        "watches": pausing.watches_as_text(debugger) if debugger else "",
        **looks.chosen(),
        "ask": session.run.asked if len(session.run.asked) <= LONGEST_QUESTION else "",
    }
    moment = {name: text for name, text in moment.items() if text}
    page_address.show(moment)


def follow(session: Session) -> None:
    """After a step back or forth in the browser's history: the model that the address names now, or the gallery."""
    page_address.forget()
    if st.query_params.get("model") or st.query_params.get("lesson"):
        arrive(session)
    else:
        models.close()
