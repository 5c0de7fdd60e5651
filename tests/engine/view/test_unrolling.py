"""Loops drawn as copies: the same body side by side, lines from one to the next, and what each
copy shows of a run.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope.ir.model import Model
from loopscope.view.build import graph_view
from loopscope.view.canvas_data import structure
from loopscope.view.dot import dot_text, row_texts
from loopscope.view.folding import Folding, Unrolled, default_folding, reveal, toggle
from loopscope.view.graph import GraphView
from loopscope.view.overlay import overlay_at
from loopscope.view.overlay_data import Marks, Overlay
from loopscope.view.unrolling import followed, resize, run_of, shift, unroll
from tests.engine.view.models import summing_loop

FOLDER = Path(__file__).parents[3] / "sample_models"
COLLATZ = "main/while_not_one"


def opened(sample: str, name: str) -> tuple[Model, loopscope.Debugger]:
    model = loopscope.read_model(FOLDER / sample / "model.xml")
    with np.load(FOLDER / sample / "inputs" / f"{name}.npz", allow_pickle=False) as arrays:
        return model, loopscope.Debugger(model, {key: arrays[key] for key in arrays.files})


def lines(view: GraphView) -> set[tuple[str, str, str]]:
    nodes = {node.id: node for node in view.nodes}
    return {
        (edge.kind, nodes[edge.source].address, nodes[edge.target].address) for edge in view.edges
    }


def test_back_edges_become_lines_to_the_next_copy() -> None:
    view = graph_view(summing_loop(), Folding(unrolled=(Unrolled("main/loop", 0, 3, 12),)))
    assert [frame.title for frame in view.clusters if frame.kind == "copy"] == [
        "Iteration 0",
        "Iteration 1",
        "Iteration 2",
    ]
    found = lines(view)
    assert not [line for line in found if line[0] in ("back", "again")]
    assert ("carried", "main/loop[0]/body/next", "main/loop[1]/body/sum") in found
    assert ("carried", "main/loop[2]/body/next", "main/loop") in found, (
        "what comes later is one box"
    )
    assert ("goes_on", "main/loop[0]/body/again", "main/loop[1]/body/sum") in found
    assert ("input_map", "main/zero", "main/loop[0]/body/sum") in found
    assert [line for line in found if line[1] == "main/zero"] == [
        ("input_map", "main/zero", "main/loop[0]/body/sum")
    ]
    assert {line for line in found if line[1] == "main/x"} == {
        ("input_map", "main/x", f"main/loop[{i}]/body/part") for i in range(3)
    }
    assert {line[1] for line in found if line[2] == "main/loop:1"} == {
        *(f"main/loop[{i}]/body/next" for i in range(3)),
        "main/loop",
    }
    assert ("output_map", "main/loop", "main/loop:0") in found


def test_the_last_window_hands_out_the_last_value() -> None:
    view = graph_view(summing_loop(), Folding(unrolled=(Unrolled("main/loop", 9, 3, 12),)))
    found = lines(view)
    assert ("output_map", "main/loop[11]/body/next", "main/loop:0") in found
    assert ("input_map", "main/zero", "main/loop") in found
    assert ("carried", "main/loop", "main/loop[9]/body/sum") in found
    assert [node.title for node in view.nodes if node.kind == "more"] == ["… iterations 0 to 8 …"]


def test_a_copy_is_laid_out_once() -> None:
    model = loopscope.read_model(FOLDER / "count_primes" / "model.xml")
    outer = next(node for node in model.graph.nodes if node.bodies)
    inner = next(node for node in outer.bodies[0].graph.nodes if node.bodies)
    addresses = (f"main/{outer.name}", f"main/{outer.name}/body/{inner.name}")
    view = graph_view(
        model, Folding(unrolled=tuple(Unrolled(one, 0, 3, None) for one in addresses))
    )
    rows = row_texts(view)
    assert [len(row.copies) for row, _ in rows] == [3, 3], "the inner loop of the first copy only"
    text = "".join((dot_text(view), *(one for _, one in rows)))
    for row, one in rows:
        assert f"@{row.id}w@" in text
        assert f"@{row.id}w@" not in one
        first, *others = row.copies
        assert all(map(len, (first.nodes, first.clusters, first.edges)))
        by_id = view.by_id
        for other in others:
            assert [by_id[id].kind for id in first.nodes] == [by_id[id].kind for id in other.nodes]
            assert [by_id[id].kind for id in first.edges] == [by_id[id].kind for id in other.edges]
            assert len(first.clusters) == len(other.clusters)
    assert structure(view)["rows"]


def test_each_copy_shows_its_own_iteration() -> None:
    model, debugger = opened("collatz", "three")
    debugger.run()
    view = graph_view(model, Folding(unrolled=(Unrolled(COLLATZ, 0, 4, 7),)))

    def shown(overlay: Overlay, iteration: int, label: str) -> tuple[str, list[str]]:
        box = view.node_of[f"{COLLATZ}[{iteration}]/body/{label}"].id
        return overlay.nodes[box], overlay.values.get(box, [])

    overlay = overlay_at(debugger, view)
    assert [shown(overlay, i, "number")[1] for i in range(4)] == [["3"], ["10"], ["5"], ["16"]]
    frames = {frame.address: frame.id for frame in view.clusters}
    assert overlay.headers[frames[f"{COLLATZ}[2]"]] == "of 7"
    taken = [overlay.frames[frames[f"{COLLATZ}[{i}]/body/if_even/then"]] for i in range(4)]
    assert taken == ["skipped", "taken", "skipped", "taken"]
    debugger.seek(f"{COLLATZ}[2]/body/if_even")
    overlay = overlay_at(debugger, view)
    assert shown(overlay, 1, "number") == ("done", ["10"])
    assert shown(overlay, 3, "number") == ("waiting", [])
    assert [overlay.frames[frames[f"{COLLATZ}[{i}]"]] for i in range(4)] == [
        "done",
        "done",
        "active",
        "waiting",
    ]
    assert overlay.current == view.node_of[f"{COLLATZ}[2]/body/if_even"].id


def test_selection_and_breakpoints_find_their_copies() -> None:
    model, debugger = opened("collatz", "three")
    debugger.seek(f"{COLLATZ}[1]/body/keep_going")
    view = graph_view(model, Folding(unrolled=(Unrolled(COLLATZ, 0, 3, 7),)))
    place = f"{COLLATZ}/body/equal"
    marked = overlay_at(
        debugger, view, Marks(selected=place, breakpoints=[place.replace("/body", "[*]/body")])
    )
    assert marked.selected == view.node_of[f"{COLLATZ}[1]/body/equal"].id
    assert len(marked.breakpoints) == 3
    marked = overlay_at(
        debugger,
        view,
        Marks(selected=f"{COLLATZ}[2]/body/equal", breakpoints=[f"{COLLATZ}[0]/body/equal"]),
    )
    assert marked.selected == view.node_of[f"{COLLATZ}[2]/body/equal"].id
    assert [*marked.breakpoints] == [view.node_of[f"{COLLATZ}[0]/body/equal"].id]


def test_windows_follow_the_cursor() -> None:
    model, debugger = opened("collatz", "three")
    folding = unroll(model, toggle(model, default_folding(model), COLLATZ), COLLATZ, debugger)
    assert COLLATZ not in folding.folded
    assert folding.unrolled == (Unrolled(COLLATZ, 0, 4, None),)
    debugger.seek(f"{COLLATZ}[5]/body/equal")
    assert run_of(debugger, COLLATZ) == (5, None)
    assert followed(folding, debugger).unrolled == (Unrolled(COLLATZ, 4, 4, None),)
    debugger.run()
    assert followed(folding, debugger).unrolled == (Unrolled(COLLATZ, 0, 4, 7),)
    later = shift(followed(folding, debugger), COLLATZ, 1)
    assert later.unrolled == (Unrolled(COLLATZ, 3, 4, 7),)
    assert shift(shift(later, COLLATZ, -1), COLLATZ, -1).unrolled[0].first == 0
    assert resize(later, f"{COLLATZ}[4]", 9).unrolled == (Unrolled(COLLATZ, 1, 6, 7),)
    assert not unroll(model, later, COLLATZ).unrolled
    assert reveal(model, later, f"{COLLATZ}[4]/body/if_even/then/result").unrolled == later.unrolled


@pytest.mark.parametrize("iterations", [0, 2])
def test_iterations_that_never_ran_say_so(iterations: int) -> None:
    model, debugger = opened("for_loop", "three_years")
    debugger = loopscope.Debugger(
        model, {"balance": np.float32(1), "growth": np.float32(1.1), "years": np.int64(iterations)}
    )
    debugger.run()
    view = graph_view(model, Folding(unrolled=(Unrolled("main/for_each_year", 0, 3, None),)))
    overlay = overlay_at(debugger, view)
    states = [overlay.frames[frame.id] for frame in view.clusters if frame.kind == "copy"]
    assert states == ["done"] * iterations + ["skipped"] * (3 - iterations)


@pytest.mark.parametrize(
    ("sample", "inputs", "loop", "before", "after"),
    [
        ("records_scan", "five_rows", "main/each_row", ["part [4]", "part [5]"], ["part [4] of 5"]),
        ("walking_backwards", "prize_at_the_end", "main/from_last_to_first", [], ["part [0] of 5"]),
    ],
)
def test_lines_of_copies_say_which_part_they_carry(
    sample: str, inputs: str, loop: str, before: list[str], after: list[str]
) -> None:
    model, debugger = opened(sample, inputs)
    view = graph_view(model, Folding(unrolled=(Unrolled(loop, 4, 2, None),)))
    assert sorted(set(overlay_at(debugger, view).slices.values())) == before, (
        "counted from the end, they are not known yet"
    )
    debugger.run()
    assert sorted(set(overlay_at(debugger, view).slices.values())) == after, (
        "an iteration that did not run has no part"
    )
