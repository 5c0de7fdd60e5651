"""In a real chromium: pictures and files that are taken away are what the screen shows, called
after the model.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import ceil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lxml import etree
from playwright.sync_api import Page, expect

from tests.app.browsing import LONG, choose_in_menu, open_sample, place, settled

pytestmark = pytest.mark.browser
READ: dict[str, Callable[[Path], str]] = {
    ".csv": lambda file: str(
        pd.read_csv(file, dtype=str).set_index("address").loc["main/while_not_one", "value"]
    ),
    ".parquet": lambda file: str(
        pd.read_parquet(file).set_index("address").loc["main/while_not_one", "value"]
    ),
    ".json": lambda file: str(
        next(
            one["value"]
            for one in json.loads(file.read_text())["values"]
            if one["address"] == "main/while_not_one"
        )
    ),
}
"""How often the loop ran, as each format tells it."""
LIGHT, DARK = "#fbfcfe", "#101217"
PRINTED = """() => {
  const sheet = document.querySelector(".print-sheet");
  const style = sheet.querySelector("style").textContent;
  return [document.title, style, sheet.querySelector("header").textContent, sheet.querySelector("svg").outerHTML];
}"""
COPIED = """async () => {
  const [item] = await navigator.clipboard.read();
  return [...new Uint8Array(await (await item.getType("image/png")).arrayBuffer())].slice(0, 8);
}"""


def saved(page: Page, act: Callable[[], None], folder: Path) -> Path:
    settled(page)
    with page.expect_download(timeout=LONG) as found:
        act()
    file = folder / found.value.suggested_filename
    found.value.save_as(file)
    return file


def words(svg: bytes) -> list[str]:
    return [str(text) for text in etree.fromstring(svg).itertext()]


def test_pictures_show_the_whole_graph_and_print_in_light_colours(
    page: Page, server: str, tmp_path: Path
) -> None:
    page.emulate_media(color_scheme="dark")
    canvas = open_sample(page, server, "collatz")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    expect(canvas).to_contain_text("7 iterations, condition became false")

    def pick(name: str) -> None:
        choose_in_menu(canvas, name.lower())

    picture = saved(page, lambda: pick("SVG"), tmp_path)
    svg = picture.read_bytes()
    assert picture.name == "collatz.svg"
    assert {"start_at_all", "was 2", "7 iterations, condition became false", "multiply"} <= set(
        words(svg)
    )
    assert f'fill="{DARK}"'.encode() in svg
    pixels = saved(page, lambda: pick("PNG"), tmp_path)
    assert pixels.name == "collatz.png"
    assert pixels.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    pick("copy")
    expect(canvas).to_contain_text("Picture copied")
    assert bytes(page.evaluate(COPIED)) == pixels.read_bytes()[:8]
    page.evaluate("window.print = () => {}")
    pick("print")
    title, style, verdict, sheet = page.evaluate(PRINTED)
    assert title == "collatz"
    assert "while_not_one stopped after 7 iterations because keep_going became false" in verdict
    width = ceil(float(etree.fromstring(svg).get("width", "")))
    assert f"size: {width}px" in style
    assert f'fill="{LIGHT}"' in sheet
    assert words(sheet.encode()) == words(svg)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator(".print-sheet")).to_have_count(0)
    assert page.pdf(prefer_css_page_size=True).count(b"/MediaBox") == 1
    expect(canvas).to_have_attribute("data-theme", "dark")


def test_values_code_and_traces_are_files_called_after_the_model(
    page: Page, server: str, tmp_path: Path
) -> None:
    open_sample(page, server, "collatz", node="main/while_not_one", panel="code")
    page.keyboard.press("End")
    expect(place(page)).to_contain_text("finished")
    code = saved(
        page,
        lambda: page.get_by_role("button", name="Download as runnable Python").click(),
        tmp_path,
    )
    assert code.name == "collatz.py"
    page.get_by_role("radio", name="Node").click()
    page.locator(".st-key-node_menu button").first.click()
    value = saved(page, lambda: page.get_by_role("button", name="Download .npy").click(), tmp_path)
    assert (value.name, int(np.load(value))) == ("while_not_one.npy", 7)
    page.keyboard.press("Escape")
    page.locator(".st-key-more_menu button").first.click()
    page.get_by_role("button", name="Export", exact=True).click()
    trace = saved(page, lambda: page.get_by_role("button", name="Download .npz").click(), tmp_path)
    assert trace.name == "collatz.npz"
    with np.load(trace) as values:
        assert values["main/while_not_one"] == 7
    for ending, steps in READ.items():
        page.get_by_role("radio", name=ending).click()
        table = saved(page, page.get_by_role("button", name=f"Download {ending}").click, tmp_path)
        assert (table.name, steps(table)) == (f"collatz{ending}", "7")
