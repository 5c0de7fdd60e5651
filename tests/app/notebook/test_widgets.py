"""The widgets without a browser: what a canvas is told, and what becomes of what it says."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest

import loopscope
from loopscope.debug.debugger import Listeners
from loopscope_app.notebook.widgets import GraphWidget, RunWidget
from loopscope_samples import sample
from tests.app import hostile

LOOP = "main/while_not_one"
WIDGET = "application/vnd.jupyter.widget-view+json"


def collatz() -> loopscope.Model:
    found = sample("collatz")
    assert found is not None
    return loopscope.read_model(found.model)


@pytest.fixture
def shown() -> RunWidget:
    debugger = loopscope.Debugger(collatz(), [3])
    debugger.run()
    return RunWidget(debugger)


def acts(widget: GraphWidget, number: int, **given: object) -> None:
    widget.hear(
        {"kind": "acts", "value": [{"count": number, "root": widget.picture.root, **given}]}
    )


def box(widget: GraphWidget, address: str) -> str:
    return widget.picture.view.node_of[address].id


def test_a_canvas_follows_what_a_cell_does(shown: RunWidget) -> None:
    debugger = shown.debugger
    moves: tuple[tuple[Callable[[], object], str], ...] = (
        (partial(debugger.go, f"{LOOP}[2]"), "before while_not_one · iteration 2 › floor_mod"),
        (debugger.step, "before while_not_one · iteration 2 › equal"),
        (debugger.next_iteration, "before while_not_one · iteration 3 › floor_mod"),
        (debugger.run, "finished"),
        (debugger.restart, "before start_at_all"),
        (debugger.step_over, "before while_not_one"),
    )
    for move, words in moves:
        move()
        assert shown.place == words
        assert (shown.moment["step"], shown.moment["steps"]) == (
            debugger.cursor.step,
            debugger.steps,
        )


def test_a_copy_of_the_debugger_moves_alone(shown: RunWidget) -> None:
    before = shown.moment
    copy(shown.debugger).seek(5)
    assert shown.moment == before


def test_a_debugger_is_not_kept_by_those_it_tells() -> None:
    class Mover:
        pass

    mover = Mover()
    listeners, gone = Listeners(mover), ref(mover)
    del mover
    gc.collect()
    assert gone() is None
    listeners.notify(Mover())


def test_moves_reports_and_clicks_move_the_debugger(shown: RunWidget) -> None:
    debugger, run = shown.debugger, shown.moment["run"]
    debugger.seek(0)
    shown.hear(
        {
            "kind": "moves",
            "value": {"run": run, "moves": [{"name": "over", "count": 5, "start": None}] * 2},
        }
    )
    assert (debugger.cursor.step, shown.moment["step"], shown.moment["moved"]) == (1, 1, 5)
    shown.hear(
        {
            "kind": "moves",
            "value": {"run": run, "moves": [{"name": "next", "count": 6, "start": 12}]},
        }
    )
    assert debugger.cursor.address == f"{LOOP}[2]/body/floor_mod"
    shown.hear({"kind": "step", "value": {"run": run, "step": 40, "count": 7, "playing": False}})
    assert (debugger.cursor.step, shown.moment["reported"]) == (40, 7)
    shown.hear({"kind": "step", "value": {"run": "another run", "step": 3, "count": 8}})
    assert debugger.cursor.step == 40


def test_a_picture_folds_unrolls_opens_and_selects(shown: RunWidget) -> None:
    boxes = len(shown.structure["nodes"])
    loop = shown.picture.view.node_of[LOOP].id
    acts(shown, 1, kind="unroll", id=loop, address=LOOP)
    assert len(shown.structure["nodes"]) > boxes
    acts(shown, 2, kind="unroll", id=loop, address=LOOP)
    acts(shown, 3, kind="fold", id=loop, address=LOOP)
    assert len(shown.structure["nodes"]) < boxes
    acts(
        shown, 3, kind="fold", id=loop, address=LOOP
    )  # said again, because it was not confirmed in time
    assert len(shown.structure["nodes"]) < boxes
    acts(shown, 4, kind="open", id=loop, address=LOOP)
    assert (shown.structure["root"], shown.moment["acted"]) == (f"{LOOP}/body", 4)
    acts(shown, 5, kind="select", id=box(shown, f"{LOOP}/body/floor_mod"))
    assert shown.moment["selected"] == box(shown, f"{LOOP}/body/floor_mod")
    acts(shown, 6, kind="key", key="Backspace")
    assert shown.structure["root"] == "main"


def test_a_dot_switches_its_breakpoints(shown: RunWidget) -> None:
    debugger = shown.debugger
    added = debugger.breakpoints.add(f"{LOOP}[*]/body/floor_mod")
    debugger.seek(0)
    node = box(shown, f"{LOOP}/body/floor_mod")
    assert shown.moment["breakpoints"] == {node: "on"}
    before = shown.moment["run"]
    acts(shown, 1, kind="breakpoint", id=node)
    assert not added.on or not debugger.breakpoints.on
    assert shown.moment["breakpoints"] == {node: "off"}
    assert shown.moment["run"] != before


def test_what_was_not_computed_is_sent_ahead_without_computing_it_in_the_debugger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("loopscope_app.notebook.widgets.SECONDS", 10.0)  # on a busy machine
    debugger = loopscope.Debugger(collatz(), [3])
    widget = RunWidget(debugger)
    sent: list[Any] = []
    monkeypatch.setattr(
        widget, "send", lambda content, buffers=None: sent.append((content, buffers))
    )
    widget.hear({"kind": "ask", "value": {"run": widget.moment["run"], "step": 1, "count": 1}})
    stretch = sent[0][0]["stretch"]
    assert stretch["first"] == 1
    assert len(stretch["frames"]) > 5
    assert (debugger.steps, debugger.state) == (0, "paused")
    widget.hear({"kind": "library"})
    assert sent[1][0] == {"kind": "library"}
    assert sent[1][1][0][:2] == b"\x1f\x8b"


@pytest.mark.parametrize(
    "word",
    [
        None,
        [],
        {"kind": "moves", "value": {"run": "x", "moves": "all"}},
        {"kind": "moves", "value": {"moves": [{"name": "__del__", "count": 1}]}},
        {
            "kind": "acts",
            "value": [{"count": 1, "kind": "select", "id": "../..", "root": "main"}] * 10_000,
        },
        {"kind": "acts", "value": [{"count": -1, "kind": "fold"}]},
        {
            "kind": "acts",
            "value": [
                {"count": 1, "kind": "open", "id": "x", "root": "main", "address": "main/nowhere"}
            ],
        },
        {"kind": "step", "value": {"run": 1, "step": 2**70}},
        {"kind": "ask", "value": {"step": float("nan")}},
        {"kind": "show"},
    ],
)
def test_words_that_no_canvas_says_change_nothing(shown: RunWidget, word: object) -> None:
    before = (
        shown.debugger.cursor,
        shown.picture.root,
        shown.picture.folding,
        shown.picture.selected,
    )
    shown.hear(word)
    assert (
        shown.debugger.cursor,
        shown.picture.root,
        shown.picture.folding,
        shown.picture.selected,
    ) == before


def test_a_cell_has_the_widget_words_and_a_page_without_scripts(shown: RunWidget) -> None:
    for given in (shown.debugger, shown.debugger.model):
        first, second = given._repr_mimebundle_(), given._repr_mimebundle_()
        assert first[WIDGET] == second[WIDGET]  # the same widget, wherever it is shown
        assert "<script" not in first["text/html"]
        assert "collatz" in first["text/plain"]
    assert "Stopped after 7 iterations" in shown.debugger._repr_mimebundle_()["text/html"]


def test_names_from_a_file_are_text(tmp_path: Path) -> None:
    debugger = loopscope.Debugger(loopscope.read_model(hostile.write(tmp_path, "collatz")), [3])
    debugger.run()
    for given in (debugger, debugger.model):
        page = given._repr_mimebundle_()["text/html"]
        assert "<img src=x" not in page
        assert "<script" not in page
    assert "<script" not in RunWidget(debugger).said


def test_without_anywidget_a_cell_is_a_page_that_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, shown: RunWidget
) -> None:
    monkeypatch.setattr("loopscope_app.notebook.cells.shows_widgets", lambda: False)
    for subject, words in (
        (shown.debugger, "Stopped after 7 iterations"),
        (shown.debugger.model, "output highest"),
    ):
        cell = subject._repr_mimebundle_()
        assert set(cell) == {"text/plain", "text/html"}
        assert words in cell["text/html"]
        assert "pip install 'loopscope[notebook]'" in cell["text/html"]
    monkeypatch.setattr("loopscope.plugins.entry_points", lambda group: ())
    assert shown.debugger._repr_mimebundle_() == {"text/plain": repr(shown.debugger)}


NODE = f"{LOOP}/body/floor_mod"


def test_others_data_are_colours_of_the_widget_by_iteration(tmp_path: Path) -> None:
    debugger = loopscope.Debugger(collatz(), [3])
    debugger.run()
    by_iteration = {f"{LOOP}[{k}]/body/floor_mod": np.float32(k) for k in range(7)}
    cell = loopscope.widget(debugger, overlay={**by_iteration, "start_at_all": 3})
    shown = cell._repr_mimebundle_()
    assert set(shown) >= {WIDGET, "text/plain", "text/html"}
    assert cell._repr_mimebundle_()[WIDGET] == shown[WIDGET], "one widget, wherever it is shown"
    assert loopscope.widget(debugger)._repr_mimebundle_()[WIDGET] != shown[WIDGET], (
        "and not that of the bare run"
    )
    widget = RunWidget(debugger, cell.node_data)
    assert widget.moment["scale"] == ["overlay", "number", "0", "6"]
    colour = box(widget, NODE)
    for iteration in (0, 6, 3):
        debugger.go(f"{LOOP}[{iteration}]/body/equal")
        assert widget.moment["tints"][colour] == [
            "number",
            1 + round(7 * iteration / 6),
            str(iteration),
        ]
    ahead = widget._ahead(0)["frames"]
    assert isinstance(ahead, list)
    assert ahead[0]["scale"] == widget.moment["scale"]
    (tmp_path / "load.json").write_text('{"results": {"floor_mod": {"value": "slow"}}}')
    bare = loopscope.widget(debugger.model, overlay=tmp_path / "load.json")
    assert bare._repr_mimebundle_()[WIDGET]
    assert GraphWidget(debugger.model, bare.node_data).moment["scale"] == ["load", "text", "slow"]


def test_an_overlay_that_does_not_fit_is_told() -> None:
    model = collatz()
    with pytest.warns(
        UserWarning, match="1 key of the overlay names nothing in this model, such as 'nobody'"
    ):
        loopscope.widget(model, overlay={"nobody": 1, "floor_mod": 2})
    for given, words in (
        ({"nobody": 1}, "no key of the node data is an address or a name"),
        ({"floor_mod": [1, 2]}, "but for floor_mod a list"),
        ("nowhere.json", "the overlay nowhere.json cannot be read"),
    ):
        with pytest.raises(loopscope.ReadError, match=words):
            loopscope.widget(model, overlay=given)
    with pytest.raises(loopscope.InputError, match="expected a model or a Debugger, got str"):
        loopscope.widget("model.xml")  # type: ignore[arg-type]  # what a beginner may write


def test_the_still_of_a_model_has_a_line_for_each_input_and_output() -> None:
    data = collatz()._repr_mimebundle_()
    lines = data["text/html"].partition("<pre>")[2].partition("</pre>")[0].splitlines()
    assert lines == [
        "Model &#x27;collatz&#x27; with 8 nodes",
        "  input  number: i64[]",
        "  output steps: i64...",
        "  output highest: i64...",
    ]


def test_a_still_without_a_picture_has_the_graph_as_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    debugger = loopscope.Debugger(collatz(), [3])
    debugger.run()
    for given in (debugger, debugger.model):
        page = given._repr_mimebundle_()["text/html"]
        code = page.partition("The graph as code")[2]
        assert "<img" not in page
        assert "        keep_going = if_even != 1\n" in code


def test_the_code_of_a_long_graph_ends_with_how_much_more_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("loopscope_app.notebook.cells.MOST_LINES", 10)
    page = collatz()._repr_mimebundle_()["text/html"]
    assert re.search(r"number_2 = number\n\d+ more lines</pre>", page)
    monkeypatch.setattr("loopscope_app.notebook.cells.MOST_NODES", 10)
    assert "as code" not in collatz()._repr_mimebundle_()["text/html"]
