"""What is said of one moment of a real run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.view.build import graph_view
from loopscope.view.folding import Folding, toggle
from loopscope.view.graph import ViewCluster, ViewNode
from loopscope.view.overlay import BY_HAND, overlay_at
from loopscope.view.overlay_data import Marks, Overlay
from loopscope.view.preview import has_nan, value_preview

FOLDER = Path(__file__).parents[3] / "sample_models"


def inputs_of(sample: str, name: str) -> dict[str, object]:
    with np.load(FOLDER / sample / "inputs" / f"{name}.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def test_a_moment_inside_a_loop_and_a_branch() -> None:
    model = loopscope.read_model(FOLDER / "collatz" / "model.xml")
    debugger = loopscope.Debugger(model, inputs_of("collatz", "three"))
    view = graph_view(model, Folding())
    by_id = view.by_id
    branches = [cluster.id for cluster in view.clusters if cluster.kind in ("then", "else")]
    seen: set[str] = set()
    taken: set[tuple[str, ...]] = set()
    for _ in range(120):
        debugger.step()
        overlay = overlay_at(debugger, view)
        json.dumps(overlay.as_data(), allow_nan=False)
        assert set(overlay.nodes) <= set(by_id)
        assert set(overlay.frames) <= set(by_id)
        current = [id for id, state in overlay.nodes.items() if state == "current"]
        assert current == [overlay.current] * bool(
            overlay.current in overlay.nodes and debugger.cursor.kind != "finished"
        )
        seen |= {*overlay.nodes.values()} | set(overlay.headers.values())
        taken.add(tuple(overlay.frames[branch] for branch in branches if branch in overlay.frames))
    assert {"current", "done", "waiting", "skipped"} <= seen
    assert any(text.startswith("iteration 2") for text in seen)
    assert {("taken", "skipped"), ("skipped", "taken")} <= taken
    # What is there to see in the end is what ran last.
    assert debugger.cursor.kind == "finished"
    last = by_id[overlay.current]
    assert isinstance(last, ViewNode | ViewCluster)
    assert last.address == "main/while_not_one"


def test_values_back_edges_and_marks() -> None:
    model = loopscope.read_model(FOLDER / "for_loop" / "model.xml")
    debugger = loopscope.Debugger(model, inputs_of("for_loop", "three_years"))
    view = graph_view(model, Folding())
    previews: dict[str, str] = {}
    back = next(edge for edge in view.edges if edge.kind == "back")
    carried: list[list[str]] = []
    while debugger.cursor.kind != "finished":
        overlay = overlay_at(debugger, view, previews=previews)
        if debugger.cursor.kind == "end":
            carried.append(overlay.backs[back.id])
        debugger.step()
    assert len(carried) > 1
    # What one iteration hands on is what the next begins with.
    assert [now for now, _ in carried[:-1]] == [before for _, before in carried[1:]]
    chosen = next(node for node in view.nodes if node.kind == "operation")
    overlay = overlay_at(
        debugger,
        view,
        Marks(
            selected=chosen.address,
            breakpoints=(chosen.address.replace("/body/", "[*]/body/"), "main/nowhere"),
        ),
    )
    assert (overlay.selected, overlay.breakpoints) == (chosen.id, {chosen.id: "on"})
    hollow = overlay_at(debugger, view, Marks(switched_off=(chosen.address,)))
    assert (hollow.selected, hollow.breakpoints) == ("", {chosen.id: "off"})
    both = overlay_at(
        debugger, view, Marks(breakpoints=(chosen.address,), switched_off=(chosen.address,))
    )
    assert both.breakpoints == {chosen.id: "on"}
    assert overlay_at(None, view, Marks(selected=chosen.address)) == Overlay(selected=chosen.id)


def test_previews() -> None:
    assert value_preview(np.arange(6, dtype=np.int64).reshape(2, 3)) == "[2,3] 0,…,5"
    assert value_preview(np.array(["a", "b"], object)) == '[2] "a", "b"'
    assert value_preview(np.float32("nan")) == "NaN"
    assert value_preview(np.full((4, 4), np.inf, np.float16)) == "[4,4] inf,…,inf"
    with np.errstate(all="raise"):
        assert has_nan(np.array([1, np.nan, np.inf], np.float32))
        assert not has_nan(np.array([np.inf, -np.inf, 65504], np.float16))
        assert not has_nan(np.full(1000, 60000, np.float16))


def test_a_value_set_by_hand_is_marked_where_it_was_set() -> None:
    model = loopscope.read_model(FOLDER / "collatz" / "model.xml")
    place = "main/while_not_one[1]/body/next_steps"
    debugger = loopscope.Debugger(
        model, inputs_of("collatz", "three"), changes={place: np.int64(5)}
    )
    view = graph_view(model, Folding())
    box = next(node for node in view.nodes if node.address == "main/while_not_one/body/next_steps")
    for iteration, text in ((0, "1"), (1, f"{BY_HAND} 5"), (2, "6")):
        debugger.run_to(f"main/while_not_one[{iteration}]/body/keep_going")
        assert overlay_at(debugger, view).values[box.id] == [text]


def test_what_a_runtime_makes_of_a_loop_stands_on_its_frame() -> None:
    model = loopscope.read_model(FOLDER / "collatz" / "model.xml")
    view = graph_view(model, Folding())
    debugger = loopscope.Debugger(model, inputs_of("collatz", "three"))
    debugger.run()
    (loop,) = [cluster for cluster in view.clusters if cluster.kind == "loop"]
    fates = {loop.address: "OpenVINO: runs as Fused", "main/elsewhere": "kept"}
    headers = overlay_at(
        debugger, view, Marks(verdicts={loop.address: "7 iterations"}, runtime_badges=fates)
    ).headers
    assert headers[loop.id] == "OpenVINO: runs as Fused · 7 iterations"
    assert overlay_at(None, view, Marks(runtime_badges=fates)).headers == {
        loop.id: "OpenVINO: runs as Fused"
    }


def test_boxes_are_heated_by_the_time_of_what_they_stand_for() -> None:
    model = loopscope.read_model(FOLDER / "collatz" / "model.xml")
    loop, times = (
        "main/while_not_one",
        {"main/while_not_one/body/equal": 8.0, "main/while_not_one/body/floor_mod": 4.0},
    )
    view = graph_view(model, Folding())
    heats = overlay_at(
        None, view, Marks(times=times | {"main/while_not_one/body/if_even/then/nothing": 0.0})
    ).heats
    address_of = {node.id: node.address for node in view.nodes}
    assert {address_of[id]: heat for id, heat in heats.items()} == {
        f"{loop}/body/equal": 8,
        f"{loop}/body/floor_mod": 4,
    }
    folded = graph_view(model, toggle(model, Folding(), loop))
    (box,) = overlay_at(None, folded, Marks(times=times)).heats
    assert next(node.address for node in folded.nodes if node.id == box) == loop


@pytest.mark.parametrize(
    ("value", "mark"), [(0.0, "NaN"), (1.0, "inf"), (-1.0, "-inf"), (float("nan"), "NaN")]
)
def test_boxes_with_nan_and_infinity_are_marked(value: float, mark: str) -> None:
    graph = builder.Graph()
    x = graph.parameter("x", "f32", [])
    model = graph.model(builder.ops.divide(x, np.float32(0), name="quotient"))
    debugger = loopscope.Debugger(model, [np.float32(value)])
    debugger.run()
    view = graph_view(model, Folding())
    overlay = overlay_at(debugger, view)
    box = next(node.id for node in view.nodes if node.address == "main/quotient")
    assert overlay.nans[box]
    assert mark in overlay.values[box][0]
