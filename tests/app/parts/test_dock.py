"""The dock and the strip without a browser: what they draw, and where a click goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper
from streamlit.testing.v1 import AppTest

import loopscope
from loopscope import builder
from loopscope.explain.export import EXPORT_FORMATS
from loopscope_app.parts.dock import export_drawer
from loopscope_app.parts.widgets import lanes
from loopscope_app.state.view_choices import DOCK, DRAWER, STRIP, VIEWS
from tests.app.components import sent, tabs
from tests.app.screens.test_debugger import page_text
from tests.engine.explain.runs import finished
from tests.engine.read.onnx_models import CASES

Visit = Callable[..., AppTest]
CHART = lanes.Chart("two lanes", "step", 10, [lanes.Lane("one", []), lanes.Lane("two", [])])


def looked(opened: Visit, sample: str, **address: str) -> AppTest:
    """The app with a moment of a sample."""
    app = opened(model=f"sample:{sample}", **address)
    assert not app.exception
    return app


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("step", ["", "9", "9999"])
def test_every_view_shows_every_moment(opened: Visit, view: str, step: str) -> None:
    looked(opened, "slice_and_concatenate", step=step, view=view)


@pytest.mark.parametrize(
    "choice",
    [(look.name, option.lower()) for look in (DOCK, DRAWER, STRIP) for option in look.options],
)
@pytest.mark.parametrize("step", ["", "9", "9999"])
def test_every_tab_and_drawer_shows_every_moment(
    opened: Visit, choice: tuple[str, str], step: str
) -> None:
    name, option = choice
    looked(opened, "slice_and_concatenate", step=step, **{name: option})


@pytest.mark.parametrize("words", [{"tab": "iterations"}, {"strip": "matrix", "step": "9"}])
def test_a_model_without_a_loop_is_not_said_to_have_one(
    opened: Visit, words: dict[str, str]
) -> None:
    app = looked(opened, "if_add", **words)
    tabs(app, "dock_tab").set_value("Iterations").run()
    assert "This model has no loop" in page_text(app)
    assert "Once a loop runs" not in page_text(app)


def test_the_last_iteration_of_a_finished_loop_is_in_view(opened: Visit) -> None:
    table = sent(looked(opened, "collatz", set="twenty_seven", step="99999"), "loop_table")
    assert table["now"] is None
    assert table["cells"][table["inView"]][0] == "110"


def test_a_model_without_a_loop_lists_the_branches_of_its_ifs(opened: Visit) -> None:
    app = looked(opened, "early_exit", tab="iterations", step="9999")
    assert sent(app, "branch_table")["cells"] == [["then", "early_exit"]]


def test_the_timeline_has_a_lane_per_level(opened: Visit) -> None:
    app = looked(opened, "count_primes", step="100", strip="steps")
    drawn = sent(app, "whole_run")
    assert [lane["name"] for lane in drawn["lanes"]] == [
        "main",
        "for_each_candidate",
        "try_each_divisor",
        "if_divides",
    ]
    assert sent(app, "whole_run_cursor")["at"] == 100
    kinds = {block[2] for block in drawn["lanes"][3]["blocks"]}
    assert kinds == {"then", "else"}


def test_the_timeline_can_be_coloured_by_a_value(opened: Visit) -> None:
    app = looked(opened, "for_loop", step="9999", strip="steps")
    app.selectbox("whole_run_colour").select("balance of for_each_year").run()
    levels = [block[3] for block in sent(app, "whole_run")["lanes"][1]["blocks"]]
    assert levels[0] == 0
    assert levels[-1] == 1


def test_breakpoints_are_marked(opened: Visit) -> None:
    app = opened(model="sample:decoder", step="45")
    app.session_state["loopscope"].run.onward.go_on(
        20
    )  # a breakpoint that is set while the run goes on to its end would end it there
    tabs(app, "dock_tab").set_value("Setup").run()
    app.text_input("breakpoint_place").set_value("main/for_each_word/body/next_word")
    next(one for one in app.button if one.label == "Add").click().run()
    app.button("strip_open").click().run()
    assert [mark["kind"] for mark in sent(app, "whole_run")["marks"]] == [
        "stop"
    ] * 5  # of the whole run, also after step 45


def test_the_matrix_marks_shapes_and_the_iteration(opened: Visit) -> None:
    app = looked(opened, "growing_sequence", step="9999", strip="matrix")
    drawn = sent(app, "matrix")
    names = [lane["name"] for lane in drawn["lanes"]]
    assert names[:3] == ["sequence", "shape", "iteration"]
    assert drawn["extent"] == 8


@pytest.mark.parametrize(
    ("data", "pick"),
    [
        ({"lane": 1, "at": 3.5}, lanes.Pick(1, 3.5, False)),
        ({"lane": 0, "at": 0, "name": True}, lanes.Pick(0, 0.0, True)),
        ({"lane": -1, "at": 9}, lanes.Pick(-1, 9.0, False)),
        ({"lane": 2, "at": 1}, None),
        ({"lane": 0, "at": 10}, None),
        ({"lane": 0, "at": float("nan")}, None),
        ({"lane": True, "at": 1}, None),
        ({"at": 1}, None),
        ("lane", None),
    ],
)
def test_a_click_is_a_place_of_the_chart_or_nothing(data: Any, pick: lanes.Pick | None) -> None:
    assert lanes.read_pick(data, CHART) == pick


def test_a_question_is_answered_for_each_iteration(opened: Visit) -> None:
    app = looked(opened, "for_loop", step="9999", formula="shown")
    app.text_input("ask").set_value("balance[i] - balance[i-1]").run()
    assert not app.exception
    drawn = sent(app, "loop_table")
    assert drawn["titles"][-1] == "balance[i] - balance[i-1]"
    assert [row[-1] for row in drawn["cells"]][:2] == ["–", "50"]
    assert len(drawn["cells"]) == 10


@pytest.mark.parametrize(
    "text", ["nothing", "balance +", "open('x')", "balance[i-99]", "`", "a" * 3000]
)
def test_a_question_without_an_answer_is_told_why(opened: Visit, text: str) -> None:
    app = looked(opened, "for_loop", step="9999", formula="shown")
    app.text_input("ask").set_value(text).run()
    assert not app.exception
    assert "no answer" in page_text(app)


def test_examples_can_be_asked(opened: Visit) -> None:
    app = looked(opened, "keras_gru", step="9999", formula="shown")
    app.button("ask_example_0").click().run()
    assert not app.exception
    assert "no answer" not in page_text(app)


def test_the_end_of_a_loop_is_proved(opened: Visit) -> None:
    app = looked(opened, "growing_sequence", step="9999", chain="shown")
    rows = sent(app, "proof")["rows"]
    assert rows[0]["role"] == "Less"
    assert {row["value"] for row in rows[1:]} == {"55", "50"}


def test_the_branch_of_an_if_is_proved_while_it_runs(opened: Visit) -> None:
    app = opened(model="sample:early_exit", step="5")
    assert "early_exit/then" in app.session_state["loopscope"].run.debugger.cursor.address
    assert tabs(app, "dock_tab").value == "Node"
    app.button("verdict_chain").click().run()
    assert sent(app, "proof")["rows"][0]["role"] == "Greater"
    assert "took the then branch" in page_text(app)


def test_a_run_without_loops_and_branches_says_so(opened: Visit, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    long = "a/name/as/exporters/make/them/" * 9
    y.name = long
    graph = helper.make_graph([helper.make_node("Neg", ["x"], [long])], "g", [x], [y])
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
    app = opened(model=str(path), step="99")
    assert tabs(app, "dock_tab").value == "Node"
    app.button("strip_open").click().run()
    assert "No loop and no branch has run" in page_text(app)
    assert long not in page_text(app)


@pytest.mark.parametrize("ending", EXPORT_FORMATS)
def test_the_trace_can_be_taken_away(opened: Visit, ending: str) -> None:
    app = looked(opened, "for_loop", step="9999", drawer="export")
    app.segmented_control("export_format").set_value(ending).run()
    assert not app.exception
    assert export_drawer.written(finished("for_loop"), ending)[:1]


@pytest.mark.parametrize("name", ["loop 5 True", "nested ifs True True", "scan", "sequences"])
def test_every_tab_shows_onnx_models(opened: Visit, tmp_path: Path, name: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(next(case for case in CASES if case.name == name).model().SerializeToString())
    app = opened(model=str(path), step="9999")
    for tab in DOCK.options:
        tabs(app, "dock_tab").set_value(tab).run()
        assert not app.exception, app.exception


def test_a_long_hostile_name_stays_a_short_text(opened: Visit) -> None:
    app = looked(opened, "for_loop", step="9999", strip="steps")
    assert not app.exception
    names = lanes.Chart("x", "step", 1, [lanes.Lane("\u202eevil" * 5000, [])])
    assert len(lanes.message(names, "k")["lanes"][0]["name"]) <= lanes.LONGEST_NAME
    assert "\u202e" not in lanes.message(names, "k")["lanes"][0]["name"]


def test_what_a_model_prints_is_shown_up_to_the_moment(opened: Visit, tmp_path: Path) -> None:
    graph = builder.Graph("prints")
    last = builder.while_loop(
        lambda i: i < 3, lambda i: builder.Print(i, message="<b>at ") + 1, [graph.constant(0)]
    )
    model = graph.model(last)
    loopscope.write_model(model, tmp_path / "m.xml")
    step = loopscope.Debugger(model).seek("main/while[2]/body/Print").step
    assert "Nothing has been printed yet." in page_text(opened(model=str(tmp_path / "m.xml")))
    app = opened(model=str(tmp_path / "m.xml"), step=str(step))
    shown = [line for line in ("[0]", "[1]", "[2]") if f"&lt;b&gt;at {line}" in page_text(app)]
    assert shown == ["[0]", "[1]"]
    assert 'aria-label="Printed"' not in page_text(opened(model="sample:while_loop"))
