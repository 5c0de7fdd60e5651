"""Compare without a browser: other inputs, the model's runtime, and what is absent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import loopscope
from loopscope import builder
from loopscope.comparison import drift
from loopscope.peers import ComparisonReport, ValueDifference
from loopscope_app.describe.both_runs import ABSENT, Drifted, counterpart, name_here
from loopscope_app.describe.differences import headline, lines_of, same_value
from loopscope_app.describe.loop_execution import branches, iteration_count
from loopscope_app.describe.node_index import moment_of
from loopscope_app.describe.tape_pair import MOST_COLUMNS, chart_of, column_of
from loopscope_app.state.model_in_use import Agreement
from loopscope_app.state.view_choices import INPUTS, RUNTIME
from tests.app.components import sent
from tests.app.screens.test_debugger import page_text

Visit = Callable[..., AppTest]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons end before the page is drawn, on any machine."""
    for module in ("other_runs", "side_by_side"):
        monkeypatch.setattr(f"loopscope_app.actions.{module}.PATIENCE", 60.0)


def test_a_model_with_open_lengths_is_compared_from_its_address(
    opened: Visit, tmp_path: Path
) -> None:
    """The run that is compared has the inputs that fit, not those that were generated first."""
    graph = builder.Graph("open")
    x = graph.parameter("x", "f32", [-1])
    file = tmp_path / "open.xml"
    loopscope.write_model(graph.model(builder.ops.reshape(x, [2, 32], special_zero=False)), file)
    app = opened(model=str(file), view="compare")
    app.segmented_control("compare_kind").set_value(RUNTIME).run()
    app.button("compare_run").click().run()
    assert not app.error, app.error[0].value
    assert "agree" in page_text(app)


def test_other_inputs_are_compared_at_once(opened: Visit) -> None:
    app = opened(model="sample:collatz", view="compare")
    words = page_text(app)
    assert "<b>First difference: iteration 0 › number</b>, 3 here, 17 there." in words
    assert "The loop runs <b>7</b> times here and <b>12</b> times there" in words
    assert "the first branch that differs is <code>if_even</code> in iteration 2." in words
    tapes = sent(app, "compare_tapes")
    here, there, course = tapes["lanes"]
    assert (here["name"], there["name"]) == ("number = 3", "number = 17")
    assert [len(lane["blocks"]) for lane in (here, there)] == [7, 12]
    assert [block[2] for block in here["blocks"]][:3] == ["else", "then", "else"]
    assert (course["name"], course["verdict"], tapes["extent"]) == ("number", "2 to 52", 12)
    cells = sent(app, "compare_differences")["cells"]
    assert cells[:2] == [["number", "0", "3", "17"], ["highest", "0", "3", "17"]]
    assert ["if_even (branch)", "2", "else", "then"] in cells
    assert ["while_not_one (iterations)", "", "7", "12"] in cells
    assert ["steps (output)", "", "7", "12"] in cells


def test_the_run_that_is_stepped_through_stays(opened: Visit) -> None:
    app = opened(model="sample:collatz", view="compare")
    session = app.session_state["loopscope"]
    assert session.run.debugger.cursor.step == 0
    assert session.run.difference.address == "main/while_not_one[0]/body/number"
    app.button("compare_open").click().run()
    assert session.view == ""
    assert session.run.debugger.cursor.step == session.run.difference.step > 0
    assert session.canvas.selected == session.run.difference.address


def test_another_choice_of_inputs_compares_again(opened: Visit) -> None:
    app = opened(model="sample:collatz", view="compare")
    app.selectbox("compare_with").select("twenty_seven").run()
    assert "<b>7</b> times here and <b>111</b> times there" in page_text(app)


def test_the_previous_inputs_can_be_compared_with(opened: Visit) -> None:
    app = opened(model="sample:collatz")
    next(box for box in app.selectbox if str(box.key).startswith("header_set")).select(
        "seventeen"
    ).run()
    app.segmented_control("view_bar").set_value("compare").run()
    app.selectbox("compare_with").select("").run()
    assert not app.exception
    assert "<b>12</b> times here and <b>7</b> times there" in page_text(app)


def test_an_address_chooses_the_other_inputs_and_the_kind(opened: Visit) -> None:
    app = opened(model="sample:collatz", view="compare", other="twenty_seven")
    assert app.selectbox("compare_with").value == "twenty_seven"
    assert sent(app, "address_bar")["moment"]["other"] == "twenty_seven"
    app = opened(model="sample:decoder", view="compare", **{"with": "precision"})
    assert app.segmented_control("compare_kind").value == "precision"
    assert sent(app, "address_bar")["moment"]["with"] == "precision"


def test_kinds_that_are_impossible_are_absent(
    opened: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = builder.Graph("alone")
    last = graph.parameter("x", "f32", []) + 1.0
    loopscope.write_model(graph.model({"y": last}), tmp_path / "m.xml")
    app = opened(model=str(tmp_path / "m.xml"), view="compare")
    assert app.segmented_control("compare_kind").options[-3:] == [
        "Lower precision",
        "Another model",
        "Source program",
    ]
    assert "Other inputs" not in app.segmented_control("compare_kind").options


def test_a_run_that_does_not_finish_is_compared_as_far_as_it_came(
    opened: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopscope_app.actions.runs.limits", lambda: loopscope.Limits(iterations=9))
    app = opened(model="sample:collatz", view="compare")
    words = page_text(app)
    assert "The other run did not finish" in words
    assert "First difference" in words
    assert sent(app, "compare_tapes")["unit"] == "step"


def test_a_runtime_that_agrees_is_a_sentence(opened: Visit) -> None:
    app = opened(model="sample:decoder", view="compare", **{"with": "runtime"})
    assert "returns every inner value" in page_text(app)
    app.button("compare_run").click().run()
    assert not app.exception
    assert "All outputs agree with OpenVINO" in page_text(app)


def test_a_runtime_that_is_chosen_is_compared_at_once(opened: Visit) -> None:
    app = opened(model="sample:decoder", view="compare")
    app.segmented_control("compare_kind").set_value(RUNTIME).run()
    assert not app.exception
    assert "All outputs agree with OpenVINO" in page_text(app)


def test_the_badge_shows_the_comparison_with_the_runtime(
    opened: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = ComparisonReport("OpenVINO 1", (ValueDifference("words", -1, "3", "4"),), None)
    monkeypatch.setattr("loopscope_app.actions.other_runs.differences", lambda _: report)
    app = opened(model="sample:decoder")
    model = app.session_state["loopscope"].model
    model.agreement = Agreement(model.opened, model.inputs, report, over=True)
    app.run()
    app.button("agreement_badge").click().run()
    assert not app.exception
    assert app.segmented_control("compare_kind").value == RUNTIME
    assert ["words (output)", "", "3", "4"] in sent(app, "compare_differences")["cells"]


def test_the_badge_is_absent_for_other_inputs(opened: Visit) -> None:
    app = opened(model="sample:decoder")
    model = app.session_state["loopscope"].model
    report = ComparisonReport("OpenVINO 1", (), None)
    model.agreement = Agreement(model.opened, model.inputs, report, over=True)
    assert "agreement_badge" in [button.key for button in app.run().button]
    model.inputs = dict(model.inputs)
    assert "agreement_badge" not in [button.key for button in app.run().button]


@pytest.mark.parametrize(("sample", "floats"), [("collatz", False), ("decoder", True)])
def test_lower_precision_is_offered_where_there_are_floats(
    opened: Visit, sample: str, floats: bool
) -> None:
    app = opened(model=f"sample:{sample}", view="compare")
    assert ("Lower precision" in app.segmented_control("compare_kind").options) is floats


def test_the_first_value_that_differs_is_shown(
    opened: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ValueDifference("main/for_each_word[2]/body/is_confident", 40, "1 <b>", "2")
    report = ComparisonReport(
        "OpenVINO 1", (ValueDifference("words", -1, "3", "4"),), first, 12, 3, {"never ran": 2}
    )
    monkeypatch.setattr("loopscope_app.actions.other_runs.differences", lambda _: report)
    app = opened(model="sample:decoder", view="compare", **{"with": RUNTIME})
    app.button("compare_run").click().run()
    assert not app.exception
    words = page_text(app)
    assert "iteration 2 › is_confident</b>, 1 &lt;b&gt; here, 2 there." in words
    assert "Not compared: 2 never ran." in words
    assert ["words (output)", "", "3", "4"] in sent(app, "compare_differences")["cells"]


def long_loop(count: int) -> loopscope.Debugger:
    """Return a finished run of a loop with an If, of ``count`` iterations."""
    graph = builder.Graph("long")
    limit = graph.parameter("limit", "i64", [])
    last = builder.while_loop(
        lambda i: i < limit,
        lambda i: builder.cond(i < 3, lambda: i + 1, lambda: i + 1),
        [np.int64(0)],
        name="count",
    )[0]
    debugger = loopscope.Debugger(graph.model({"last": last}), {"limit": np.int64(count)})
    debugger.run()
    return debugger


@pytest.mark.parametrize(("counts", "columns"), [((5, 9), 9), ((0, 4), 4), ((2000, 700), 250)])
def test_tapes_of_any_length_have_one_scale(counts: tuple[int, int], columns: int) -> None:
    one, other = map(long_loop, counts)
    drifted = Drifted(INPUTS, "other", drift(one, other, tolerance=0.0), "", one, other)
    address = "main/count[0]/body"
    chart = chart_of(drifted, "here", address, address)
    assert chart is not None
    assert chart.extent == columns <= MOST_COLUMNS
    assert [iteration_count(run, "main/count") for run in (one, other)] == list(counts)
    assert column_of(chart, "main/count[1]/body") == (1.0 if columns == max(counts) else 0.0)
    if counts[0]:
        (taken,) = branches(one, "main/count").values()
        assert taken.tolist()[:4] == [1, 1, 1, 0][: counts[0]]


def test_equal_runs_have_no_lines_and_no_headline() -> None:
    one, other = long_loop(3), long_loop(3)
    result = drift(one, other, tolerance=0.0)
    drifted = Drifted(INPUTS, "other", result, result.sentence, one, other)
    assert lines_of(drifted) == []
    assert headline(one.model, [], result) == ""


@pytest.mark.parametrize(
    ("left", "right", "tolerance", "equal"),
    [
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), 0.0, True),
        (np.array([1.0]), np.array([1.0005]), 1e-3, True),
        (np.array([1.0]), np.array([1.0005]), 0.0, False),
        (np.zeros(2), np.zeros(3), 1.0, False),
        (np.zeros(0, np.float32), np.zeros(0, np.float32), 0.0, True),
        (np.array([1]), np.array([2]), 1.0, False),
        ((np.float32(1),), (np.float32(1),), 0.0, True),
    ],
)
def test_outputs_are_equal_within_the_tolerance(
    left: object, right: object, tolerance: float, equal: bool
) -> None:
    assert same_value(left, right, tolerance) is equal


def test_two_canvases_show_both_runs_at_one_iteration(opened: Visit) -> None:
    app = opened(model="sample:collatz", view="compare", canvases="side by side")
    here, there = (sent(app, f"compare_graph{side}_overlay") for side in ("", "_there"))
    assert here["focus"] == there["focus"]
    assert "<b>Here</b>&ensp;number = 3 · iteration 0" in page_text(app)
    assert "<b>There</b>&ensp;number = 17 · iteration 0" in page_text(app)
    assert sent(app, "address_bar")["moment"]["canvases"] == "side by side"


@pytest.mark.parametrize(
    ("place", "expected", "note"),
    [
        ("main/while_not_one[2]/body/number", "main/while_not_one[2]/body/number", ""),
        (
            "main/while_not_one[9]/body/keep_going",
            "main/while_not_one[6]/body/keep_going",
            "only 7 iterations; this is the last",
        ),
        ("main/while_not_one", "main/while_not_one", ""),
    ],
)
def test_a_place_has_a_counterpart_in_the_other_run(
    opened: Visit, place: str, expected: str, note: str
) -> None:
    app = opened(model="sample:collatz", set="seventeen", view="compare", other="three")
    drifted = app.session_state["loopscope"].run.drifted
    found = counterpart(drifted, place, moment_of(drifted.run, place))
    assert (found.address, found.note) == (expected, note)


def test_an_operation_of_one_model_only_has_no_counterpart(opened: Visit) -> None:
    app = opened(model="sample:vanishing_gradient", view="compare", **{"with": "precision"})
    app.button("compare_run").click().run()
    drifted = app.session_state["loopscope"].run.drifted
    body = "main/for_each_sound/body"
    assert name_here(drifted, f"{body}/next_memory") == f"{body}/next_memory"
    assert name_here(drifted, f"{body}/next_memory before rounding") == ""


def test_an_operation_without_a_counterpart_shows_the_same_iteration_there() -> None:
    runs: list[loopscope.Debugger] = []
    for doubles in (True, False):
        graph = builder.Graph("one of two")
        (last,) = builder.for_loop(
            4,
            lambda i, v, doubles=doubles: [(v + 1.0) * 2.0 if doubles else v + 1.0],
            [graph.parameter("x", "f32", [])],
            name="loop",
        )
        run = loopscope.Debugger(graph.model({"last": last}), [np.float32(0)])
        run.run()
        runs.append(run)
    one, other = runs
    drifted = Drifted(INPUTS, "other", drift(one, other, tolerance=0.0), "", one, other)
    place = "main/loop[1]/body/Multiply"
    found = counterpart(drifted, place, moment_of(drifted.run, place))
    assert (found.address, found.note) == ("", ABSENT)
    assert other.seek(found.step).address == "main/loop[1]/body"
