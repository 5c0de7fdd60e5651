"""Short texts of all values at the cursor, for the search and for lines of code."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import loopscope
from loopscope.errors import EngineError
from loopscope.view import value_preview
from loopscope_app.describe.node_index import places

MOST_VALUES = 1500
"""Number of nodes up to which values are computed; more would slow every step and key press
down.
"""

_values: WeakKeyDictionary[loopscope.Debugger, tuple[int, Mapping[str, str]]] = WeakKeyDictionary()


def values_at(
    debugger: loopscope.Debugger, previews: dict[str, str] | None = None
) -> Mapping[str, str]:
    """Return previews of the values at the cursor by static address; nothing for a model with too
    many nodes.

    ``previews`` caches texts by concrete address during a run.
    """
    step = debugger.cursor.step
    cached = _values.get(debugger)
    if cached is None or cached[0] != step:
        few = len(places(debugger.model)) <= MOST_VALUES
        cached = _values[debugger] = (
            step,
            dict(_previews(debugger, {} if previews is None else previews)) if few else {},
        )
    return cached[1]


def _previews(debugger: loopscope.Debugger, known: dict[str, str]) -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    scene, timeline = debugger.scene(), debugger.timeline
    for program in debugger.plan.programs:
        execution = scene.shown.get(program.index)
        if execution is None:
            continue
        graph = timeline.address(program, execution.row)
        for label, layer in program.layer_of_label.items():
            slot = program.slots.get((layer, 0))
            if slot is None or program.producer.get(slot, -1) >= execution.position:
                continue
            place = f"{graph}/{label}"
            if place not in known:
                try:
                    known[place] = value_preview(debugger.value(place))
                except EngineError:
                    continue
            texts.append((f"{program.address}/{label}", known[place]))
    return texts
