"""How much memory a run takes with what it holds, constants apart, which belong to its model."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.planner import plans_of
from loopscope.ir.model import Model
from loopscope.ir.walk import graphs
from loopscope.timeline.run_values import RunValues

_NODE = 2000
"""Approximate bytes of a node with its ports, edges and attributes."""

_own: WeakKeyDictionary[Model, int] = WeakKeyDictionary()
"""Without plans: of a model that part never changes."""


def model_bytes(model: Model) -> int:
    """Bytes that a model holds: its nodes, its weights, mapped or not, and what plans of its
    runs have made of them.
    """
    own = _own.get(model)
    if own is None:
        nodes = [node for place in graphs(model) for node in place.graph.nodes]
        own = _own[model] = _NODE * len(nodes) + sum(
            len(node.constant.data) for node in nodes if node.constant is not None
        )
    return own + sum(plan.made_bytes for plan in plans_of(model))


def held_bytes(machine: Machine, values: RunValues) -> int:
    """Bytes of the values in slots, of what loops have collected so far, of the recording, and of
    what was computed again.

    An estimate that is quick to make, also while another thread has the run under way.
    """
    constants = machine.plan.constant_numbers
    arrays: dict[int, int] = {}
    for slot, value in enumerate(machine.values):
        if isinstance(value, np.ndarray) and slot not in constants:
            while isinstance(value.base, np.ndarray):
                value = value.base
            arrays[id(value)] = value.nbytes
    return (
        sum(arrays.values())
        + machine.collected_bytes()
        + machine.recording.bytes
        + values.cached_bytes
    )
