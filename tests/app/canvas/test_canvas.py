"""The canvas in a real chromium: restyled without moving, folded, zoomed, and deaf to names that
want to be markup.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import pytest
from playwright.sync_api import Page, expect

from loopscope import builder
from loopscope.view.build import graph_view
from loopscope.view.folding import Folding
from loopscope.write import write_model
from loopscope_app.canvas_event import Act, CanvasEvent, read_acts, read_event
from tests.app.browsing import CANVAS, LONG, open_address, open_sample
from tests.engine.view.models import branches, summing_loop
from tests.engine.view.test_outer_values import captures

EVIL = """"><script>window.stolen=1</script><img src=x onerror="window.stolen=2">\\N"""
LAYER = """<layer id="{id}" name={name} type="{type}" version="opset1">{ports}</layer>"""
PORT = """<{way}><port id="{id}" precision="FP32"><dim>2</dim></port></{way}>"""


@pytest.mark.browser
def test_a_step_restyles_and_moves_nothing(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "if_add")
    svg = canvas.locator("svg").first
    svg.evaluate("e => { window.kept = e; }")
    canvas.locator("[data-do=fit]").click()
    page.wait_for_timeout(500)
    before = canvas.locator(".wrapper").evaluate("e => e.style.transform")
    current = canvas.get_attribute("data-current")
    page.keyboard.press("ArrowRight")
    expect(canvas).not_to_have_attribute("data-current", current or "", timeout=LONG)
    expect(canvas.locator(".box.current")).to_have_count(1)
    assert svg.evaluate("e => e === window.kept")
    assert canvas.locator(".wrapper").evaluate("e => e.style.transform") == before


@pytest.mark.browser
def test_folding_zooming_and_dragging(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "if_add")
    boxes = canvas.locator(".box")
    whole = boxes.count()
    canvas.locator(".head.if [data-action=fold]").first.click()
    expect(canvas.locator(".box.folded")).to_have_count(1, timeout=LONG)
    assert boxes.count() < whole
    canvas.locator(".box.folded [data-action=unfold]").first.click()
    expect(boxes).to_have_count(whole, timeout=LONG)
    area = canvas.locator(".stage").bounding_box()
    assert area is not None
    transform = canvas.locator(".wrapper").evaluate("e => e.style.transform")
    page.mouse.move(area["x"] + 40, area["y"] + area["height"] - 60)
    page.mouse.down()
    page.mouse.move(area["x"] + 100, area["y"] + area["height"] - 90, steps=4)
    page.mouse.up()
    moved = canvas.locator(".wrapper")
    dragged = moved.evaluate("e => e.style.transform")
    assert dragged != transform
    assert dragged.split("scale")[1] == transform.split("scale")[1]
    page.mouse.wheel(0, -240)
    expect(moved).not_to_have_css("transform", dragged)
    expect(canvas.locator(".box.selected")).to_have_count(0)


@pytest.mark.browser
def test_names_are_text_whatever_they_hold(page: Page, server: str, tmp_path: Path) -> None:
    layers = [("Parameter", "output", 0), ("Relu", "input", 0), ("Result", "input", 0)]
    ports = [PORT.format(way=way, id=id) for _, way, id in layers]
    ports[1] += PORT.format(way="output", id=1)
    texts = [
        LAYER.format(id=id, name=quoteattr(EVIL + str(id)), type=kind[0], ports=ports[id])
        for id, kind in enumerate(layers)
    ]
    texts[0] = texts[0].replace("<output>", '<data shape="2" element_type="f32"/><output>')
    edges = '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>'
    model = tmp_path / "evil.xml"
    model.write_text(
        f'<net name="evil" version="11"><layers>{"".join(texts)}</layers><edges>{edges}</edges></net>',
        encoding="utf-8",
    )
    canvas = open_address(page, f"{server}/?model={quote(str(model))}")
    expect(canvas.locator(".box")).to_have_count(3)
    canvas.locator(".box").first.hover()
    expect(canvas.locator(".tooltip")).to_contain_text("<script>")
    assert canvas.locator("script, img, image, foreignObject, a, use, style").count() == 0
    assert page.evaluate("window.stolen") is None


def test_events_of_the_browser_are_not_trusted() -> None:
    view = graph_view(summing_loop(), Folding())
    chosen = view.node_of["main/loop/body/add"]
    assert read_event({"kind": "select", "id": chosen.id, "root": "main"}, view) == CanvasEvent(
        "select", "main/loop/body/add"
    )
    assert read_event({"kind": "open", "id": "c0", "root": "main"}, view) == CanvasEvent(
        "open", "main/loop", "main/loop/body"
    )
    assert read_event({"kind": "key", "key": "Backspace", "root": "main"}, view) == CanvasEvent(
        "key", key="Backspace"
    )
    foreign = {"kind": "select", "id": chosen.id, "root": "main/loop/body"}
    bad: list[object] = [
        foreign,
        None,
        7,
        "select",
        [],
        {},
        {"kind": "select", "id": "n999", "root": "main"},
        {"kind": "select", "id": ["n1"], "root": "main"},
        {"kind": "select", "id": "e0", "root": "main"},
        {"kind": ["select"], "root": "main"},
        {"kind": "run", "id": "n1", "root": "main"},
        {"kind": "key", "key": "F1", "root": "main"},
    ]
    assert [read_event(data, view) for data in bad] == [None] * len(bad)


def test_what_was_done_on_an_older_picture_means_the_same_place() -> None:
    before, now = (
        graph_view(branches(), Folding()),
        graph_view(branches(), Folding(frozenset({"main/choose"}))),
    )
    told = [
        {"kind": "select", "id": part.id, "address": part.address, "root": "main", "count": 7}
        for part in before.nodes
        if part.address in now.node_of
    ]
    assert [act.event for act in read_acts(told, now)] == [
        CanvasEvent("select", str(one["address"])) for one in told
    ]
    gone = {
        "kind": "select",
        "id": "n1",
        "address": "main/choose/then/nowhere",
        "root": "main",
        "count": 8,
    }
    assert read_acts([gone, {**gone, "count": -1}, {**gone, "count": True}, {}, 7], now) == (
        Act(8, None),
    )
    assert read_acts({"count": 1}, now) == ()


def test_opening_what_has_no_single_body_unfolds_it() -> None:
    view = graph_view(branches(), Folding(frozenset({"main/choose"})))
    folded = view.node_of["main/choose"]
    assert read_event({"kind": "open", "id": folded.id, "root": "main"}, view) == CanvasEvent(
        "fold", "main/choose"
    )


@pytest.mark.browser
def test_lines_into_outer_values_are_seen_when_asked_for(
    page: Page, server: str, tmp_path: Path
) -> None:
    path = tmp_path / "captures.xml"
    write_model(captures(9, 2), path)
    canvas = open_address(page, f"{server}/?model={quote(str(path))}")
    lines = canvas.locator(".line.latent")
    expect(lines).to_have_count(18)
    seen = canvas.locator(".line.latent[data-shown]")
    expect(seen).to_have_count(0)
    canvas.locator("[data-do=fit]").click()
    page.wait_for_timeout(500)
    box = canvas.locator('.box[data-address="main/cond/then/*~outer"]')
    box.hover()
    expect(seen).to_have_count(9)
    expect(canvas.locator(".tooltip")).to_contain_text("x8")
    canvas.locator(".tools [data-do=fit]").hover()
    expect(seen).to_have_count(0)
    canvas.locator('.box[data-address="main/x3"]').dispatch_event("click")
    expect(seen).to_have_count(2)
    box.locator("[data-action=unfold]").dispatch_event("click")
    expect(canvas.locator(".box.parameter", has_text="x8")).to_have_count(2, timeout=LONG)


@pytest.mark.browser
def test_a_small_picture_comes_even_when_the_machine_is_busy(own_page: Page, server: str) -> None:
    """No short step of the ladder has time to finish, as on a busy machine."""
    own_page.add_init_script(
        "const wait = setTimeout;setTimeout = (work, time, ...rest) => wait(work, [1500, 500].includes(time) ? 0 : time, ...rest);"
    )
    own_page.goto(f"{server}/?model=sample:if_add")
    canvas = own_page.locator(CANVAS)
    expect(canvas.locator(".box").first).to_be_visible(timeout=LONG)
    expect(canvas.locator(".notice")).to_be_hidden()


@pytest.mark.browser
def test_a_layout_that_fails_with_little_time_is_made_without_limits(
    own_page: Page, server: str, tmp_path: Path
) -> None:
    """Limits on the ranking of frames can end Graphviz: so they do for an LSTM in a branch."""
    graph = builder.Graph("wide")
    parts = [graph.parameter(f"x{number}", "f32", [1]) for number in range(160)]
    write_model(graph.model({"y": builder.ops.concat(parts, axis=0)}), tmp_path / "wide.xml")
    own_page.add_init_script(
        "const wait = setTimeout; setTimeout = (work, time, ...rest) => wait(work, time === 850 ? 0 : time, ...rest);"
        "const Genuine = Worker; Worker = class extends Genuine {"
        "  postMessage(message) {"
        "    if (!message.attributes?.nslimit1) return super.postMessage(message);"
        "    this.onmessage({ data: { error: 'Assertion failed' } });"
        "  } };"
    )
    canvas = open_address(own_page, f"{server}/?model={quote(str(tmp_path / 'wide.xml'))}")
    expect(canvas.locator(".notice")).to_be_hidden()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("script", "count", "notice"),
    [
        ("", 1, "The layout takes long: the machine may be busy."),
        (
            "onmessage = () => {}; postMessage({ready: true});",
            1,
            "The layout takes long: the machine may be busy.",
        ),
        (
            "postMessage({ready: true}); onmessage = () => postMessage({error: 'lost'});",
            4,  # a failure has each step of the ladder tried, and then no limits
            "The picture could not be laid out: lost",
        ),
    ],
    ids=["never starts", "never answers", "fails"],
)
def test_a_layout_that_does_not_come_is_started_again(
    own_page: Page, server: str, script: str, count: int, notice: str
) -> None:
    own_page.add_init_script(
        "const wait = setTimeout; setTimeout = (work, time, ...rest) => wait(work, time === 6000 ? 300 : time, ...rest);"
        "const Genuine = Worker; let count = 0;"
        f"Worker = class {{ constructor(address) {{ return new Genuine(count++ >= {count} ? address : `data:text/javascript,{script}`); }} }};"
    )
    own_page.goto(f"{server}/?model=sample:if_add")
    canvas = own_page.locator(CANVAS)
    expect(canvas.locator(".notice")).to_contain_text(notice, timeout=LONG)
    canvas.get_by_role("button", name="Try again").click()
    expect(canvas.locator(".box").first).to_be_visible(timeout=LONG)
    expect(canvas.locator(".notice")).to_be_hidden()
