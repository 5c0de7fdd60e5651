"""The debugger screen without a browser: moves, panels, inputs, links, refusals."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import TextInput

import loopscope
from loopscope import builder
from loopscope.view.folding import toggle
from loopscope_app.describe import tensor_summary
from loopscope_app.state.view_choices import DOCK
from loopscope_samples import FOLDER
from tests.app.components import in_drawer, sent, tabs

Visit = Callable[..., AppTest]


def page_text(app: AppTest) -> str:
    return " ".join(str(one.proto.body) for one in app.get("html"))


def step_of(app: AppTest) -> int:
    """As the line above the canvas says it."""
    found = re.search(r">step ([\d,]+)", page_text(app))
    return int(found[1].replace(",", "")) if found else -1


def press(app: AppTest, *names: str) -> AppTest:
    for name in names:
        app.button(f"transport_{name}").click().run()
        assert not app.exception
    return app


def test_steps_forth_and_back(opened: Visit) -> None:
    app = press(opened(model="sample:decoder"), "step", "step", "step")
    assert step_of(app) == 3
    assert step_of(press(app, "back")) == 2
    assert step_of(press(app, "restart")) == 0


def test_iterations_are_counted_from_one(opened: Visit) -> None:
    app = press(opened(model="sample:decoder"), "step", "next")
    assert "iteration 1 of 12" in page_text(app)
    assert "iteration 0 of 12" in page_text(press(app, "previous"))


def test_the_verdict_says_how_often_and_why(opened: Visit) -> None:
    told = page_text(press(opened(model="sample:collatz"), "run"))
    assert "7 iterations" in told
    assert "became false" in told


def test_a_loop_has_a_row_per_iteration(opened: Visit) -> None:
    table = sent(press(opened(model="sample:collatz"), "run"), "loop_table")
    columns = dict(zip(table["titles"], zip(*table["cells"], strict=True), strict=True))
    assert columns["#"] == ("0", "1", "2", "3", "4", "5", "6")
    assert columns["number"] == ("3", "10", "5", "16", "8", "4", "2")
    assert columns["if_even"] == ("else", "then", "else", "then", "then", "then", "then")
    assert table["now"] is None


def test_the_row_of_the_moment_is_marked(opened: Visit) -> None:
    app = press(opened(model="sample:collatz"), "run", "previous", "previous")
    assert sent(app, "loop_table")["now"] == 5


def test_what_a_loop_will_list_is_there_before_it_runs(opened: Visit) -> None:
    app = opened(model="sample:collatz")
    assert sent(app, "loop_table")["cells"] == []
    assert "number" in sent(app, "loop_table")["titles"]
    assert "Press" in page_text(app)


def test_other_inputs_start_another_run(opened: Visit) -> None:
    app = opened(model="sample:collatz")
    chooser = app.selectbox[0]
    chooser.select("seventeen").run()
    assert app.selectbox[0].value == "seventeen"
    assert "12 iterations" in page_text(press(app, "run"))


def test_inputs_can_be_edited(opened: Visit) -> None:
    app = opened(model="sample:collatz")
    tabs(app, "dock_tab").set_value("Setup").run()
    field = next(one for one in app.text_input if str(one.key).startswith("input_0"))
    field.set_value("6").run()
    app.button("inputs_run").click().run()
    assert "8 iterations" in page_text(press(app, "run"))


def test_a_trip_count_without_a_limit_is_said_in_words(opened: Visit) -> None:
    app = opened(model="sample:collatz", node="main/while_not_one", step="72")
    tabs(app, "dock_tab").set_value("Node").run()
    assert "no limit" in str(sent(app, "node_inputs"))


def field(app: AppTest, number: int = 0) -> TextInput:
    return next(one for one in app.text_input if str(one.key).startswith(f"input_{number}"))


@pytest.mark.parametrize(
    ("sample", "text"),
    [("collatz", text) for text in ("many", "", "3.5", "1e3", "9" * 30)]
    + [("newton_square_root", text) for text in ("ten", "1,5", "1e400")],
)
def test_a_value_that_does_not_fit_is_a_sentence_and_is_not_run(
    opened: Visit, sample: str, text: str
) -> None:
    app = opened(model=f"sample:{sample}", tab="setup")
    field(app).set_value(text).run()
    assert not app.exception
    assert "not a value of type" in app.error[0].value
    app.button("inputs_run").click().run()
    assert "not a value of type" in app.error[0].value
    field(app).set_value("4").run()
    assert not app.error
    app.button("inputs_run").click().run()
    assert not app.error
    assert app.selectbox[0].value == "edited"


def test_numbers_are_shown_as_they_were_typed(opened: Visit) -> None:
    assert field(opened(model="sample:newton_square_root", tab="setup"), 1).value == "0.001"


def test_nan_is_a_value(opened: Visit) -> None:
    app = opened(model="sample:newton_square_root", tab="setup")
    field(app).set_value("nan").run()
    app.button("inputs_run").click().run()
    assert "NaN" in page_text(press(app, "run"))


def test_a_table_has_words_for_what_is_no_number() -> None:
    odd = np.array([[np.nan, np.inf], [-np.inf, 1.5]], np.float32)
    assert tensor_summary.table(odd).to_numpy().tolist() == [["NaN", "inf"], ["-inf", "1.5"]]
    assert tensor_summary.table(odd[1:, 1:]).to_numpy().tolist() == [[1.5]]


def test_inputs_can_be_kept_under_a_name(opened: Visit) -> None:
    app = opened(model="sample:collatz", tab="setup")
    field(app).set_value("6").run()
    next(one for one in app.text_input if str(one.key).startswith("inputs_name")).set_value(
        "six"
    ).run()
    app.button("inputs_run").click().run()
    assert app.selectbox[0].value == "six"
    assert "8 iterations" in page_text(press(app, "run"))
    app.selectbox[0].select("three").run()
    app.segmented_control("view_bar").set_value("compare").run()
    assert "number = 6 (six)" in app.selectbox("compare_with").options
    app.segmented_control("view_bar").set_value("debug").run()
    tabs(app, "dock_tab").set_value("Setup").run()
    next(one for one in app.text_input if str(one.key).startswith("inputs_name")).set_value(
        "six"
    ).run()
    app.button("inputs_run").click().run()
    assert "choose another name" in app.error[0].value


def test_a_link_to_inputs_that_are_not_there_says_so(opened: Visit) -> None:
    assert (
        "which does not exist" in opened(model="sample:collatz", set="six", step="3").info[0].value
    )


def test_a_link_to_a_view_that_is_not_there_says_so(opened: Visit) -> None:
    assert "the view 'lanes'" in opened(model="sample:collatz", view="lanes").info[0].value


@pytest.mark.parametrize(
    ("step", "words"), [("1", "It has not run yet."), ("9999", "It did not run.")]
)
def test_an_operation_of_the_other_branch_did_not_run(opened: Visit, step: str, words: str) -> None:
    node = "main/early_exit/else/hidden"
    app = opened(model="sample:early_exit", node=node, step=step, tab="node")
    assert words in page_text(app)


@pytest.mark.parametrize("tab", DOCK.options)
@pytest.mark.parametrize("sample", ["slice_and_concatenate", "keras_gru", "diverging_training"])
def test_every_tab_shows_every_kind_of_model(opened: Visit, sample: str, tab: str) -> None:
    app = press(opened(model=f"sample:{sample}"), "step", "step", "step")
    tabs(app, "dock_tab").set_value(tab).run()
    assert not app.exception
    press(app, "run")


@pytest.mark.parametrize("drawer", ["About", "Problems", "Keyboard", "Export"])
@pytest.mark.parametrize("sample", ["slice_and_concatenate", "keras_gru", "diverging_training"])
def test_every_drawer_shows_every_kind_of_model(opened: Visit, sample: str, drawer: str) -> None:
    app = press(opened(model=f"sample:{sample}"), "step", "step", "step")
    assert not in_drawer(app, drawer).exception
    press(app, "run")


@pytest.mark.parametrize(
    "node", ["main/for_each_row", "main/for_each_row/body/reading", "main/for_each_row/body/change"]
)
def test_the_page_of_a_node_shows_every_kind(opened: Visit, node: str) -> None:
    app = opened(model="sample:slice_and_concatenate", node=node, step="9", tab="node")
    assert not app.exception
    assert node.rpartition("/")[2] in page_text(app)


def test_breakpoints_pause_a_run(opened: Visit) -> None:
    app = opened(model="sample:decoder")
    tabs(app, "dock_tab").set_value("Setup").run()
    app.text_input("breakpoint_place").set_value("main/for_each_word[2]/body/next_word")
    next(one for one in app.button if one.label == "Add").click().run()
    press(app, "run")
    assert "iteration 2 of 12" in page_text(app)
    assert (
        "<b>Paused:</b> breakpoint 1, before for_each_word · iteration 2 › next_word"
        in page_text(app)
    )
    assert "Paused:" not in page_text(press(app, "step"))


def test_breakpoints_and_watches_are_changed(opened: Visit) -> None:
    app = opened(model="sample:decoder")
    tabs(app, "dock_tab").set_value("Setup").run()
    app.button("breakpoint_nan").click().run()
    for place, condition in (
        ("breakpoint_place", "main/for_each_word[2]/body/next_word"),
        ("watch_expression", "iteration + 1"),
    ):
        app.text_input(place).set_value(condition)
        next(
            one
            for one in app.button
            if one.label == "Add"
            and (place == "breakpoint_place") == (one.form_id == "breakpoint_form")
        ).click().run()
    app.button("breakpoint_remove_2_change").click().run()
    assert app.text_input("breakpoint_place").value == "for_each_word · iteration 2 › next_word"
    assert [one.key for one in app.button if str(one.key).startswith("breakpoint_remove")] == [
        "breakpoint_remove_1"
    ]  # no place to change
    app.button("watch_remove_1_change").click().run()
    assert app.text_input("watch_expression").value == "iteration + 1"
    assert not [one for one in app.button if str(one.key).startswith("watch_remove")]


def test_a_breakpoint_that_can_never_hold_is_a_sentence(opened: Visit) -> None:
    app = opened(model="sample:decoder")
    tabs(app, "dock_tab").set_value("Setup").run()
    app.text_input("breakpoint_place").set_value("main/no_such_node")
    next(one for one in app.button if one.label == "Add").click().run()
    assert not app.exception
    assert app.error
    assert (
        app.text_input("breakpoint_place").value == "main/no_such_node"
    )  # to be mended, not typed again
    app.text_input("breakpoint_place").set_value("main/for_each_word")
    next(one for one in app.button if one.label == "Add").click().run()
    assert not app.error
    assert app.text_input("breakpoint_place").value == ""


def test_a_condition_that_cannot_be_computed_pauses_the_run_and_says_why(opened: Visit) -> None:
    app = opened(model="sample:decoder")
    tabs(app, "dock_tab").set_value("Setup").run()
    app.text_input("breakpoint_place").set_value("main/for_each_word[2]/body/next_word")
    app.text_input("breakpoint_condition").set_value("next_word[99] > 3")
    next(one for one in app.button if one.label == "Add").click().run()
    press(app, "run")
    assert "its condition cannot be computed" in page_text(app)
    press(app, "run")
    assert "its condition cannot be computed" not in page_text(app)


def test_watches_show_their_value(opened: Visit) -> None:
    app = press(opened(model="sample:decoder"), "step", "next")
    tabs(app, "dock_tab").set_value("Setup").run()
    app.text_input("watch_expression").set_value("iteration")
    [one for one in app.button if one.label == "Add"][-1].click().run()
    assert "= 1" in page_text(app)


def test_a_link_reopens_the_moment(opened: Visit) -> None:
    app = opened(
        model="sample:decoder",
        set="repeats_itself",
        step="20",
        node="main/for_each_word/body/next_word",
    )
    assert step_of(app) == 20
    assert app.selectbox[0].value == "repeats_itself"
    assert "next_word" in page_text(app)


def test_a_link_reopens_what_was_looked_at(opened: Visit) -> None:
    app = opened(
        model="sample:for_loop",
        step="9999",
        formula="shown",
        tab="code",
        ask="balance[i] - balance[i-1]",
    )
    assert tabs(app, "dock_tab").value == "Code"
    tabs(app, "dock_tab").set_value("Iterations").run()
    assert sent(app, "loop_table")["cells"][1][-1] == "50"
    app.button("strip_open").click().run()
    app.button("strip_Matrix").click().run()
    tabs(app, "dock_tab").set_value("Node").run()
    moment = sent(app, "address_bar")["moment"]
    assert (moment["strip"], moment["tab"], moment["formula"]) == ("matrix", "node", "shown")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"screen": "runs"}, {"view": "many"}),
        ({"lens": "compare"}, {"view": "compare"}),
        ({"lens": "timeline", "timeline": "clock"}, {"view": "performance", "timeline": "clock"}),
        ({"lens": "matrix", "step": "9"}, {"strip": "matrix"}),
        ({"lens": "why", "step": "9"}, {"chain": "shown"}),
        ({"lens": "export"}, {"drawer": "export"}),
        ({"panel": "breakpoints"}, {"tab": "setup"}),
        ({"panel": "problems"}, {"drawer": "problems"}),
        ({"panel": "lesson"}, {"drawer": "about"}),
        ({"view": "origin"}, {"origin": "shown"}),
        ({"view": "attributes"}, {"tab": "node"}),
    ],
)
def test_an_earlier_address_opens_at_the_nearest_place(
    opened: Visit, words: dict[str, str], expected: dict[str, str]
) -> None:
    app = opened(model="sample:for_loop", **words)
    moment = sent(app, "address_bar")["moment"]
    assert {name: moment.get(name) for name in expected} == expected


def test_a_view_that_a_model_cannot_have_is_absent(opened: Visit) -> None:
    views = opened(model="sample:collatz", view="gradients").segmented_control("view_bar")
    assert views.value == "debug"
    assert "Gradients" not in views.options
    assert "Gradients" in opened(model="sample:for_loop").segmented_control("view_bar").options


def test_a_link_reopens_unrolled_loops(opened: Visit) -> None:
    windows = '[["main/while_not_one",4,2]]'
    app = opened(model="sample:collatz", step="2", unroll=windows)
    assert sent(app, "address_bar")["moment"]["unroll"] == windows
    assert app.session_state["loopscope"].canvas.folding.window("main/while_not_one").first == 4


def test_a_link_far_beyond_the_last_iteration_shows_the_last_ones(opened: Visit) -> None:
    app = opened(
        model="sample:collatz", step="9999", unroll=f'[["main/while_not_one",{10**300},99]]'
    )
    assert sent(app, "address_bar")["moment"]["unroll"] == '[["main/while_not_one",1,6]]'


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "1",
        "null",
        '[["main/none",0,4]]',
        '[["main/while_not_one","0",4]]',
        "[" * 1000,
        "[" * 2000,
    ],
)
def test_a_link_to_windows_that_cannot_be_shows_the_loop_once(opened: Visit, text: str) -> None:
    app = opened(model="sample:collatz", unroll=text)
    assert "cannot be read" in app.info[0].value
    assert app.session_state["loopscope"].canvas.folding.unrolled == ()


@pytest.mark.parametrize(
    "looks",
    [
        {"drawer": "nothing"},
        {"tab": "no tab"},
        {"view": "\u202e"},
        {"formula": "shown", "ask": "x" * 5000},
    ],
)
def test_a_link_to_no_such_look_shows_the_usual(
    opened: Visit, looks: dict[str, str], tmp_path: Path
) -> None:
    shutil.copytree(FOLDER / "if_add", tmp_path / "if_add")  # no sample: it has no lesson
    app = opened(model=str(tmp_path / "if_add" / "model.xml"), **looks)
    assert tabs(app, "dock_tab").value in DOCK.options
    assert app.segmented_control("view_bar").value == "debug"
    assert not app.warning


@pytest.mark.parametrize(
    "address",
    [
        {"step": "no/such[place"},
        {"step": "999999999"},
        {"node": "][", "body": "main/none"},
        {"body": "main/a/b"},
    ],
)
def test_a_broken_link_is_a_sentence_at_most(opened: Visit, address: dict[str, str]) -> None:
    assert not opened(model="sample:decoder", **address).exception


def test_sessions_never_share_a_run(opened: Visit) -> None:
    one, other = opened(model="sample:decoder"), opened(model="sample:decoder")
    press(one, "step", "step")
    other.run()
    assert (step_of(one), step_of(other)) == (2, 0)


def test_a_lesson_reveals_after_a_guess(opened: Visit) -> None:
    app = opened(model="sample:collatz")
    in_drawer(app, "About")
    assert app.button("lesson_reveal").disabled
    app.number_input[0].set_value(7).run()
    app.button("lesson_reveal").click().run()
    assert "right" in page_text(app)


def test_a_body_alone_has_a_way_out(opened: Visit) -> None:
    app = opened(model="sample:decoder", body="main/for_each_word/body/confident_enough/then")
    assert [one.label for one in app.button if str(one.key).startswith("way_out")] == [
        "main",
        "for\\_each\\_word",
        "confident\\_enough · then",
    ]
    app.button("way_out_1").click().run()
    assert not [one for one in app.button if str(one.key).startswith("way_out")]


def test_what_fails_inside_a_folded_loop_is_opened(opened: Visit, tmp_path: Path) -> None:
    x = builder.Graph("fails").parameter("x", "f32", [2])

    def body(i: builder.Tensor, v: builder.Tensor) -> builder.Tensor:
        return v + builder.ops.reduce_sum(
            builder.ops.reshape(v, builder.ops.unsqueeze(i + 1, [0]), special_zero=False), [0]
        )

    loopscope.write_model(
        x.graph.model(builder.for_loop(3, body, [x], name="loop")), tmp_path / "fails.xml"
    )
    app = opened(model=str(tmp_path / "fails.xml"))
    session = app.session_state["loopscope"]
    session.canvas.folding = toggle(session.model.opened.model, session.canvas.folding, "main/loop")
    assert "main/loop" in session.canvas.folding.folded
    press(app, "run")
    assert session.run.debugger.failed_address.startswith("main/loop[0]/body/")
    assert "main/loop" not in session.canvas.folding.folded
