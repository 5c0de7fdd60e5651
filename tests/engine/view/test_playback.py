"""Stretches of a run sent ahead, tracks to slide along, and the line of a folded loop."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import loopscope
from loopscope.explain.provenance import provenance
from loopscope.view.build import graph_view
from loopscope.view.canvas_data import difference, playback_batch
from loopscope.view.folding import Folding
from loopscope.view.graph import ViewNode
from loopscope.view.overlay import overlay_at
from loopscope.view.overlay_data import Marks
from loopscope.view.preview import sparkline
from loopscope.view.tracks import tracks

FOLDER = Path(__file__).parents[3] / "sample_models"
COLLATZ = "main/while_not_one"


def frames_of(part: Mapping[str, object]) -> list[object]:
    frames = part["frames"]
    assert isinstance(frames, list)
    return frames


def debugger_of(sample: str, name: str) -> loopscope.Debugger:
    model = loopscope.read_model(FOLDER / sample / "model.xml")
    with np.load(FOLDER / sample / "inputs" / f"{name}.npz", allow_pickle=False) as arrays:
        return loopscope.Debugger(model, {key: arrays[key] for key in arrays.files})


def applied(full: dict[str, object], change: dict[str, object]) -> dict[str, object]:
    """What the browser makes of a change."""
    made = dict(full)
    for name, value in change.items():
        if not isinstance(value, dict):
            made[name] = value
            continue
        before = made.get(name, {})
        assert isinstance(before, dict)
        made[name] = {key: one for key, one in {**before, **value}.items() if one is not None}
    return made


def test_a_batch_gives_the_overlay_of_every_step() -> None:
    debugger = debugger_of("collatz", "three")
    debugger.run()
    debugger.seek(5)
    view = graph_view(debugger.model, Folding())
    sent = json.loads(json.dumps(playback_batch(debugger, view, 10, seconds=60)))
    assert debugger.cursor.step == 5
    assert sent["first"] + len(frames_of(sent)) == debugger.steps + 1
    assert len(json.dumps(sent)) < 60_000
    full: dict[str, object] = {}
    for step, change in enumerate(sent["frames"], 10):
        full = applied(full, change)
        debugger.seek(step)
        assert full == json.loads(json.dumps(overlay_at(debugger, view).as_data()))
        assert difference(full, full) == {}


@pytest.mark.measured
def test_a_batch_keeps_to_its_time_and_says_where_it_stops() -> None:
    debugger = debugger_of("collatz", "three")
    debugger.breakpoints.add(f"{COLLATZ}[2]/body/equal")
    view = graph_view(debugger.model, Folding())
    debugger.seek(60)
    debugger.seek(0)
    stop = playback_batch(debugger, view, 1, seconds=60)["stop"]
    assert isinstance(stop, int)
    assert debugger.seek(stop).address == f"{COLLATZ}[2]/body/equal"
    assert "stop" not in playback_batch(debugger, view, stop, seconds=60), "going on from there"
    debugger.breakpoints.switch(1, False)
    assert "stop" not in playback_batch(debugger, view, 1, seconds=60), "it is switched off"
    began = time.process_time()
    short = playback_batch(debugger, view, 0, seconds=0)
    assert time.process_time() - began < 1
    assert len(frames_of(short)) == 1
    assert playback_batch(debugger, view, 10**9)["first"] == debugger.steps


def test_a_scout_tells_each_moment_as_it_is_when_it_is_new() -> None:
    debugger = debugger_of("collatz", "three")
    scout = loopscope.Debugger(debugger.model, {"number": np.int64(3)})
    view = graph_view(debugger.model, Folding())
    debugger.breakpoints.add(f"{COLLATZ}[1]/body/equal")
    debugger.seek(4)
    part = playback_batch(debugger, view, 3, seconds=60)
    assert len(frames_of(part)) == 2
    assert debugger.steps == 4, "nothing is computed for a stretch of what has run"
    sent = playback_batch(
        scout, view, 5, seconds=60, further=True, breakpoints=list(debugger.breakpoints)
    )
    assert scout.cursor.address == f"{COLLATZ}[1]/body/equal"
    assert sent["stop"] == scout.steps
    full: dict[str, object] = {}
    frames = sent["frames"]
    assert isinstance(frames, list)
    for step, change in enumerate(frames, 5):
        full = applied(full, change)
        debugger.seek(step)
        assert full == overlay_at(debugger, view).as_data()


def test_tracks_follow_the_nest_of_loops() -> None:
    debugger = debugger_of("count_primes", "up_to_10")
    debugger.run()
    (whole,) = tracks(debugger)
    assert (whole.first, whole.last, len(whole.cells), whole.count) == (0, debugger.steps, 9, 9)
    seen = set()
    for step in range(debugger.steps):
        debugger.seek(step)
        found = tracks(debugger)
        for track, frame in zip(
            found[1:],
            [one for one in debugger.frames() if one.iteration is not None][1:],
            strict=True,
        ):
            assert track.first <= step <= track.last
            assert track.iteration == frame.iteration
            assert len(track.cells) == track.count
            # Every moment of the track lies in the same outer iteration.
            outer = debugger.frames()[1].address
            ends = {
                debugger.seek(end).address.startswith(outer) for end in (track.first, track.last)
            }
            assert ends == {True}
            debugger.seek(step)
            seen.add((track.title, track.count))
    assert len(seen) > 1
    assert json.dumps([track.as_data() for track in found])


@pytest.mark.measured
def test_ticks_of_long_loops_are_few() -> None:
    model = loopscope.read_model(FOLDER / "for_loop" / "model.xml")
    debugger = loopscope.Debugger(
        model, {"balance": np.float32(1), "growth": np.float32(1.01), "years": np.int64(5000)}
    )
    debugger.run()
    (track,) = tracks(debugger)
    assert track.count == 5000
    assert len(track.cells) <= 120
    began = time.process_time()
    for _ in range(20):
        sparkline(debugger, "main/for_each_year/body/balance", None)
    assert (time.process_time() - began) / 20 < 0.02


def test_a_folded_loop_draws_its_carried_number() -> None:
    debugger = debugger_of("collatz", "three")
    view = graph_view(debugger.model, Folding(frozenset({COLLATZ})))
    box = view.node_of[COLLATZ]
    assert box.spark == f"{COLLATZ}/body/highest", "not the counter of steps"
    assert overlay_at(debugger, view).sparks == {}
    debugger.run()
    found = sparkline(debugger, f"{COLLATZ}/body/number", None)
    assert found is not None
    assert found.points == (7, 57, 21, 100, 43, 14, 0)
    debugger.seek(f"{COLLATZ}[3]/body/equal")
    points, now, odd = overlay_at(debugger, view).sparks[box.id]
    assert isinstance(points, list | tuple)
    assert (len(points), now, odd) == (7, 0.5, None)


def test_the_first_number_that_is_none_is_marked() -> None:
    model = loopscope.read_model(FOLDER / "for_loop" / "model.xml")
    debugger = loopscope.Debugger(
        model, {"balance": np.float32(1e38), "growth": np.float32(1.5), "years": np.int64(101)}
    )
    debugger.run()
    found = sparkline(debugger, "main/for_each_year/body/balance", None)
    assert found is not None
    # 1e38 * 1.5 ** 3 is the first that float32 cannot hold; 101 iterations are 100 steps from 0 to
    # 1.
    assert found.not_finite == pytest.approx(0.04, abs=0.011)
    assert found.points[-1] is None


@pytest.mark.parametrize(("begin", "end"), [(1, 9), (0, 0)])
def test_a_number_that_becomes_empty_on_the_way_has_no_line(begin: int, end: int) -> None:
    """Found by the fuzzer: the first value alone was looked at."""
    text = f"""main (float[N] x) => (float[M] y) {{
        trips = Constant <value = int64 {{3}}> ()
        y = Loop (trips, , x) <body = step (int64 i, bool go, float[K] v) => (bool again, float[L] w) {{
            again = Identity (go)
            begin = Constant <value = int64[1] {{{begin}}}> ()
            end = Constant <value = int64[1] {{{end}}}> ()
            w = Slice (v, begin, end)
        }}>
    }}"""
    parsed = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    debugger = loopscope.Debugger(
        loopscope.read_model(parsed.SerializeToString()), {"x": np.ones(1, np.float32)}
    )
    debugger.run()
    assert debugger.state == "finished"
    (loop,) = (one for one in debugger.model.graph.nodes if one.type == "Loop")
    assert sparkline(debugger, f"main/{loop.name}/body/v", None) is None


def test_a_provenance_is_shaded_by_distance() -> None:
    debugger = debugger_of("collatz", "three")
    debugger.seek(f"{COLLATZ}[1]/body/keep_going")
    view = graph_view(debugger.model, Folding())
    steps = provenance(debugger, f"{COLLATZ}[1]/body/equal")
    overlay = overlay_at(debugger, view, Marks(origins=steps))
    shades = {
        node.address: distance
        for id, distance in overlay.origins.items()
        if isinstance(node := view.by_id[id], ViewNode)
    }
    assert shades[f"{COLLATZ}/body/equal"] == 0
    assert shades[f"{COLLATZ}/body/floor_mod"] == 1
    assert shades[f"{COLLATZ}/body/number"] == 2
    assert set(shades.values()) >= {3, 5}
