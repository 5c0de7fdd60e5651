"""Memory use of a run, without constants, which belong to its model."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from loopscope.executor.machine.machine import Machine
from loopscope.executor.plan.planner import plans_of
from loopscope.ir.model import Model
from loopscope.ir.walk import graphs
from loopscope.timeline.run_values import RunValues

_NODE_BYTES = 2000
"""Approximate bytes of a node with its ports, edges and attributes."""

_MODEL_BYTES: WeakKeyDictionary[Model, int] = WeakKeyDictionary()
"""Bytes of each model without its plans; this part never changes."""


def model_bytes(model: Model) -> int:
    """Return the bytes of a model: its nodes, its weights (also mapped ones), and copies that plans
    made of them.
    """
    size = _MODEL_BYTES.get(model)
    if size is None:
        nodes = [node for place in graphs(model) for node in place.graph.nodes]
        size = _MODEL_BYTES[model] = _NODE_BYTES * len(nodes) + sum(
            len(node.constant.data) for node in nodes if node.constant is not None
        )
    return size + sum(plan.made_bytes for plan in plans_of(model))


def held_bytes(machine: Machine, values: RunValues) -> int:
    """Return the estimated bytes of slot values, collected pieces, the recording and recomputed
    values.

    The estimate is quick, also while another thread runs the machine.
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
