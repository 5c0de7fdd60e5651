"""Derivative of the choice between values: a value that was not chosen gets an adjoint of 0."""

from __future__ import annotations

from loopscope.ops.derivative import Adjoints, Reverse


def select(node: Reverse, /) -> Adjoints:
    """Pass the adjoint to each operand where it was chosen."""
    condition, when_true, when_false = node.inputs
    if node.attributes["auto_broadcast"] == "pdpd":
        raise ValueError("auto_broadcast is 'pdpd': only numpy's has a derivative here")
    of_true = node.where(condition, node.adjoint)
    of_false = node.where(node.ops.logical_not(condition), node.adjoint)
    return None, node.sum_to(of_true, when_true), node.sum_to(of_false, when_false)
