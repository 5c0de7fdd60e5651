"""The cell in a real chromium: a page that loads the widget's own module, as anywidget does, and
has a notebook's other things on it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

import loopscope
from loopscope.view import overlay_at
from loopscope_app.notebook.widgets import GraphWidget, RunWidget
from loopscope_samples import sample

HOST = """<!doctype html><head>{head}</head>
<body style="margin: 1rem; background: {background}"><textarea id="code"></textarea><div id="output"></div></body>"""
START = """async ({ esm, state }) => {
  const told = {};
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
  window.hear = (words) => {
    for (const { name, value, buffers } of words) {
      if (name !== "msg:custom") state[name] = value;
      for (const call of told[name === "msg:custom" ? name : `change:${name}`] ?? []) call(value, (buffers ?? []).map(bytes));
    }
  };
  const model = {
    get: (name) => state[name],
    on: (name, call) => (told[name] ??= new Set()).add(call),
    off: (name, call) => told[name]?.delete(call),
    send: async (word) => window.hear(await window.toPython(word)),
  };
  const widget = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
  window.end = widget.default.render({ model, el: document.getElementById("output") });
  window.listening = () => Object.values(told).reduce((sum, one) => sum + one.size, 0);
}"""
VS_CODE = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:;
style-src 'unsafe-inline'; img-src data: blob:; child-src https: data:">"""
"""What its notebooks allow, as far as it concerns a widget: no worker from a blob."""
NEXT = "main/while_not_one/body/keep_going"
BEYOND = """(boxes) => boxes.flatMap((box) => {
  const { right } = box.querySelector(".body").getBoundingClientRect();
  return [...box.querySelectorAll(".title")].map((one) => [one.textContent, one.getBoundingClientRect().right - right]);
})"""
"""The words of each box, and the pixels by which they go beyond its right edge."""
STATE = ("sheet", "markup", "file", "structure", "moment", "said", "place")


class Cell:
    """A widget that is shown on a page; Python's side of the wire that a kernel would be."""

    def __init__(
        self,
        page: Page,
        widget: GraphWidget,
        monkeypatch: pytest.MonkeyPatch,
        background: str = "white",
        head: str = "",
    ) -> None:
        self.page, self.widget = page, widget
        self.words: list[dict[str, Any]] = []
        widget.observe(
            lambda change: self.words.append({"name": change["name"], "value": change["new"]}),
            names=STATE,
        )
        monkeypatch.setattr(widget, "send", self._send)
        page.expose_function("toPython", self._heard)
        page.set_content(HOST.format(background=background, head=head))
        page.evaluate(
            START,
            {"esm": str(widget._esm), "state": {name: getattr(widget, name) for name in STATE}},
        )

    def _send(self, content: object, buffers: Sequence[bytes] = ()) -> None:
        self.words.append(
            {
                "name": "msg:custom",
                "value": content,
                "buffers": [base64.b64encode(one).decode() for one in buffers],
            }
        )

    def _heard(self, word: object) -> list[dict[str, Any]]:
        self.widget.hear(word)
        return self._taken()

    def _taken(self) -> list[dict[str, Any]]:
        words, self.words = self.words, []
        return words

    def tell(self) -> None:
        """What Python has changed by itself."""
        self.page.evaluate("(words) => window.hear(words)", self._taken())

    @property
    def place(self) -> Locator:
        return self.page.locator("#place")

    def box(self, address: str) -> Locator:
        return self.page.locator(f"#canvas .box[data-address='{address}']")


@pytest.fixture
def page(own_page: Page) -> Page:
    """Return a page in a new tab, because a function that Python exposes stays in its tab."""
    return own_page


@pytest.fixture
def debugger() -> loopscope.Debugger:
    found = sample("collatz")
    assert found is not None
    debugger = loopscope.Debugger(loopscope.read_model(found.model), [3])
    debugger.run()
    return debugger


def wires(cell: Cell, count: int) -> list[str]:
    shown = cell.page.locator("#canvas .chip.value.on .chip-text")
    expect(shown).to_have_count(count)
    return sorted(shown.all_text_contents())


def agrees(cell: Cell, debugger: loopscope.Debugger) -> None:
    """The picture is of the debugger's moment."""
    expect(cell.place).to_contain_text(f"Step {debugger.cursor.step} of")
    overlay = overlay_at(debugger, cell.widget.picture.view)
    expect(cell.page.locator("#canvas .canvas")).to_have_attribute("data-current", overlay.current)
    wanted = sorted(text for texts in overlay.values.values() for text in texts if text)
    assert wires(cell, len(wanted)) == wanted


@pytest.mark.browser
def test_a_cell_and_the_debugger_move_each_other(
    page: Page, debugger: loopscope.Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    debugger.go(12)
    cell = Cell(page, RunWidget(debugger), monkeypatch)
    agrees(cell, debugger)
    debugger.go("main/while_not_one[2]")
    cell.tell()
    agrees(cell, debugger)
    page.get_by_role("button", name="Iteration »").click()
    expect(cell.place).to_contain_text("iteration 3")
    assert debugger.cursor.address == "main/while_not_one[3]/body/floor_mod"
    agrees(cell, debugger)
    page.locator("#said tr[data-moment]").nth(5).click()
    expect(cell.place).to_contain_text("iteration 5")
    page.wait_for_timeout(500)  # the row has been told to Python
    assert debugger.cursor.address == "main/while_not_one[5]/body/floor_mod"
    expect(page.locator("#said tr.now td").first).to_have_text("5")
    expect(page.locator("#said li").first).to_contain_text("Stopped after 7 iterations")


@pytest.mark.browser
def test_a_cell_that_is_shown_later_begins_where_the_run_is(
    page: Page, debugger: loopscope.Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    debugger.go("main/while_not_one[2]/body/keep_going")
    cell = Cell(
        page, RunWidget(debugger), monkeypatch, head="<style>#output { display: none }</style>"
    )
    expect(cell.box(NEXT)).to_be_attached()
    page.evaluate("document.getElementById('output').style.display = 'block'")
    expect(cell.box(NEXT)).to_be_in_viewport(ratio=1)
    page.wait_for_timeout(400)  # the picture has come to rest
    stage, box = (one.bounding_box() for one in (page.locator("#canvas .stage"), cell.box(NEXT)))
    assert stage
    assert box
    assert stage["y"] <= box["y"] <= box["y"] + box["height"] <= stage["y"] + stage["height"]


@pytest.mark.browser
@pytest.mark.parametrize("family", ["DejaVu Sans", "monospace", "sans-serif"])
def test_words_stay_in_their_boxes_in_whatever_font_there_is(
    page: Page, debugger: loopscope.Debugger, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    widget = RunWidget(debugger)
    widget.sheet += f".canvas {{ font-family: '{family}', sans-serif }}"
    cell = Cell(page, widget, monkeypatch)
    expect(cell.box(NEXT)).to_be_attached()
    beyond = page.locator("#canvas .box:not(.output)").evaluate_all(BEYOND)
    assert not [words for words, pixels in beyond if pixels > 0]


@pytest.mark.browser
def test_keys_move_the_run_only_while_the_cell_has_the_focus(
    page: Page, debugger: loopscope.Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    debugger.go(12)
    cell = Cell(page, RunWidget(debugger), monkeypatch)
    agrees(cell, debugger)
    page.locator("#code").click()
    for key in ("ArrowRight", "End", "o", " "):
        page.keyboard.press(key)
    page.wait_for_timeout(400)
    assert (debugger.cursor.step, page.locator("#code").input_value()) == (12, "o ")
    page.locator("#canvas .stage").click(position={"x": 8, "y": 60})
    page.keyboard.press("ArrowRight")
    expect(cell.place).to_contain_text("Step 13 of")
    page.wait_for_timeout(500)
    assert debugger.cursor.step == 13


@pytest.mark.browser
def test_a_cell_plays_on_into_what_was_not_computed(
    page: Page, debugger: loopscope.Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    debugger.restart()
    cell = Cell(page, RunWidget(debugger), monkeypatch)
    agrees(cell, debugger)
    page.get_by_role("button", name="Play", exact=True).click()
    expect(cell.place).to_contain_text(re.compile("Step ([4-9]|1[0-9]) of"), timeout=6000)
    page.get_by_role("button", name="Pause", exact=True).click()
    page.wait_for_timeout(800)
    assert 4 <= debugger.steps < 30
    agrees(cell, debugger)


@pytest.mark.browser
def test_a_model_folds_and_tells_a_value_in_light_and_dark(
    page: Page, debugger: loopscope.Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell(page, RunWidget(debugger), monkeypatch, background="#111")
    canvas = page.locator("#canvas .canvas")
    expect(canvas).to_have_attribute("data-theme", "dark")
    cell.box("main/start_at_all").click()
    expect(page.locator("#chosen")).to_contain_text("start_at_all · true")
    page.evaluate("document.body.style.background = 'white'")
    expect(canvas).to_have_attribute("data-theme", "light")
    boxes = page.locator("#canvas .box")
    before = boxes.count()
    page.locator("#canvas [data-action=fold]").first.dispatch_event("click")
    expect(boxes).not_to_have_count(before)


@pytest.mark.browser
def test_what_others_say_of_nodes_colours_the_cell_by_iteration(
    page: Page, debugger: loopscope.Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "main/while_not_one[{}]/body/floor_mod"
    data = loopscope.widget(
        debugger, overlay={place.format(0): 0, place.format(1): 70, "start_at_all": 35}
    ).node_data
    debugger.go("main/while_not_one[0]")
    cell = Cell(page, RunWidget(debugger, data), monkeypatch)
    expect(page.locator("#canvas .scale")).to_contain_text("overlay")
    box = cell.box("main/while_not_one/body/floor_mod")
    expect(box).to_have_class(re.compile(r"\bnumber-1\b"))
    debugger.go("main/while_not_one[1]")
    cell.tell()
    expect(box).to_have_class(re.compile(r"\bnumber-8\b"))


@pytest.mark.browser
def test_a_cell_that_is_taken_away_listens_no_more(
    page: Page, debugger: loopscope.Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell(page, GraphWidget(debugger.model), monkeypatch)
    expect(page.locator("#canvas .box").first).to_be_visible()
    assert cell.place.count() == 0
    assert page.evaluate("window.listening()") > 0
    page.evaluate("window.end()")
    assert page.evaluate("window.listening()") == 0


@pytest.mark.browser
def test_a_page_that_forbids_workers_from_blobs_has_a_picture_too(
    page: Page, debugger: loopscope.Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = Cell(page, RunWidget(debugger), monkeypatch, head=VS_CODE)
    agrees(cell, debugger)


@pytest.mark.browser
def test_the_theme_is_that_of_the_background_however_it_is_written(
    page: Page, debugger: loopscope.Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cell(page, GraphWidget(debugger.model), monkeypatch)
    for background, theme in (
        ("color(srgb 0.094 0.11 0.102)", "dark"),  # as marimo writes it
        ("color(srgb 0.98 0.98 0.98)", "light"),
        ("oklch(0.2 0.02 150)", "dark"),
        ("rgba(0, 0, 0, 0.04)", "light"),  # a tint of the white page behind it
        ("hsl(220 10% 12%)", "dark"),
    ):
        page.evaluate(
            "(background) => { document.body.style.background = background; }", background
        )
        expect(page.locator("#canvas .canvas")).to_have_attribute("data-theme", theme)
