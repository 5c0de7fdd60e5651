"""What if, in a model with its gradient: a value of a loop that is set by hand is set also where the way back computes it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import engine
from app.describe.signatures import bindings
from app.describe.wording import name_of
from app.state.launch import limits
from app.state.user_session import Message, Session
from engine.explain import Tie, computed_again, ties
from engine.ir import Address
from engine.run import Plan

_SECONDS = 5.0
"""Longest time of the run that finds which iteration of the way back computes a value again."""


def copies(plan: Plan, changes: Mapping[str, Any]) -> Mapping[str, str]:
    """Of each value that was set in both loops, where it is computed again: it stands directly behind its original."""
    addresses = list(changes)
    return {one: other for one, other in pairwise(addresses) if _is_copy(plan, one, other) and _same(changes[one], changes[other])}


def by_hand(plan: Plan, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes without copies: what a person set."""
    copied = set(copies(plan, changes).values())
    return {one: value for one, value in changes.items() if one not in copied}


def with_copies(session: Session, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes, and behind each its copy on the way back.

    Which iteration that is depends on how often the loop runs with these changes, so that they are run once to find it.
    """
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        return dict(changes)
    own = by_hand(debugger.plan, changes)
    walked = [one for one in own if _tie_of(debugger.plan, one) is not None]
    if not walked:
        return own
    bounds = replace(limits(), seconds=_SECONDS)
    scout = engine.Debugger(opened.model, bindings(opened.model, session.model.inputs), limits=bounds, changes=own, seed=opened.seed)
    scout.run()
    if scout.state == "paused":
        session.message = Message(
            f"{name_of(walked[-1])} is set in the forward loop only: the run takes too long to find it on the way back"
        )
    made: dict[str, Any] = {}
    for one, value in own.items():
        again = computed_again(scout, one)
        made |= {one: value} | ({again: value} if again and again not in own else {})
    return made


def is_on_the_way_back(plan: Plan, address: str) -> bool:
    """Whether an address lies in the body of a loop that walks another one back."""
    body = Address.parse(address).static.rpartition("/")[0]
    return any(tie.loops is not None and f"{tie.backward_address}/body" == body for tie in ties(plan))


def _is_copy(plan: Plan, one: str, other: str) -> bool:
    tie, second = _tie_of(plan, one), Address.parse(other)
    first = Address.parse(one)
    return tie is not None and second.static == f"{tie.backward_address}/body/{first.segments[-1].label}" and second.output == first.output


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same, NaN for NaN; those of an address may be anything."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and one.tobytes() == other.tobytes()
    return np.array_equal(one, other)


def _tie_of(plan: Plan, address: str) -> Tie | None:
    """Of a value in the body of a loop that is walked back."""
    body = Address.parse(address).static.rpartition("/")[0]
    return next((tie for tie in ties(plan) if tie.loops is not None and f"{tie.forward_address}/body" == body), None)
