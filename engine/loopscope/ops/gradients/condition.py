"""Derivatives of what chooses between values: what was not chosen gets nothing."""

from __future__ import annotations

from loopscope.ops.derivative import Adjoints, Reverse


def select(at: Reverse, /) -> Adjoints:
    """Each operand gets the adjoint where it was taken."""
    condition, when_true, when_false = at.inputs
    if at.attributes["auto_broadcast"] == "pdpd":
        raise ValueError("auto_broadcast is 'pdpd': only numpy's has a derivative here")
    taken = at.where(condition, at.adjoint)
    left = at.where(at.ops.logical_not(condition), at.adjoint)
    return None, at.sum_to(taken, when_true), at.sum_to(left, when_false)
