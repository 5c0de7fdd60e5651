"""While a loop is walked back, its picture shows the iteration that is walked back, and what
came back along its back edges.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.view import default_folding, graph_view, overlay_at, walked_back_now
from loopscope.view.graph import GraphView
from loopscope.view.overlay_data import Overlay

SAMPLE = Path(__file__).parents[3] / "sample_models" / "vanishing_gradient"
BACK = "main/backward%2Ffor_each_sound%2FLoop"


@pytest.fixture(scope="module")
def run() -> loopscope.Debugger:
    debugger = loopscope.Debugger(
        loopscope.read_model(SAMPLE / "model.xml"),
        dict(np.load(SAMPLE / "inputs" / "silence_of_5.npz")),
    )
    debugger.run()
    return debugger


def seen(debugger: loopscope.Debugger) -> tuple[GraphView, Overlay]:
    view = graph_view(debugger.model, default_folding(debugger.model))
    return view, overlay_at(debugger, view)


def headers(view: GraphView, overlay: Overlay) -> dict[str, str]:
    return {
        cluster.address: overlay.headers[cluster.id]
        for cluster in view.clusters
        if cluster.id in overlay.headers
    }


@pytest.mark.parametrize("iteration", [0, 3, 5])
def test_both_loops_are_in_the_same_iteration(run: loopscope.Debugger, iteration: int) -> None:
    run.seek(f"{BACK}[{iteration}]/body/next_memory")
    view, overlay = seen(run)
    other = 5 - iteration
    place = f"of {6}" if other < 5 else "the last of 6"
    assert (
        headers(view, overlay)["main/for_each_sound"].replace(",", "")
        == f"iteration {other} {place} gradient now"
    )
    assert headers(view, overlay)[BACK].endswith(f", gradient of iteration {other}")
    (shown,) = overlay.values[view.node_of["main/for_each_sound/body/memory"].id]
    expected = run.value(f"main/for_each_sound[{other}]/body/memory")
    assert shown == f"[1] {expected[0]:.4g}" or shown == "[1] 0.0"
    assert (
        walked_back_now(run, "main/for_each_sound/body/memory")
        == f"main/for_each_sound[{other}]/body/memory"
    )


def test_the_adjoint_stands_on_the_back_edge(run: loopscope.Debugger) -> None:
    run.seek(f"{BACK}[3]/body/next_memory")
    view, overlay = seen(run)
    (edge,) = [
        one
        for one in view.edges
        if one.kind == "back" and one.into == "main/for_each_sound/body/memory"
    ]
    adjoint = float(run.value(f"{BACK}[3]/body/adjoint_of_memory")[0])
    assert overlay.backs[edge.id][0].endswith(f" · adjoint [1] {adjoint:.4g}")


def test_before_and_after_the_way_back_the_loop_is_where_it_was(run: loopscope.Debugger) -> None:
    run.seek("main/for_each_sound[2]/body/kept")
    view, overlay = seen(run)
    assert headers(view, overlay)["main/for_each_sound"] == "iteration 2 of 6"
    assert all("adjoint" not in now for now, _ in overlay.backs.values())
    run.run()
    assert (
        walked_back_now(run, "main/for_each_sound/body/memory") == "main/for_each_sound/body/memory"
    )
    view, overlay = seen(run)
    assert sum("adjoint [1] -0.9776" in now for now, _ in overlay.backs.values()) == 1


def test_in_a_loop_in_a_loop_all_four_belong_together() -> None:
    graph = builder.Graph("nested")
    x = graph.parameter("x", "f64", [2])

    def outer(i: Tensor, h: Tensor) -> Tensor:
        inner: Tensor = builder.for_loop(
            4, lambda j, g: ops.tanh(g, name="squashed"), [h], name="inner"
        )[0]
        return inner

    (last,) = builder.for_loop(3, outer, [x], name="outer")
    debugger = loopscope.Debugger(
        loopscope.gradients(graph.model({"loss": ops.reduce_sum(last, [0])}), "loss", ["x"]),
        [np.ones(2)],
    )
    debugger.run()
    debugger.seek(
        "main/backward%2Fouter%2FLoop[2]/body/backward%2Finner%2FLoop[1]/body/backward%2Fsquashed%2FMultiply_1"
    )
    assert (
        walked_back_now(debugger, "main/outer/body/inner/body/squashed")
        == "main/outer[0]/body/inner[2]/body/squashed"
    )
    view, overlay = seen(debugger)
    shown = overlay.values[view.node_of["main/outer/body/inner/body/squashed"].id]
    first, second = debugger.value("main/outer[0]/body/inner[2]/body/squashed")
    assert shown == [f"[2] {first:.4g}, {second:.4g}"]
