"""Breakpoints that are switched off and on, and kept with the watches in the page's link."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from loopscope.ir import readable
from tests.app.browsing import LONG, open_sample, place
from tests.app.components import sent

Visit = Callable[..., AppTest]
WORD, LATER = "main/for_each_word[2]/body/next_word", "main/for_each_word[4]/body/next_word"


def linked(items: Sequence[object]) -> str:
    return json.dumps(items, separators=(",", ":"))


def page_text(app: AppTest) -> str:
    return " ".join(str(one.proto.body) for one in app.get("html"))


def kept(app: AppTest) -> dict[str, str]:
    """What the page's address says of breakpoints and watches."""
    moment = sent(app, "address_bar")["moment"]
    return {name: moment[name] for name in ("breakpoints", "watches") if name in moment}


def test_one_is_switched_off_and_on_in_the_list(opened: Visit) -> None:
    app = opened(
        model="sample:decoder",
        panel="breakpoints",
        breakpoints=linked([[WORD, "", "address", True], [LATER, "", "address", True]]),
    )
    before = sent(app, "canvas_graph_overlay")["run"]
    app.checkbox[0].uncheck().run()
    assert "1 · before for_each_word · iteration 2 › next_word (off)" in page_text(app)
    assert sent(app, "canvas_graph_overlay")["run"] != before, (
        "what was sent ahead, with its pauses, is no longer so"
    )
    app.button("transport_run").click().run()
    assert "<b>Paused:</b> breakpoint 2" in page_text(app)
    app.button("transport_restart").click().run()
    app.checkbox[0].check().run()
    app.button("transport_run").click().run()
    assert "<b>Paused:</b> breakpoint 1" in page_text(app)


def test_a_link_keeps_breakpoints_and_watches(opened: Visit) -> None:
    words = {
        "breakpoints": linked(
            [
                [WORD, "", "address", False],
                [LATER, "iteration > 3", "address", True],
                ["", "", "nan", True],
            ]
        ),
        "watches": linked(["iteration + 1"]),
    }
    app = opened(model="sample:decoder", step="20", panel="breakpoints", **words)
    assert kept(app) == words
    assert [one.value for one in app.checkbox] == [False, True, True]
    assert "= 2" in page_text(app)
    assert "step 20" in page_text(app), (
        "the moment of the link, wherever a breakpoint lies before it"
    )
    app.button("transport_run").click().run()
    assert f"<b>Paused:</b> breakpoint 2, before {readable(LATER)}" in page_text(app)


def test_switched_off_stays_so_in_a_run_with_other_inputs(opened: Visit) -> None:
    app = opened(
        model="sample:collatz",
        panel="breakpoints",
        breakpoints=linked([["", "", "nan", True], ["", "", "shape", False]]),
    )
    app.button("breakpoint_remove_1").click().run()
    app.selectbox[0].select("seventeen").run()
    assert [one.value for one in app.checkbox] == [False]
    assert kept(app) == {"breakpoints": '[["","","shape",false]]'}


WRONG = [
    ("breakpoints", "[", "a list of its place"),
    ("breakpoints", "[" * 1000, "a list of its place"),
    ("breakpoints", "[" * 5000, "a list of its place"),
    ("breakpoints", "3", "a list of its place"),
    ("breakpoints", '[["main/none","","address",true]]', "there is no 'none'"),
    ("breakpoints", linked([[WORD, "__import__('os')", "address", True]]), "__import__"),
    ("breakpoints", linked([[WORD, "no_such > 1", "address", True]]), "no_such"),
    ("breakpoints", linked([["", "", "address", True]]), "a place or a condition"),
    ("breakpoints", linked([[WORD, "", "always", True]]), "a list of its place"),
    ("breakpoints", linked([[WORD, "", "address", 1]]), "a list of its place"),
    ("breakpoints", linked([["<b>", "", "address", True]]), "<b>"),
    ("watches", "{", "the text of an expression"),
    ("watches", "[1]", "the text of an expression"),
    ("watches", linked(["open('x')"]), "open"),
]


@pytest.mark.parametrize(("name", "text", "words"), WRONG)
def test_what_a_link_cannot_set_is_left_out_and_told(
    opened: Visit, name: str, text: str, words: str
) -> None:
    app = opened(model="sample:decoder", **{name: text})
    (told,) = (one.value.replace("\\", "") for one in app.info)
    assert "set without 1 of 1" in told
    assert words in told
    assert kept(app) == {}


def test_a_link_keeps_as_many_as_it_holds(opened: Visit) -> None:
    many = linked([["", "", "nan", True]] * 21)
    app = opened(model="sample:decoder", breakpoints=many, watches=linked(["1"] * 22))
    assert "without 3 of 43" in app.info[0].value
    assert {name: len(json.loads(text)) for name, text in kept(app).items()} == {
        "breakpoints": 20,
        "watches": 20,
    }
    app = opened(
        model="sample:decoder", panel="breakpoints", watches=linked(["0" * 499, "0" * 498])
    )
    app.text_input("watch_expression").set_value("0" * 497)
    [one for one in app.button if one.label == "Add"][-1].click().run()
    assert json.loads(kept(app)["watches"]) == ["0" * 499, "0" * 498]


def test_what_a_link_has_no_room_for_is_said(opened: Visit) -> None:
    words = {
        "breakpoints": linked([["", "", "nan", True]] * 20),
        "watches": linked(["0" * 499, "0" * 498]),
    }
    app = opened(model="sample:decoder", panel="breakpoints", **words)
    assert "link has room" not in page_text(app)
    app.button("breakpoint_shape").click().run()
    assert "link has room for the first 20 of these 21 breakpoints" in page_text(app)
    app.button("breakpoint_remove_3").click().run()
    assert "link has room" not in page_text(app)
    app.text_input("watch_expression").set_value("0" * 497)
    [one for one in app.button if one.label == "Add"][-1].click().run()
    assert "link has room for the first 2 of these 3 watches" in page_text(app)


def test_a_lesson_has_none(opened: Visit) -> None:
    app = opened(lesson="while", breakpoints=linked([["", "", "nan", True]]), watches=linked(["1"]))
    assert kept(app) == {}
    assert not app.info


@pytest.mark.browser
def test_one_that_is_switched_off_is_hollow_and_the_picture_plays_past_it(
    page: Page, server: str
) -> None:
    words = quote(linked([["main/while_not_one", "", "address", True]]))
    canvas = open_sample(page, server, "collatz", panel="breakpoints", breakpoints=words)
    box = canvas.locator(".box.breakpoint")
    fill = "one => getComputedStyle(one.querySelector('.stop')).fill"
    expect(box).to_have_count(1)
    full = box.evaluate(fill)
    page.locator(".st-key-transport_play button").first.click()
    expect(page.locator(".st-key-verdict")).to_contain_text("Paused", timeout=LONG)
    page.locator(".st-key-transport_restart button").first.click()
    expect(place(page)).to_contain_text("step 0")
    expect(page.get_by_role("checkbox", name="Breakpoint 1 pauses the run")).to_be_checked()
    page.locator("[class*='st-key-breakpoint_on_'] label").first.click()
    expect(canvas.locator(".box.breakpoint.off")).to_have_count(1)
    assert box.evaluate(fill) != full
    page.locator(".st-key-transport_play button").first.click()
    expect(place(page)).to_contain_text("iteration 0", timeout=LONG)
    page.reload()
    expect(canvas.locator(".box.breakpoint.off")).to_have_count(1, timeout=LONG)


@pytest.mark.browser
def test_a_click_on_the_dot_switches_what_it_stands_for(page: Page, server: str) -> None:
    """One dot may stand for several breakpoints; the list beside the picture and the link
    follow.
    """
    place_of = "main/while_not_one[{}]/body/if_even"
    words = quote(
        linked(
            [
                [place_of.format("*"), "", "address", True],
                [place_of.format(3), "iteration > 1", "address", False],
            ]
        )
    )
    canvas = open_sample(page, server, "collatz", panel="breakpoints", breakpoints=words)
    dot, boxes = (
        canvas.locator(".box.breakpoint > .stop"),
        page.get_by_role("checkbox", name=re.compile("pauses the run")),
    )
    expect(dot).to_have_count(1)
    selected = canvas.locator(".box.selected").count()
    for states, off in (((False, False), 1), ((True, True), 0)):
        dot.click()
        expect(canvas.locator(".box.breakpoint.off")).to_have_count(off)
        for box, state in zip(boxes.all(), states, strict=True):
            expect(box).to_be_checked(checked=state)
        expect(page).to_have_url(re.compile(f"address%22%2C{str(states[0]).lower()}%5D"))
    assert canvas.locator(".box.selected").count() == selected, "it is no click on the box"
    dot.hover()
    expect(canvas.locator(".tooltip")).to_have_text("breakpoint: a click switches it off")
    page.keyboard.press("End")
    expect(page.locator(".st-key-verdict")).to_contain_text("Paused: breakpoint 1")
    dot.dblclick()
    expect(canvas.locator(".box.breakpoint:not(.off)")).to_have_count(1)
    expect(page.locator(".st-key-way_out")).to_have_count(0)


@pytest.mark.browser
def test_the_dot_of_a_folded_loop_stands_for_what_is_in_it(page: Page, server: str) -> None:
    words = quote(linked([["main/while_not_one[2]/body/if_even", "", "address", True]]))
    canvas = open_sample(page, server, "collatz", breakpoints=words)
    canvas.locator(".head.loop [data-action=fold]").dispatch_event("click")
    canvas.locator(".box.folded.breakpoint > .stop").click(timeout=LONG)
    expect(canvas.locator(".box.folded.breakpoint.off")).to_have_count(1)
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
