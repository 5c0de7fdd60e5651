"""Runs a model for the outputs that a session of a graph under construction asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.debug.inputs import bind
from engine.debug.session import Session
from engine.ir.model import Model
from engine.ir.prune import pruned


def run(model: Model, feeds: Mapping[str, Any], variables: dict[str, np.ndarray]) -> tuple[tuple[np.ndarray, ...], tuple[str, ...]]:
    """The outputs of a model and the lines that it prints; only what the outputs need runs. ``variables`` are read and changed."""
    graph = model.graph
    sources = [(result.name, source) for result in graph.results if (source := graph.sources[result.id][0]) is not None]
    part = pruned(model, sources)
    arrays = bind(model, feeds, needed={node.id for node in part.graph.parameters})
    session = Session(part)
    session.put({name: value for name, value in variables.items() if name in session.variable_names})
    result = session.run([arrays[node.id] for node in part.graph.parameters])
    variables.update(session.variables)
    return result.outputs, tuple(line.text for line in result.printed)
