"""Derivatives of what moves elements: each adjoint goes back to where its element came from."""

from __future__ import annotations

import numpy as np

from engine.ops.derivative import Adjoints, Reverse


def broadcast(at: Reverse, /) -> Adjoints:
    """The sum over all copies of an element."""
    data, rest = at.inputs[0], [None] * (len(at.inputs) - 1)
    if at.attributes["mode"] != "explicit":
        return (at.sum_to(at.adjoint, data), *rest)
    mapping, rank = at.inputs[2].known.value, at.outputs[0].rank
    if mapping is None or rank is None:
        raise ValueError("the axes that the data goes to are not known before it runs")
    kept = {int(axis) % rank for axis in mapping.reshape(-1)} if rank else set()
    added = np.array([axis for axis in range(rank) if axis not in kept], np.int64)
    adjoint = at.ops.reduce_sum(at.adjoint, added, keep_dims=False) if added.size else at.adjoint
    return (at.sum_to(adjoint, data), *rest)
