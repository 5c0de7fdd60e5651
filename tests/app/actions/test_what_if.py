"""What if: a value is set in the inspector, the run goes on with it, and what came of it is
said; hostile links set nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

import loopscope
from loopscope.errors import InputError
from loopscope.view.build import graph_view
from loopscope_app.actions import what_if_changes
from loopscope_app.actions.canvas_sync import canvas_run
from loopscope_app.describe.both_runs import Compared
from loopscope_app.parts.inspector import what_if
from loopscope_app.state.model_in_use import ModelInUse
from loopscope_app.state.open_model import open_sample
from loopscope_app.state.run_in_view import RunInView
from loopscope_app.state.user_session import CanvasView, UserSession
from loopscope_app.state.view_choices import UNCHANGED
from tests.app import browsing
from tests.app.browsing import LONG
from tests.app.components import sent, tabs
from tests.app.screens.test_debugger import page_text, press, step_of
from tests.engine.debug import walks
from tests.engine.explain.runs import finished

Visit = Callable[..., AppTest]
KEEP = "main/while_not_one[2]/body/keep_going"
NUMBER = "main/while_not_one[4]/body/next_number_result"


def at(opened: Visit, address: str) -> AppTest:
    """Where a value has just been computed, with its place pinned in that iteration, and the
    editor open.
    """
    return editing(press(opened(model="sample:collatz", node=address, step=address), "step"))


def editing(app: AppTest) -> AppTest:
    generation = app.session_state["loopscope"].run.generation
    app.session_state[f"what_if_at_{generation}"] = True
    return app.run()


def banner(app: AppTest) -> str:
    return " | ".join(one.label for one in app.button if str(one.key).startswith("what_if_undo"))


def run_from_here(app: AppTest) -> AppTest:
    app.button("what_if_run").click().run()
    assert not app.exception
    return app


def test_a_condition_that_is_set_ends_the_loop_there_and_the_way_back_is_one_click(
    opened: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopscope_app.actions.side_by_side.PATIENCE", 60.0)
    app = at(opened, KEEP)
    here = step_of(app)
    run_from_here(app)
    assert banner(app).replace("\\", "") == "keep_going at iteration 2 = false"
    assert "while_not_one: 3 instead of 7 iterations" in page_text(app)
    assert "set by hand" in page_text(app)
    assert step_of(app) == here
    app.button("what_if_compare").click().run()
    assert ["while_not_one (iterations)", "", "3", "7"] in sent(app, "compare_differences")["cells"]
    app.segmented_control("view_bar").set_value("debug").run()
    press(app, "run")
    assert "Stopped after 3 iterations" in page_text(
        app
    ) or "stopped after 3 iterations" in page_text(app)
    app.button("what_if_undo_0").click().run()
    assert banner(app) == ""
    assert step_of(app) == here
    press(app, "run")
    assert "after 7 iterations" in page_text(app)


def test_a_number_that_is_set_changes_what_follows(opened: Visit) -> None:
    app = at(opened, "main/while_not_one[0]/body/next_steps")
    field = next(one for one in app.text_input if str(one.key).startswith("what_if_"))
    assert field.value == "1"
    field.set_value("100")
    run_from_here(app)
    press(app, "run")
    assert "the same operations run with other values" in page_text(app)
    assert "steps = 106" in page_text(app)


@pytest.mark.parametrize("given", ["many", "1.5", "99999999999999999999", ""])
def test_what_is_no_value_is_refused_with_a_sentence(opened: Visit, given: str) -> None:
    app = at(opened, "main/while_not_one[0]/body/next_steps")
    next(one for one in app.text_input if str(one.key).startswith("what_if_")).set_value(given)
    run_from_here(app)
    assert "is not a value of type i64, which next" in app.error[0].value
    assert banner(app) == ""


def test_the_value_that_it_has_already_is_no_change(opened: Visit) -> None:
    app = run_from_here(at(opened, "main/while_not_one[0]/body/next_steps"))
    assert "change it, then run from here" in app.info[0].value
    assert banner(app) == ""


def test_several_changes_are_taken_back_one_by_one(opened: Visit) -> None:
    changes = {KEEP: False, "main/while_not_one[1]/body/next_steps": 50}
    app = opened(model="sample:collatz", whatif=json.dumps(changes))
    press(app, "run")
    assert len(banner(app).split(" | ")) == 2
    assert "after 3 iterations" in page_text(app)
    app.button("what_if_undo_0").click().run()
    press(app, "run")
    assert "next" in banner(app)
    assert "after 7 iterations" in page_text(app)
    app.button("what_if_undo_0").click().run()
    assert banner(app) == ""


def test_a_change_that_the_run_no_longer_comes_to_says_so(opened: Visit) -> None:
    app = opened(
        model="sample:collatz",
        whatif=json.dumps({KEEP: False, "main/while_not_one[6]/body/next_steps": 0}),
    )
    press(app, "run")
    assert banner(app).endswith("(never reached)")


def test_a_trip_count_that_is_a_constant_is_a_value_like_others(opened: Visit) -> None:
    app = editing(opened(model="sample:collatz", node="main/no_limit"))
    next(one for one in app.text_input if str(one.key).startswith("what_if_")).set_value("4")
    run_from_here(app)
    assert banner(app).replace("\\", "") == "no_limit = 4"
    assert "while_not_one: 4 instead of 7 iterations" in page_text(app)
    press(app, "run")
    assert ", which was set to 4 by hand, was reached" in page_text(app)


def test_breakpoints_and_watches_stay_in_the_changed_run_and_on_the_way_back(opened: Visit) -> None:
    app = at(opened, KEEP)
    tabs(app, "dock_tab").set_value("Setup").run()
    app.text_input("breakpoint_place").set_value("main/while_not_one[1]/body/equal")
    next(one for one in app.button if one.label == "Add").click().run()
    tabs(app, "dock_tab").set_value("Node").run()
    run_from_here(editing(app))
    press(app, "restart", "run")
    assert "iteration 1" in page_text(app)
    app.button("what_if_undo_0").click().run()
    press(app, "restart", "run")
    assert "iteration 1" in page_text(app)


def test_a_link_brings_the_outcome_back_and_the_way_out_of_it_leads_to_the_same_moment(
    opened: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopscope_app.actions.side_by_side.PATIENCE", 60.0)
    app = opened(
        model="sample:collatz", whatif=json.dumps({KEEP: False}), step="24", lens="compare"
    )
    assert ["while_not_one (iterations)", "", "3", "7"] in sent(app, "compare_differences")["cells"]
    app.segmented_control("view_bar").set_value("debug").run()
    assert "while_not_one: 3 instead of 7 iterations" in page_text(app)
    assert step_of(app) == 24
    app.button("what_if_undo_0").click().run()
    assert (banner(app), step_of(app)) == ("", 24)


def test_what_the_link_has_no_room_for_is_said(opened: Visit) -> None:
    app = opened(model="sample:collatz", whatif=json.dumps({KEEP: False}))
    assert "too long for" not in page_text(app)
    app.session_state["loopscope"].run.changes = {NUMBER: np.arange(1000)}
    app.run()
    assert "too long for the page's link" in page_text(app)
    assert "whatif" not in sent(app, "address_bar")["moment"]


def test_other_inputs_begin_without_changes(opened: Visit) -> None:
    app = opened(model="sample:collatz", whatif=json.dumps({KEEP: False}))
    assert banner(app)
    app.selectbox[0].select("seventeen").run()
    assert banner(app) == ""
    press(app, "run")
    assert "after 12 iterations" in page_text(app)


def test_a_question_of_the_lesson_is_asked_of_the_run_as_it_is(opened: Visit) -> None:
    app = opened(model="sample:collatz", whatif=json.dumps({KEEP: False}), panel="lesson")
    app.button("lesson_inputs").click().run()
    assert banner(app) == ""
    assert app.button("lesson_reveal")


HOSTILE = [
    ("{", "cannot be read"),
    ("[1]", "cannot be read"),
    ("null", "cannot be read"),
    ("[" * 1100, "cannot be read"),
    (json.dumps({KEEP: [False] * 1000}), "cannot be read"),
    (json.dumps({KEEP: "<script>alert(1)</script>"}), "takes boolean"),
    (json.dumps({KEEP: [[False], [True, False]]}), "takes boolean"),
    (json.dumps({KEEP: {"a": 1}}), "takes boolean"),
    (json.dumps({"<b>": 1}), "there is no"),
    (json.dumps({"main/while_not_one/body/keep_going": True}), "does not say in which iteration"),
    (json.dumps({"main/number": 5}), "is an input of the model"),
    (
        json.dumps({f"main/while_not_one[{number}]/body/keep_going": True for number in range(9)}),
        "can be set by hand",
    ),
]


@pytest.mark.parametrize(("text", "words"), HOSTILE)
def test_links_that_ask_for_what_cannot_be_are_told_and_the_run_is_the_original(
    opened: Visit, text: str, words: str
) -> None:
    app = opened(model="sample:collatz", whatif=text)
    assert words in " ".join(one.value for one in (*app.error, *app.info)).replace("\\", "")
    assert banner(app) == ""
    press(app, "run")
    assert "after 7 iterations" in page_text(app)


def test_tables_are_edited_cell_by_cell() -> None:
    was = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    made = what_if_changes.edited(
        was, {"edited_rows": {"0": {"1": "7.5"}, 3: {"0": None, "1": -1}}}, "here"
    )
    assert made.reshape(-1).tolist() == [0, 7.5, 2, 3, 4, 5, 6, -1]
    assert was[0, 0, 1] == 1
    assert what_if_changes.edited(
        np.zeros((2,), np.int8), {"edited_rows": {"0": {"1": 127}}}, "here"
    ).tolist() == [0, 127]
    with pytest.raises(InputError, match="128' is not a value of type i8, which here takes"):
        what_if_changes.edited(
            np.zeros((2,), np.int8), {"edited_rows": {"0": {"1": "128"}}}, "here"
        )


@pytest.mark.parametrize(
    ("address", "array", "words"),
    [
        ("main/while_not_one", np.int64(1), ""),
        ("main/number", np.int64(1), "input of the model"),
        ("main/x", np.array("text", object), "Only numbers"),
        ("main/x", np.complex64(1j), "Only numbers"),
        ("main/x", np.zeros((40, 40)), "1,600 elements"),
        ("main/x", np.zeros((0, 4)), "0 elements"),
    ],
)
def test_what_can_be_set_here(address: str, array: np.ndarray, words: str) -> None:
    debugger = finished("collatz")
    told = what_if_changes.refusal(debugger, address, np.asarray(array))
    assert words in told if words else told == ""


def test_what_is_sent_ahead_is_of_the_changed_run() -> None:
    opened = open_sample("collatz")
    inputs, changes = (
        opened.sets["three"],
        {"main/while_not_one[0]/body/next_steps": np.array(90, np.int64)},
    )
    debugger = loopscope.Debugger(opened.model, list(inputs.values()), changes=changes)
    debugger.seek(4)
    session = UserSession(
        ModelInUse(opened=opened, inputs=inputs),
        RunInView(stepped=debugger, changes=changes),
        CanvasView(prefetch_from=5),
    )
    run = canvas_run(session, graph_view(opened.model))
    assert run is not None
    assert run.prefetch() is not None
    assert session.run.scout is not None
    assert [one.address for one in session.run.scout.changes] == list(changes)


def test_the_outcome_in_words() -> None:
    original = finished("collatz")
    model, feeds = original.model, [np.int64(3)]
    for changes, words in (
        ({KEEP: False}, "while_not_one: 3 instead of 7 iterations"),
        ({"main/while_not_one[1]/body/equal": False}, "while_not_one: 108 instead of 7 iterations"),
        (
            {"main/while_not_one[0]/body/next_steps": 7},
            "the same operations run with other values",
        ),
    ):
        changed = loopscope.Debugger(model, feeds, changes=changes)
        changed.run()
        assert what_if.outcome(Compared(UNCHANGED, changed, original)) == words


def test_the_outcome_of_another_branch_alone() -> None:
    model = walks.model()
    runs = [
        loopscope.Debugger(model, [np.float32(1)], changes=changes)
        for changes in ({"main/outer[1]/body/above": True}, None)
    ]
    for run in runs:
        run.run()
    assert (
        what_if.outcome(Compared(UNCHANGED, *runs)) == "choice at iteration 1: then instead of else"
    )


@pytest.mark.browser
def test_the_way_there_and_back_in_a_browser(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=sample:collatz&step={KEEP}&node={KEEP}")
    canvas = page.locator(".st-key-canvas_graph .canvas")
    expect(canvas.locator(".box").first).to_be_visible(timeout=LONG)
    page.keyboard.press("ArrowRight")
    browsing.settled(page)
    opener = page.get_by_role("button", name="What if …").first
    opener.click(timeout=LONG)
    page.get_by_role("button", name="Run from here").click()
    line = page.locator(".st-key-what_if")
    expect(line).to_contain_text("keep_going at iteration 2 = false", timeout=LONG)
    expect(line).to_contain_text("3 instead of 7 iterations", timeout=LONG)
    expect(page.get_by_role("button", name="Run from here")).to_have_count(0)
    expect(page.locator(".st-key-dock")).to_contain_text("set by hand")
    page.wait_for_function("() => location.search.includes('whatif')")
    wanted = parse_qs(urlsplit(page.url).query)
    assert json.loads(wanted["whatif"][0]) == {KEEP: False}
    page.reload()
    expect(line).to_contain_text("keep_going at iteration 2 = false", timeout=LONG)
    line.get_by_role("button", name="keep_going at iteration 2").click()
    expect(line).to_have_count(0, timeout=LONG)
    page.wait_for_function("() => !location.search.includes('whatif')")


@pytest.mark.browser
def test_a_table_is_edited_in_a_browser_and_nothing_lies_on_its_sentence(
    page: Page, server: str
) -> None:
    scores = "main/for_each_word[0]/body/scores_of_next_word"
    page.goto(f"{server}/?model=sample:decoder&step=25&node={scores}")
    page.get_by_role("button", name="What if …").first.click(timeout=LONG)
    editor = page.get_by_test_id("stPopoverBody")
    table = editor.get_by_test_id("stDataFrame")
    expect(table).to_be_visible(timeout=LONG)
    table.hover()
    expect(editor.get_by_test_id("stElementToolbar")).to_be_hidden()
    expect(table.get_by_test_id("data-grid-canvas")).to_be_visible(timeout=LONG)
    browsing.settled(page)  # what is drawn anew closes the cell that is edited
    box = table.bounding_box()
    assert box is not None
    page.mouse.dblclick(box["x"] + 100, box["y"] + box["height"] - 17)
    cell = page.locator("#portal input")
    cell.fill("9", timeout=LONG)
    cell.press("Enter")
    expect(cell).to_have_count(0)
    browsing.settled(page)  # what is typed is told after a moment
    editor.get_by_role("button", name="Run from here").click()
    expect(page.locator(".st-key-what_if")).to_contain_text(
        "6 instead of 5 iterations", timeout=LONG
    )
    expect(page.locator(".st-key-dock .stats")).to_contain_text("9")


@pytest.mark.browser
def test_a_value_in_one_iteration_of_an_inner_loop_is_set_by_clicks_and_taken_back(
    page: Page, server: str
) -> None:
    place_of = "main/for_each_candidate{}/body/try_each_divisor{}/body/{}"
    canvas = browsing.open_sample(page, server, "count_primes", set="up_to_30", step="400")
    canvas.locator(f'.box[data-address="{place_of.format("", "", "equal")}"]').dispatch_event(
        "click"
    )
    expect(page.locator(".st-key-dock")).to_contain_text(
        "› equal", timeout=LONG
    )  # until then the button sets another value
    page.get_by_role("button", name="What if …").click()
    expect(page.get_by_text("equal at iterations 19 › 1")).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Run from here").click()
    strip, side = page.locator(".st-key-what_if"), page.locator(".st-key-dock")
    expect(strip).to_contain_text("equal at iterations 19 › 1 = false", timeout=LONG)
    expect(strip).to_contain_text("if_divides at iterations 19 › 1: else instead of then")
    expect(side).to_contain_text("set by hand")
    expect(canvas.locator(".chip.by-hand")).to_have_text("✎ false")
    strip.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("if_divides (branch)").first).to_be_visible(timeout=LONG)
    page.go_back()
    expect(strip).to_contain_text("else instead of then", timeout=LONG)
    page.reload()  # the link has the step of the changed run, which the run without it takes over
    expect(strip).to_contain_text("else instead of then", timeout=LONG)
    strip.get_by_role("button", name="equal at iterations 19").click()
    expect(strip).to_be_hidden(timeout=LONG)
    expect(canvas.locator(".chip.by-hand")).to_have_count(0)
    expect(page.locator(".crumbs")).to_contain_text("step 398")
    expect(page.locator(".st-key-compare_lanes")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("whatif"))
