"""In a real chromium: axe-core finds nothing on any screen, and the canvas works without
a pointer and says the moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.app.accessibility import (
    BRIGHTNESS,
    change_theme,
    findings_in_both_themes,
    rules_of_axe,
)
from tests.app.browsing import CANVAS, LONG, open_sample, place, settled

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def rules() -> str:
    return rules_of_axe()


@pytest.fixture(scope="module")
def visited(browser: Browser) -> Iterator[Page]:
    """Yield the page of all visits of axe-core: one tab shows each screen in both themes."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(LONG)
    yield context.new_page()
    context.close()


Step = Callable[[Page], None]
HEADER, DOCK, CONTENT = ".st-key-header", ".st-key-dock", ".st-key-view_page"


def key(name: str) -> Step:
    return lambda page: page.keyboard.press(name)


def chosen(group: str, name: str) -> Step:
    return lambda page: page.locator(group).get_by_role("radio", name=name).first.click()


def pressed(words: str) -> Step:
    return lambda page: page.get_by_role("button", name=words).first.click()


def shown(words: str) -> Step:
    return lambda page: expect(page.get_by_text(words).first).to_be_visible(timeout=LONG)


def finished(page: Page) -> None:
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished", timeout=LONG)


def sought(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("add")
    expect(page.locator(".st-key-find .hit").first).to_be_visible()


def open_menu(page: Page) -> None:
    page.locator(".st-key-more_menu button").first.click()


def drawer(name: str) -> tuple[Step, Step]:
    return open_menu, lambda page: page.get_by_role("button", name=name, exact=True).click()


VISITS: dict[str, dict[str, tuple[Step, ...]]] = {
    "": {"gallery": (shown("A decoder that knows when to stop"),)},
    "?lesson=while": {"lesson": ()},
    "?model=sample:collatz&screen=runs&runs=number%3D1..40": {
        "many runs": (shown("40 runs in"),),
        "compared with": (lambda page: page.get_by_text("Compare with").first.click(),),
        "from a file": (key("Escape"), chosen(CONTENT, "File")),
    },
    "?model=sample:collatz": {
        "tabs and views": (),
        "Iterations": (finished,),
        **{name: (chosen(DOCK, name),) for name in ("Node", "Code", "Setup")},
        **{name: (chosen(HEADER, name),) for name in ("Compare", "Many runs", "Performance")},
        "Schedule": (chosen(CONTENT, "Schedule"),),
        "Clock": (chosen(CONTENT, "Clock"), pressed("Measure")),
    },
    "?model=sample:collatz&set=three": {
        "what opens": (open_menu,),
        "Export": (key("Escape"), *drawer("Export")),
        **{name: drawer(name) for name in ("Keyboard", "About this model")},
        "the chain": (pressed("Close"), finished, pressed("Show the chain")),
        "the lanes": (pressed("Steps, matrix"),),
        "a column": (pressed("Add a column"),),
        "the wide table": (pressed("Wide"),),
        "where a value came from": (
            pressed("Close the wide table"),
            chosen(DOCK, "Node"),
            pressed("Where from?"),
        ),
        "what if": (lambda page: page.locator(DOCK).get_by_text("What if").first.click(),),
        "the finder": (sought,),
        "the whole window": (key("Escape"), key("f")),
    },
    "?model=sample:none": {"a model that is none": ()},
    "?model=sample:swap": {
        "beside its runtime": (
            finished,
            chosen(HEADER, "Compare"),
            chosen(CONTENT, "OpenVINO"),
            pressed("Compare"),
        ),
    },
    '?model=sample:vanishing_gradient&backward=[["loss"],["recurrent"]]': {"backward": (finished,)},
    "?model=sample:hybrid_stack": {"groups and loops": (finished, pressed("Steps, matrix"))},
}
"""Pages, and screens of each in their order. A screen is reached by its steps."""


@pytest.mark.parametrize(
    "address", VISITS, ids=[next(iter(screens)) for screens in VISITS.values()]
)
def test_axe_finds_nothing_on_any_screen(
    visited: Page, server: str, rules: str, address: str
) -> None:
    visited.goto(f"{server}/{address}")
    first = visited.locator(f"{CANVAS} .box, [class*=st-key-card_], {CONTENT}").first
    expect(first).to_be_visible(timeout=LONG)
    settled(visited)
    found = {}
    for name, steps in VISITS[address].items():
        for step in steps:
            step(visited)
            settled(visited)
        found[name] = findings_in_both_themes(visited, rules)
    assert stops(visited)
    assert not any(found.values()), {name: said for name, said in found.items() if said}


FOCUSED = """() => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return element === document.body ? "" : element.tagName;
}"""
MOST_STOPS = 150


def stops(page: Page) -> int:
    """Return how often Tab moves the focus until it has been once round the page."""
    for number in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if not page.evaluate(FOCUSED) and number:
            return number
    raise AssertionError(f"after {MOST_STOPS} times Tab the focus is still on the page")


def test_what_if_by_keyboard_alone(page: Page, server: str) -> None:
    """The menu that a key opens takes the focus and gives it back: ten keys in all."""
    open_sample(page, server, "collatz")
    finished(page)
    page.keyboard.press("/")
    page.keyboard.type("kee")
    expect(page.locator(".st-key-find .hit").first).to_contain_text("keep_going")
    page.keyboard.press("Enter")
    expect(page.locator(DOCK).get_by_role("heading", name="keep_going")).to_be_visible()
    page.keyboard.press("w")
    expect(page.get_by_role("dialog").get_by_role("radio", name="true")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    settled(page)
    page.keyboard.press("w")
    expect(page.get_by_role("dialog").get_by_role("radio", name="true")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-what_if")).to_contain_text("10 instead of 7 iterations")


def test_an_open_menu_can_be_told_from_the_page(visited: Page, server: str) -> None:
    """Streamlit paints the button with colours of light pages."""
    open_sample(visited, server, "collatz")
    open_menu(visited)
    settled(visited)
    button = visited.locator(".st-key-more_menu button").first
    app = visited.locator("[data-testid=stApp]")
    for scheme in ("dark", "light"):
        change_theme(visited, scheme)
        ink = button.evaluate(BRIGHTNESS, "color")
        assert abs(ink - app.evaluate(BRIGHTNESS, "backgroundColor")) > 0.45, scheme


def test_the_finder_has_all_keys_while_it_is_open(page: Page, server: str) -> None:
    """A menu that was open would take Escape; the focus goes back to where it was."""
    open_sample(page, server, "collatz")
    finished(page)
    page.get_by_role("radio", name="Node").click()
    menu = page.locator(DOCK).get_by_role("button", name="What if")
    menu.click()
    field = page.get_by_label("Find", exact=True)
    page.keyboard.press("/")
    page.keyboard.type("add")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-activedescendant", "hit0")
    page.keyboard.press("Tab")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    expect(page.get_by_role("button", name="Run from here")).to_be_visible()


IS_HIT = """(button) => {
  const { x, y, width, height } = button.getBoundingClientRect();
  return document.elementFromPoint(x + width / 2, y + height / 2) === button;
}"""
"""True if a click on the middle of a button has the button itself as its target."""


def test_every_button_has_a_name(page: Page, server: str) -> None:
    open_sample(page, server, "early_exit")
    page.locator(DOCK).get_by_role("radio", name="Setup").click()
    page.get_by_label("Watch", exact=True).fill("1 + 1")
    page.get_by_role("button", name="Add").last.click()
    expect(page.get_by_role("button", name="Remove")).to_be_visible()
    assert re.findall(r"- button(?: \[\w+\])?:?\n.*", page.locator("main").aria_snapshot()) == []
    for name in ("More", "More moves", "To the first moment", "One operation back"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_attached()
    # Streamlit replaces the chevron of a menu that opens, and takes a click on it for one outside.
    assert page.get_by_role("button", name="More moves").evaluate(IS_HIT)


def test_twice_the_size_has_the_picture_in_view(browser: Browser, server: str) -> None:
    """A window of 1280 x 800 at 200 %, after the gallery was scrolled to the sample."""
    context = browser.new_context(viewport={"width": 640, "height": 400}, device_scale_factor=2)
    page = context.new_page()
    page.goto(server)
    page.get_by_role("button", name="Open Why 7, and not 12?").click(timeout=LONG)
    canvas = page.locator(CANVAS)
    expect(canvas.locator(".box").first).to_be_visible(timeout=LONG)
    finished(page)
    lies = canvas.bounding_box()
    assert lies is not None
    assert lies["y"] < 160
    assert lies["width"] > 580
    wide = page.evaluate(
        "() => { const main = document.querySelector('[data-testid=stMain]'); return main.scrollWidth - main.clientWidth; }"
    )
    assert wide <= 0
    transport = page.locator(".st-key-transport")
    expect(transport.get_by_role("button", name="Step")).to_be_in_viewport()
    card, dock = (page.locator(f".st-key-{key}").bounding_box() for key in ("first_run", "dock"))
    assert card is not None
    assert dock is not None
    assert card["y"] + card["height"] <= dock["y"]  # the card of the first steps covers nothing
    context.close()


def spoken(page: Page) -> Locator:
    return page.locator(f"{CANVAS} .spoken")


def into_the_canvas(page: Page) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.locator(f"{CANVAS}[data-walking]").count():
            return
    raise AssertionError("Tab does not lead into the canvas")


def test_the_moment_is_said_once_the_run_rests(page: Page, server: str) -> None:
    open_sample(page, server, "collatz")
    for step in range(1, 8):
        page.keyboard.press("ArrowRight")
        expect(place(page)).to_contain_text(f"step {step}")
    expect(spoken(page)).to_contain_text("while_not_one iteration 0")
    page.keyboard.press("ArrowRight")
    expect(spoken(page)).to_contain_text(" gave ")
    expect(spoken(page)).to_have_attribute("aria-live", "polite")
    expect(page.locator(f"{CANVAS} :is([role=status], [role=alert], [aria-live])")).to_have_count(
        1
    )  # nothing talks over it
    page.keyboard.press("End")
    expect(spoken(page)).to_contain_text("the run has ended")


def test_the_canvas_by_keyboard_alone(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz")
    into_the_canvas(page)
    expect(spoken(page)).to_contain_text("Picture of the graph.")
    expect(spoken(page)).to_contain_text("start_at_all")  # what runs next
    page.keyboard.press("ArrowUp")
    expect(spoken(page)).to_contain_text("number")
    page.keyboard.press("ArrowDown")
    expect(canvas.locator(".box.walked")).to_have_count(1)
    expect(place(page)).to_contain_text("step 0")  # walking is not stepping
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-dock")).to_contain_text("Parameter-1")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    expect(place(page)).to_contain_text("step 1")


def test_tools_of_the_canvas_are_named_in_words(page: Page, server: str) -> None:
    """A screen reader would read their signs."""
    tools = open_sample(page, server, "collatz").get_by_role("toolbar", name="View")
    for name in ("Zoom in", "Zoom out", "Fit: show all"):
        expect(tools.get_by_role("button", name=name, exact=True)).to_be_visible()
    tools.locator("[aria-haspopup=menu]").click()
    menu = page.locator(CANVAS).get_by_role("menu", name="Picture")
    follow = menu.get_by_role("menuitemcheckbox", name="Follow the current operation")
    expect(follow).to_be_focused()
    expect(follow).to_be_checked()
    for name in ("Unroll the loop", "Legend", "Save as SVG", "Save as PNG", "Print"):
        expect(menu.get_by_role("menuitem", name=name)).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(tools.locator("[aria-haspopup=menu]")).to_be_focused()
