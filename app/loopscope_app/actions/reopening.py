"""Restoring of a moment: from a link, or from a saved run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from loopscope.errors import EngineError
from loopscope.ir import ROOT
from loopscope.run_file import MOST_PAUSES, SavedRun, as_recorded, difference_from
from loopscope_app.actions import breakpoint_actions, moves, runs, selection, what_if_changes
from loopscope_app.describe.input_parsing import step_or_address
from loopscope_app.links.codec import MOST, Link, Unreadable, read
from loopscope_app.state import view_choices
from loopscope_app.state.launch import limits
from loopscope_app.state.open_model import AS_SAVED
from loopscope_app.state.user_session import Message, UserSession


def describes_moment(link: Link) -> bool:
    """Return True if a link describes a moment, not only a model."""
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


def restore(session: UserSession, link: Link, limit: int = MOST) -> None:
    """Restore the moment of a link.

    ``limit`` bounds the number of breakpoints, and that of watches. It also bounds the number of
    values set by hand for a saved run; for a link, that number is at most ``MOST_CHANGES``.
    """
    link = _put_recorded_run(session, link)
    if link.changes:
        what_if_changes.restore(
            session, link.changes, what_if_changes.MOST_CHANGES if limit == MOST else limit
        )
    if link.body and link.body != ROOT:
        selection.open_body(link.body)
    if link.step:
        moves.seek(step_or_address(link.step))
    # In a lesson a breakpoint would reveal what is to be predicted, and a run would show the
    # answer.
    if not session.learning.lesson:
        breakpoint_actions.restore(session, link.breakpoints, link.watches, limit)
        debugger = session.run.at_rest
        # A recorded run stays at its recorded step.
        is_recorded = debugger is not None and debugger.values.is_of_a_file
        if link.step and not is_recorded:
            moves.run_on()
    if link.node:
        selection.select(link.node)
        view_choices.DOCK.show("Node")
    if link.unrolled:
        selection.restore_windows(session, link.unrolled)
    view_choices.choose(link.looks)
    if session.run.changes:
        what_if_changes.show_outcome(session)
    session.run.asked = link.question


def restore_saved(session: UserSession) -> None:
    """Restore the moment of the open saved run; do nothing for a model."""
    saved = session.model.opened.saved if session.model.opened else None
    if saved is not None:
        restore(session, link_of(saved), MOST_PAUSES)


def _put_recorded_run(session: UserSession, link: Link) -> Link:
    """Replace the run by the recorded run of the open file if the link has the same changes.

    Return what the link still asks for: without changes that the recorded run contains.
    """
    saved = session.model.opened.saved if session.model.opened else None
    if (
        saved is None
        or session.model.input_set != AS_SAVED
        or not _are_same(link.changes, saved.changes)
    ):
        return link
    try:
        recorded = as_recorded(saved, limits=limits())
    except EngineError as error:
        session.message = Message(str(error))
        return replace(link, step="", changes={})
    if recorded is None:
        return link
    original = session.run.debugger
    recorded.seek(0)  # a link to the first step names no step
    runs.put(session, recorded)
    if saved.changes:
        session.run.original = original
        session.run.changes = {change.address: change.value for change in recorded.changes}
    return replace(link, changes={})


def _are_same(linked: Mapping[str, Any] | Unreadable, saved: Mapping[str, Any]) -> bool:
    """Return True if the values of a link equal those set by hand in a saved run."""
    if isinstance(linked, Unreadable) or linked.keys() != saved.keys():
        return False
    pairs = [(np.asarray(linked[address]), np.asarray(saved[address])) for address in saved]
    return all(
        left.dtype == right.dtype and left.shape == right.shape and left.tolist() == right.tolist()
        for left, right in pairs
    )


def link_of(saved: SavedRun) -> Link:
    """Return a link to the moment of a saved run, without the length limit of an address."""
    description = saved.description
    return replace(
        read(description.look),
        changes=saved.changes,
        step=str(description.step) if description.step else "",
        breakpoints=description.breakpoints,
        watches=description.watches,
    )


def report_difference(session: UserSession) -> None:
    """Report once how the run differs from its file, when a saved run was computed to its end."""
    opened, debugger = session.model.opened, session.run.at_rest
    if (
        opened is None
        or opened.saved is None
        or debugger is None
        or debugger.state == "paused"
        or session.run.difference_reported
    ):
        return
    session.run.difference_reported = True
    if (
        session.model.input_set != AS_SAVED
        or session.run.changes.keys() != opened.saved.changes.keys()
    ):
        return
    if difference := difference_from(opened.saved, debugger):
        session.message = Message(difference, "info")
