"""A moment put back: the one that a link says, or the one at which a run was saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from loopscope.errors import EngineError
from loopscope.ir import ROOT
from loopscope.run_file import MOST_PAUSES, SavedRun, as_recorded, difference_from
from loopscope_app.actions import (
    breakpoint_actions,
    moves,
    runs,
    selection,
    unrolled_loops,
    what_if_changes,
)
from loopscope_app.links.codec import MOST, Link, Unreadable, read
from loopscope_app.state import view_choices
from loopscope_app.state.launch import limits
from loopscope_app.state.open_model import AS_SAVED
from loopscope_app.state.user_session import Message, UserSession, widget


def says_more(link: Link) -> bool:
    """Whether a link says anything of the moment, besides what to open."""
    return bool(
        link.changes
        or link.step
        or link.node
        or link.body
        or link.unrolled
        or link.breakpoints
        or link.watches
        or link.question
    )


def restore(session: UserSession, wanted: Link, most: int = MOST) -> None:
    """``most``: breakpoints, watches and values that are set by hand."""
    wanted = _as_recorded(session, wanted)
    if wanted.changes:
        what_if_changes.restore(
            session, wanted.changes, what_if_changes.MOST_CHANGES if most == MOST else most
        )
    if wanted.body and wanted.body != ROOT:
        selection.open_body(wanted.body)
    if wanted.step:
        moves.seek(
            int(wanted.step) if wanted.step.isdecimal() and len(wanted.step) < 16 else wanted.step
        )
    # in a lesson a breakpoint would hide what is to be predicted, and a run would show the answer
    if not session.learning.lesson:
        breakpoint_actions.restore(session, wanted.breakpoints, wanted.watches, most)
        debugger = session.run.at_rest
        if wanted.step and not (
            debugger is not None and debugger.values.is_of_a_file
        ):  # what was recorded stands where it stood
            moves.run_on()
    if wanted.node:
        selection.select(wanted.node)
    if wanted.unrolled:
        unrolled_loops.restore(session, wanted.unrolled)
    view_choices.choose(wanted.looks)
    if session.run.changes and widget(view_choices.LENS.key) == "Compare":
        what_if_changes.show_outcome(session)
    session.run.asked = wanted.question


def restore_saved(session: UserSession) -> None:
    """The moment of the saved run that is open; nothing where a model is."""
    saved = session.model.opened.saved if session.model.opened else None
    if saved is not None:
        restore(session, link_of(saved), MOST_PAUSES)


def _as_recorded(session: UserSession, wanted: Link) -> Link:
    """Puts the run back as the file that is open recorded it, where it is that run which is
    wanted; gives what is left to be done.
    """
    saved = session.model.opened.saved if session.model.opened else None
    if (
        saved is None
        or session.model.input_set != AS_SAVED
        or not _are_same(wanted.changes, saved.changes)
    ):
        return wanted
    try:
        recorded = as_recorded(saved, limits=limits())
    except EngineError as error:
        session.message = Message(str(error))
        return replace(wanted, step="", changes={})
    if recorded is None:
        return wanted
    original = session.run.debugger
    recorded.seek(0)  # a link to the first moment names no step
    runs.put(session, recorded)
    if saved.changes:
        session.run.original, session.run.changes = (
            original,
            {one.address: one.value for one in recorded.changes},
        )
    return replace(wanted, changes={})


def _are_same(wanted: Mapping[str, Any] | Unreadable, saved: Mapping[str, Any]) -> bool:
    """Whether these are the values that a file has as set by hand."""
    if isinstance(wanted, Unreadable) or wanted.keys() != saved.keys():
        return False
    pairs = [(np.asarray(wanted[address]), np.asarray(saved[address])) for address in saved]
    return all(
        one.dtype == other.dtype and one.shape == other.shape and one.tolist() == other.tolist()
        for one, other in pairs
    )


def link_of(saved: SavedRun) -> Link:
    """What a link to the moment of a saved run would say, were there room for it."""
    said = saved.description
    return replace(
        read(said.look),
        changes=saved.changes,
        step=str(said.step) if said.step else "",
        breakpoints=said.breakpoints,
        watches=said.watches,
    )


def tell_difference(session: UserSession) -> None:
    """Tells once, when the saved run is over here, in what it is not what its file recorded."""
    opened, debugger = session.model.opened, session.run.at_rest
    if (
        opened is None
        or opened.saved is None
        or debugger is None
        or debugger.state == "paused"
        or session.run.held_against_file
    ):
        return
    session.run.held_against_file = True
    if (
        session.model.input_set != AS_SAVED
        or session.run.changes.keys() != opened.saved.changes.keys()
    ):
        return
    if different := difference_from(opened.saved, debugger):
        session.message = Message(different, "info")
