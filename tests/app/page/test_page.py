"""A run as one HTML file: what stands in it, escaped and bounded; and what a person does with it in a real chromium, offline."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import engine
from app.cli import main
from app.describe.code_moment import code_moment
from app.describe.loop_endings import loop_endings
from app.page import BytesBound, page_of
from app.page.moments import moments
from app.page.paged_pictures import MOST_PICTURES, pictures
from engine import build
from engine.explain import iteration_matrix, listing, step_of_cell
from engine.ops.stored import write
from engine.view import default_folding, overlay_at
from sample_models import sample, samples
from tests.app import hostile

MEGABYTE = 2**20


def run_of(name: str) -> engine.Debugger:
    found = sample(name)
    assert found is not None
    debugger = engine.Debugger(engine.read_model(found.model), next(iter(found.sets)).arrays())
    debugger.run()
    debugger.seek(0)
    return debugger


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="text/plain" id="run">([^<]*)</script>', page)
    assert found is not None
    data = json.loads(gzip.decompress(base64.b64decode(found[1])))
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize("name", [one.name for one in samples()])
def test_every_sample_fits_into_a_megabyte(name: str) -> None:
    page = page_of(run_of(name), title=name)
    assert len(page.encode()) < MEGABYTE
    data = data_of(page)
    assert len(data["frames"]) == len(data["steps"]) == len(data["paths"]) == len(data["track"]) == len(data["places"])


def test_names_and_notes_are_text() -> None:
    graph = build.Graph("<b>")
    x = graph.parameter("x", "f32", [])
    (last,) = build.while_loop(lambda v: v < 3, lambda v: v + 1, [x], name="</script><script>alert(1)</script>")
    debugger = engine.Debugger(graph.model({"last": last}), [0])
    debugger.run()
    page = page_of(debugger, title="</title><script>1</script>", note="</p><img src=x onerror=alert(1)>\u202e")
    assert page.count("<script") == 3
    assert "onerror=alert(1)>" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "\u202e" not in page
    assert "&lt;/script&gt;&lt;script&gt;" in page


def test_nothing_is_fetched() -> None:
    page = page_of(run_of("collatz"), title="collatz")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy[1]
    without_data = re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL)
    assert set(re.findall(r"https?://[^\s\"'`<]+", without_data)) == {"http://www.w3.org/2000/svg"}


def test_values_are_left_out_on_demand() -> None:
    debugger = run_of("collatz")
    with_values, without = (page_of(debugger, title="c", with_values=wanted) for wanted in (True, False))
    tables = ("values", "backs", "sparks", "nans")
    assert any(frame.get("values") for frame in data_of(with_values)["frames"])
    assert not any(frame.get(table) for frame in data_of(without)["frames"] for table in tables)
    assert "<code>if_even</code> was 1" in with_values
    assert "was 1" not in without
    assert '<details class="proof"><summary>the proof</summary><div><code>' in with_values
    assert "the proof" not in without
    assert any(change.get("hints") for change in data_of(with_values)["lines"])
    assert not any(change.get("hints") for change in data_of(without)["lines"])
    assert len(data_of(with_values)["matrices"]) == 1
    assert data_of(without)["matrices"] == [None]
    assert '<i class="then" title="iteration 1: then">' in without  # branches are no values
    assert "values of the run are left out" in without
    assert "7 iterations, then its condition became false" in without


def test_what_does_not_fit_is_thinned_and_the_page_says_so() -> None:
    found = sample("collatz")
    assert found is not None
    debugger = engine.Debugger(engine.read_model(found.model), [27])
    debugger.run()
    debugger.seek(501)
    whole = len(page_of(debugger, title="c", most_bytes=100 * MEGABYTE).encode())
    page = page_of(debugger, title="c", most_bytes=whole - 3000)
    data = data_of(page)
    assert len(page.encode()) <= whole - 3000
    assert data["steps"][data["at"]] == 501
    assert (data["steps"][0], data["steps"][-1]) == (0, debugger.steps)
    assert f"holds {len(data['steps']):,} of the {debugger.steps + 1:,} moments" in page
    with pytest.raises(BytesBound, match="allow more megabytes"):
        page_of(debugger, title="c", most_bytes=100_000)


@pytest.mark.parametrize("name", ["collatz", "branch_not_taken", "language_decoder", "hybrid_stack", "count_primes"])
def test_each_picture_shows_the_moments_as_the_app_does(name: str) -> None:
    """What is told of all parts together is, on each picture, what the overlay of that picture alone would be."""
    debugger = run_of(name)
    drawn = pictures(debugger.model, default_folding(debugger.model), "main")
    debugger.seek(debugger.steps * 2 // 3)
    for step in (0, debugger.steps // 3, debugger.steps // 2, debugger.cursor.step, debugger.steps):
        kept = moments(debugger, drawn, listing(debugger.plan), step, with_values=True, most=1)
        place = kept.steps.index(step)
        debugger.seek(step)
        for number, view in enumerate(drawn.views):
            shown = overlay_at(debugger, view, verdicts=loop_endings(debugger, view)).as_data()
            assert kept.spots[place][number] == (shown["next"], shown["current"])
            for table in ("values", "nans", "backs", "headers", "progress", "frames", "slices", "sparks", "nodes"):
                told, wanted = kept.overlays[place][table], shown[table]
                assert isinstance(told, dict)
                assert isinstance(wanted, dict)
                own = {id: told[id] for id in told if id in view.by_id}
                if table == "nodes" and shown["next"] in own:  # as page_pictures.js does
                    own[shown["next"]] = "failed" if own[shown["next"]] == "failed" else "current"
                assert own == wanted, (table, step, number)


def test_every_fold_that_is_seen_has_its_picture() -> None:
    drawn = pictures(run_of("collatz").model, default_folding(run_of("collatz").model), "main")
    assert drawn.complete
    folds = [{n.address for n in view.nodes if n.kind == "folded"} for view in drawn.views]
    for view, folded in zip(drawn.views, folds, strict=True):
        open_ = {one.address for one in view.clusters if one.foldable}
        for address in open_:
            assert any(address in other for other in folds), address
        for address in folded:
            assert any(one.address == address for other in drawn.views for one in other.clusters), address


def test_a_page_that_leaves_pictures_out_says_so() -> None:
    debugger = run_of("hybrid_stack")
    page = page_of(debugger, title="h")
    assert len(data_of(page)["pictures"]) == MOST_PICTURES
    assert f"it is drawn in {MOST_PICTURES} ways to fold it, others are left out" in page
    small = page_of(debugger, title="h", most_bytes=len(page.encode()) - 40_000)
    assert len(data_of(small)["pictures"]) < MOST_PICTURES


def test_the_command_writes_pages_of_models_and_of_saved_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = sample("collatz")
    assert found is not None
    write(tmp_path / "in.npz", {"0": np.array(3, np.int64)})
    target = str(tmp_path / "page.html")
    assert main(["page", str(found.model), "--inputs", str(tmp_path / "in.npz"), "-o", target, "--at", "main/while_not_one[2]"]) == 0
    assert "opens at step" in capsys.readouterr().out
    debugger = run_of("collatz")
    debugger.seek(31)
    engine.save(debugger, tmp_path / "run.loopscope")
    assert main(["page", str(tmp_path / "run.loopscope"), "-o", target]) == 0
    data = data_of(Path(target).read_text(encoding="utf-8"))
    assert data["steps"][data["at"]] == 31
    assert main(["page", str(tmp_path / "run.loopscope"), "-o", target, "--body", "main/while_not_one/body"]) == 0
    assert data_of(Path(target).read_text(encoding="utf-8"))["pictures"][0]["root"] == "main/while_not_one/body"
    assert main(["page", str(tmp_path / "run.loopscope"), "-o", target, "--body", "main/nowhere"]) == 2
    assert "no graph 'main/nowhere'" in capsys.readouterr().err
    assert main(["page", str(tmp_path / "run.loopscope"), "-o", str(tmp_path / "page.txt")]) == 2
    assert "does not end in .html" in capsys.readouterr().err


# -- in a real browser --------------------------------------------------------------------------------------------


@pytest.fixture
def offline(browser: Browser) -> Iterator[Page]:
    """A page without a network; an error in its scripts, or something that its policy forbids, fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True, color_scheme="dark")
    page = context.new_page()
    wrong: list[str] = []
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    yield page
    context.close()
    assert not wrong


def opened(page: Page, folder: Path, document: str) -> None:
    (folder / "page.html").write_text(document, encoding="utf-8")
    page.goto((folder / "page.html").as_uri())
    expect(page.locator("html[data-opened]")).to_be_attached(timeout=20_000)
    expect(page.locator("#canvas .box").first).to_be_visible()


def wires(page: Page, count: int) -> list[str]:
    """The values that stand on wires, once there are so many."""
    shown = page.locator("#canvas .chip.value.on .chip-text")
    expect(shown).to_have_count(count)
    return sorted(shown.all_text_contents())


@pytest.mark.browser
def test_a_page_steps_plays_and_slides_as_the_debugger(offline: Page, tmp_path: Path) -> None:
    debugger = run_of("collatz")
    debugger.seek(12)
    opened(offline, tmp_path, page_of(debugger, title="collatz", note="look"))
    view = pictures(debugger.model, default_folding(debugger.model), "main").views[0]
    place = offline.locator("#place")

    def agrees(step: int) -> None:
        debugger.seek(step)
        expect(place).to_contain_text(f"Step {step} of {debugger.steps}")
        overlay = overlay_at(debugger, view)
        expect(offline.locator("#canvas .canvas")).to_have_attribute("data-current", overlay.current)
        wanted = sorted(text for texts in overlay.values.values() for text in texts if text)
        assert wires(offline, len(wanted)) == wanted

    agrees(12)
    offline.keyboard.press("ArrowRight")
    agrees(13)
    offline.keyboard.press("ArrowLeft")
    offline.keyboard.press("ArrowLeft")
    agrees(11)
    for name, move in (("Over", debugger.step_over), ("Iteration »", debugger.next_iteration), ("«", debugger.previous_iteration)):
        debugger.seek(11)
        offline.keyboard.press("Home")
        expect(place).to_contain_text("Step 0 ")
        for _ in range(11):
            offline.keyboard.press("ArrowRight")
        expect(place).to_contain_text("Step 11 ")
        offline.get_by_role("button", name=name, exact=True).click()
        agrees(move().step)
    offline.get_by_role("button", name="End ⇥").click()
    agrees(debugger.steps)
    offline.keyboard.press("Home")
    agrees(0)
    offline.get_by_role("button", name="Play").click()
    expect(place).to_contain_text("Step 3 ", timeout=5000)
    offline.get_by_role("button", name="Pause").click()
    rail = offline.locator(".rail").first.bounding_box()
    assert rail is not None
    offline.mouse.click(rail["x"] + rail["width"] / 2, rail["y"] + rail["height"] / 2)
    agrees(debugger.steps // 2)
    offline.wait_for_timeout(3500)  # longer than the canvas waits for a word that confirms
    agrees(debugger.steps // 2)


@pytest.mark.browser
def test_a_row_of_the_table_leads_there_and_a_box_tells_its_value(offline: Page, tmp_path: Path) -> None:
    debugger = run_of("collatz")
    opened(offline, tmp_path, page_of(debugger, title="collatz"))
    offline.locator("tr[data-moment]").nth(2).click()
    debugger.seek("main/while_not_one[2]")
    expect(offline.locator("tr.now td").first).to_have_text("2")
    expect(offline.locator("#place")).to_contain_text("iteration 2")
    offline.locator("#canvas .box", has_text="start_at_all").first.click()
    expect(offline.locator("#chosen")).to_contain_text("start_at_all · true")
    expect(offline.locator("#canvas .canvas")).to_have_attribute("data-theme", "dark")
    offline.emulate_media(color_scheme="light")
    expect(offline.locator("#canvas .canvas")).to_have_attribute("data-theme", "light")


@pytest.mark.browser
def test_a_page_folds_and_opens_and_a_folded_loop_says_how_it_ended(offline: Page, tmp_path: Path) -> None:
    debugger = run_of("collatz")
    opened(offline, tmp_path, page_of(debugger, title="collatz"))
    canvas = offline.locator("#canvas")
    loop = canvas.locator('.head.loop [data-action="fold"]')
    boxes = canvas.locator(".box").count()
    offline.get_by_role("button", name="End ⇥").click()
    loop.click()
    folded = canvas.locator(".box.folded")
    expect(folded).to_have_count(1)
    assert canvas.locator(".box").count() < boxes
    expect(folded).to_contain_text("7 iterations, condition became")
    offline.keyboard.press("Home")
    for _ in range(30):
        offline.keyboard.press("ArrowRight")
    expect(offline.locator("#place")).to_contain_text("Step 30 ")
    expect(folded).to_have_class(re.compile("current"))
    expect(folded).to_contain_text("iteration 2")
    folded.locator('[data-action="unfold"]').click()
    expect(canvas.locator(".box")).to_have_count(boxes)
    debugger.seek(30)
    expect(canvas.locator(".box.current")).to_have_attribute("data-address", re.sub(r"\[\d+\]", "", debugger.cursor.address))
    for number, branch in enumerate(("then", "else"), 1):
        canvas.locator('[data-do="fit"]').click()
        canvas.locator(f'.head.{branch} [data-action="fold"]').click()
        expect(canvas.locator(".box.folded")).to_have_count(number)


@pytest.mark.browser
def test_code_matrix_and_tape_are_in_step_and_lead_to_moments(offline: Page, tmp_path: Path) -> None:
    debugger = run_of("collatz")
    opened(offline, tmp_path, page_of(debugger, title="collatz"))
    offline.locator("#code > summary").click()
    code = listing(debugger.plan)
    debugger.seek("main/while_not_one[2]/body/floor_mod")
    tape = offline.locator(".tape").first
    tape.locator("i").nth(2).click()
    expect(tape.locator("i.here")).to_have_attribute("title", "iteration 2: else")
    expect(offline.locator("#place")).to_contain_text("iteration 2")
    debugger.seek("main/while_not_one[2]")
    (line,) = code_moment(debugger, code, "")["current"]
    now = offline.locator("#code .row.now")
    expect(now).to_have_count(1)
    expect(now.locator("code")).to_have_text(code.lines[line].text)
    offline.locator(".matrix > summary").click()
    found = iteration_matrix(debugger, "main/while_not_one")
    row = next(k for k, one in enumerate(found.rows) if one.name == "floor_mod")
    chart = offline.locator(".matrix canvas")
    box = chart.bounding_box()
    assert box is not None
    # The last iteration; a lane and the gap below it have 25 pixels.
    chart.click(position={"x": box["width"] - 10, "y": 2 + 25 * row + 11})
    step = step_of_cell(debugger, found, found.rows[row], 6)
    expect(offline.locator("#place")).to_contain_text(f"Step {step} ")
    expect(offline.locator("#chosen")).to_contain_text("floor_mod")
    expect(offline.locator("#code .row.chosen code")).to_contain_text("floor_mod = ")
    offline.locator("#code .row", has_text="start_at_all = ").click()
    expect(offline.locator("#chosen")).to_contain_text("start_at_all")


@pytest.mark.browser
def test_hostile_names_do_nothing(offline: Page, tmp_path: Path) -> None:
    model = engine.read_model(hostile.write(tmp_path, "collatz"))
    debugger = engine.Debugger(model, [3])
    debugger.run()
    words = "\n".join(one for one in hostile.HOSTILE if len(one) < 100)
    opened(offline, tmp_path, page_of(debugger, title=words, note=words))
    offline.keyboard.press("ArrowRight")
    for one in offline.locator("details:not([open]) > summary").element_handles():
        one.click()
    offline.locator(".matrix canvas").first.hover()
    offline.locator("#canvas .box").first.hover()
    offline.locator('#canvas [data-do="fit"]').click()
    offline.locator('#canvas .head.loop [data-action="fold"]').click()
    expect(offline.locator("#canvas .box.folded").first).to_be_visible()
    assert offline.evaluate("() => window.hacked") is None
    assert offline.evaluate("() => document.querySelectorAll('script').length") == 3
    # The curves of tapes are pictures of ours.
    assert offline.locator('#said img:not([src^="data:image/svg+xml;base64,"]), header img, #code img').count() == 0
