"""Takes the pictures of the README and of the gallery's cards, light and dark: python -m
tests.screenshots [sample ...]
"""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from loopscope_samples import FOLDER, Sample, samples
from tests.app.conftest import CHROMIUM, FLAGS
from tests.app.serving import SOURCES

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "tests" / "pictures"
CARD = (600, 340)
WINDOW = (1540, 943)
"""Gives the canvas the proportions of a card."""
FRAME = """(canvas, css) => {
  canvas.append(Object.assign(document.createElement("style"), { textContent: css }));
  const { camera } = globalThis[Symbol.for("loopscope.canvas")].canvases.get("canvas_graph");
  camera.fit();
  const { x, k } = camera, least = 0.9, middle = canvas.clientWidth / 2;
  // What is too tall to be read as a whole is shown from its top.
  if (k < least) camera.set(middle - ((middle - x) / k) * least, 8, least);
  camera.place();
}"""
BARE = ".tools, .overview, .legend, .notice, .bar-of-time { display: none !important; } .stage { bottom: 0 !important; }"


def main() -> int:
    if CHROMIUM is None:
        print("there is no chromium here")
        return 1
    wanted = set(sys.argv[1:])
    with served() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for one in samples():
            if not wanted or one.name in wanted:
                for scheme in ("light", "dark"):
                    card(browser, url, one, scheme)
        if not wanted or "learn" in wanted:
            learn(browser, url)
        if not wanted or "readme" in wanted:
            readme(browser, url)
        if not wanted or "what-if" in wanted:
            what_if(browser, url)
        if not wanted or "compare" in wanted:
            compare(browser, url)
        browser.close()
    return 0


@contextmanager
def served() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "loopscope_app.cli", "--no-browser", "--port", str(port)]
    with tempfile.TemporaryDirectory() as state:  # what its user has opened is nobody else's
        own = {**os.environ, "PYTHONPATH": SOURCES, "XDG_STATE_HOME": state}
        server = subprocess.Popen(command, cwd=ROOT, env=own, stdout=subprocess.DEVNULL)
        try:
            time.sleep(4)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(20)


def opened(browser: Browser, url: str, address: str, scheme: str, size: tuple[int, int]) -> Page:
    page = browser.new_page(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page.goto(f"{url}/?{address}")
    page.locator(".st-key-canvas_graph .box").first.wait_for(timeout=60_000)
    page.wait_for_timeout(900)
    return page


def card(browser: Browser, url: str, one: Sample, scheme: str) -> None:
    """The sample's picture some steps into its run, without the canvas's own tools."""
    page = opened(browser, url, f"model=sample:{one.name}", scheme, WINDOW)
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
        page.wait_for_timeout(250)
    canvas = page.locator(".st-key-canvas_graph .canvas")
    canvas.evaluate(FRAME, BARE)
    page.mouse.move(5, 5)
    page.wait_for_timeout(500)
    picture = Image.open(io.BytesIO(canvas.screenshot())).convert("RGB")
    whole = picture.crop((2, 2, picture.width - 2, picture.height - 2)).resize(
        CARD, Image.Resampling.LANCZOS
    )
    save(whole, FOLDER / "pictures" / f"{one.name}-{scheme}.png")
    page.close()
    print(one.name, scheme)


def readme(browser: Browser, url: str) -> None:
    for scheme in ("light", "dark"):
        page = opened(browser, url, "model=sample:collatz&set=seventeen", scheme, (1600, 1000))
        for key in ("End", *["Shift+ArrowLeft"] * 6, *["ArrowRight"] * 4):
            page.keyboard.press(key)
            page.wait_for_timeout(250)
        page.wait_for_timeout(900)
        save(
            Image.open(io.BytesIO(page.screenshot())).convert("RGB"),
            PICTURES / f"debugger-{scheme}.png",
        )
        page.close()
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    page.goto(url)
    page.get_by_text("Samples").first.wait_for(timeout=60_000)
    photograph(page, "gallery-light")


def what_if(browser: Browser, url: str) -> None:
    """The run of the first aha, had a number been taken for even in its third iteration."""
    page = opened(browser, url, "model=sample:collatz&step=24", "light", (1440, 900))
    page.get_by_role("button", name="What if …").click()
    page.get_by_role("button", name="Run from here").click()
    page.locator(".st-key-what_if").get_by_text("instead of").wait_for()
    photograph(page, "what-if-light")


def compare(browser: Browser, url: str) -> None:
    """The first value that is another one in OpenVINO, and the moment at which it is there."""
    page = opened(browser, url, "model=sample:swap&step=9999&lens=compare", "light", (1440, 860))
    page.locator(".st-key-compare_with").click()
    page.get_by_text("the same run in OpenVINO").click()
    page.locator(".st-key-compare_run button").click()
    page.locator(".st-key-against .line").click(timeout=60_000)
    page.locator(".crumbs").get_by_text("iteration 1 of 3").wait_for()
    photograph(page, "compare-light")


def learn(browser: Browser, url: str) -> None:
    """A lesson after a prediction that was off by one, at the moment that proves it."""
    page = opened(browser, url, "lesson=for-with-condition&set=goal_first", "light", (1440, 900))
    card = page.locator(".st-key-prediction")
    card.get_by_text("its condition became false", exact=True).click()
    card.get_by_role("textbox").fill("5")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="See keep_going decide").click()
    photograph(page, "learn-light")


def photograph(page: Page, name: str) -> None:
    """The whole page, at rest and with the mouse out of the way, for the README."""
    page.mouse.move(5, 5)
    page.wait_for_timeout(1500)
    save(Image.open(io.BytesIO(page.screenshot())).convert("RGB"), PICTURES / f"{name}.png")
    page.close()


def save(picture: Image.Image, path: Path) -> None:
    """As a small file: 256 colours are enough for drawings."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


if __name__ == "__main__":
    raise SystemExit(main())
