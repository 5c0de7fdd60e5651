"""What every node has made at the cursor of a run, in a few characters: what is searched, and
what stands beside lines of code.
"""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import loopscope
from loopscope.errors import EngineError
from loopscope.view import value_preview
from loopscope_app.describe.node_index import places

MOST_VALUES = 1500
"""Nodes of a model whose values are looked at: with more it would be felt at every step and
letter.
"""

_values: WeakKeyDictionary[loopscope.Debugger, tuple[int, Mapping[str, str]]] = WeakKeyDictionary()


def values_at(
    debugger: loopscope.Debugger, previews: dict[str, str] | None = None
) -> Mapping[str, str]:
    """Previews of the values that the canvas shows at the cursor, by static address; nothing for
    models with very many nodes.

    ``previews``: texts by concrete address, kept by the caller as long as the run lasts.
    """
    step = debugger.cursor.step
    kept = _values.get(debugger)
    if kept is None or kept[0] != step:
        few = len(places(debugger.model)) <= MOST_VALUES
        kept = _values[debugger] = (
            step,
            dict(_previews(debugger, {} if previews is None else previews)) if few else {},
        )
    return kept[1]


def _previews(debugger: loopscope.Debugger, known: dict[str, str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    scene, timeline = debugger.scene(), debugger.timeline
    for program in debugger.plan.programs:
        shown = scene.shown.get(program.index)
        if shown is None:
            continue
        graph = timeline.address(program, shown.row)
        for label, layer in program.layer_of_label.items():
            slot = program.slots.get((layer, 0))
            if slot is None or program.producer.get(slot, -1) >= shown.position:
                continue
            place = f"{graph}/{label}"
            if place not in known:
                try:
                    known[place] = value_preview(debugger.value(place))
                except EngineError:
                    continue
            found.append((f"{program.address}/{label}", known[place]))
    return found
