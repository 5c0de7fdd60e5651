"""Where many places stand at one moment: what one by one would say, with what that needs made
once.
"""

from __future__ import annotations

import pytest

import loopscope
from loopscope.debug.position import Scene
from loopscope.executor.plan.plan import Plan
from loopscope.ir.address import nodes
from loopscope.timeline.timeline import Moment, Timeline
from tests.engine.view.big_models import linear_attention

LAYERS = 12


@pytest.mark.parametrize("steps", [0, 40, None])
def test_a_resolver_says_of_each_place_what_resolve_says(steps: int | None) -> None:
    debugger = loopscope.Debugger(linear_attention(LAYERS), {"x": [[1.0] * 8] * 5})
    if steps is None:
        debugger.run()
    for _ in range(steps or 0):
        debugger.step()
    places = [address for address, _ in nodes(debugger.model)]
    resolve = debugger.resolver()
    assert [resolve(place) for place in places] == [debugger.resolve(place) for place in places]
    assert (None in map(resolve, places)) == (steps is not None)


def test_a_scene_is_made_once_for_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    debugger = loopscope.Debugger(linear_attention(LAYERS), {"x": [[1.0] * 8] * 5})
    debugger.run()
    made: list[Scene] = []
    begin = Scene.__init__

    def counted(self: Scene, plan: Plan, timeline: Timeline, moment: Moment) -> None:
        made.append(self)
        begin(self, plan, timeline, moment)

    monkeypatch.setattr(Scene, "__init__", counted)
    resolve = debugger.resolver()
    assert all(resolve(address) for address, _ in nodes(debugger.model))
    assert len(made) == 1
