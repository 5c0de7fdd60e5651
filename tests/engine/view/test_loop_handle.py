"""Handles of operators that open as loops: which boxes have one, and the number of steps."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope.view.boxes import UNKNOWN_STEPS
from loopscope.view.build import graph_view
from loopscope.view.canvas_data import structure
from loopscope.view.folding import Folding
from loopscope.view.graph import GraphView, LoopHandle
from loopscope.view.overlay import overlay_at
from tests.engine.transform.test_open_as_loop import X, stacked

RNN = "y = RNN <{attributes}> (x, w, r)"
SUMS = "y = CumSum (x, {axis})"


def onnx_model(node: str, shape: str) -> loopscope.Model:
    return loopscope.read_model(
        parser.parse_model(
            f"""<ir_version: 8, opset_import: ["" : 14]>
            one (float{shape} x, int64 axis, float[1, 3, 2] w, float[1, 3, 3] r) => (float y)
            <int64 last = {{-1}}> {{ {node} }}"""
        ).SerializeToString()
    )


@pytest.mark.parametrize(
    ("node", "shape", "axis", "badge"),
    [
        (RNN.format(attributes="hidden_size=3"), "[1, 5, 2]", 0, "1 step"),
        (RNN.format(attributes="hidden_size=3, layout=0"), "[1, 5, 2]", 0, "1 step"),
        (RNN.format(attributes="hidden_size=3, layout=1"), "[1, 5, 2]", 1, "5 steps"),
        (RNN.format(attributes="hidden_size=3"), "[T, 5, 2]", 0, UNKNOWN_STEPS),
        (SUMS.format(axis="last"), "[3, 1200]", -1, "1,200 steps"),
        (SUMS.format(axis="last"), "", -1, UNKNOWN_STEPS),
        (SUMS.format(axis="axis"), "[3, 4]", None, UNKNOWN_STEPS),
    ],
)
def test_a_handle_has_the_number_of_steps_of_the_shape(
    node: str, shape: str, axis: int | None, badge: str
) -> None:
    view = graph_view(onnx_model(node, shape), handles=True)
    (box,) = (item for item in view.nodes if item.handle is not None)
    expected = LoopHandle() if axis is None else LoopHandle("main/x", axis)
    assert (box.handle, box.badge) == (expected, badge)


def badges(view: GraphView, debugger: loopscope.Debugger) -> dict[str, str]:
    headers = overlay_at(debugger, view).headers
    return {node.address: headers[node.id] for node in view.nodes if node.id in headers}


def test_the_run_determines_the_number_of_steps_of_an_unknown_shape() -> None:
    model = onnx_model(RNN.format(attributes="hidden_size=3"), "[T, B, 2]")
    view = graph_view(model, handles=True)
    weights = {"w": np.ones((1, 3, 2), np.float32), "r": np.ones((1, 3, 3), np.float32)}
    feeds = {"x": np.ones((7, 1, 2), np.float32), "axis": np.int64(0), **weights}
    debugger = loopscope.Debugger(model, feeds)
    debugger.run()
    assert list(badges(view, debugger).values()) == ["7 steps"]


def test_an_opened_operator_is_a_frame_of_its_name_without_a_handle() -> None:
    model = stacked("first", "second")
    opened = loopscope.open_as_loop(model, "main/first")
    view = graph_view(opened, Folding(), handles=True)
    assert [(frame.title, frame.name) for frame in view.clusters] == [("LSTM", "first")]
    assert [node.address for node in view.nodes if node.handle] == ["main/second"]
    folded = graph_view(opened, Folding(frozenset({"main/first"})))
    assert [node.title for node in folded.nodes if node.kind == "folded"] == ["LSTM"]
    debugger = loopscope.Debugger(opened, X)
    debugger.run()
    assert badges(view, debugger)["main/second"] == "4 steps"


def test_only_a_canvas_that_opens_operators_has_handles() -> None:
    model = stacked("first")
    opens = [
        [node.get("opens", False) for node in structure(view)["nodes"].values()]  # type: ignore[attr-defined]
        for view in (graph_view(model), graph_view(model, handles=True))
    ]
    assert [sum(flags) for flags in opens] == [0, 1]
