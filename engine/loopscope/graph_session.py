"""Run of a model for the outputs that a session of a graph under construction requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loopscope.debug.session import Session
from loopscope.ir.address import ROOT, labels
from loopscope.ir.model import Model


def run(
    model: Model, feeds: Mapping[str, Any], variables: dict[str, np.ndarray]
) -> tuple[tuple[np.ndarray, ...], tuple[str, ...]]:
    """Return the outputs of a model and the lines that it prints; only what the outputs need runs.

    ``variables`` are read and changed.
    """
    session = Session(model)
    session.put(
        {name: value for name, value in variables.items() if name in session.variable_names}
    )
    names = labels(model.graph)
    result = session.run(feeds, [f"{ROOT}/{names[node.id]}" for node in model.graph.results])
    variables.update(session.variables)
    return result.outputs, tuple(line.text for line in result.printed)
