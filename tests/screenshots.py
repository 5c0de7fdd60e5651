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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from PIL import Image, ImageOps
from playwright.sync_api import Browser, Page, sync_playwright

from loopscope_samples import FOLDER, Sample, SampleTrace, sample_traces, samples
from tests.app.accessibility import change_theme
from tests.app.conftest import CHROMIUM, FLAGS
from tests.app.serving import SOURCES

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "tests" / "pictures"
CARD = (600, 340)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WINDOW = (1495, 666)
"""Size of the window in which the canvas has the proportions of a card."""
FRAME = """async (canvas, css) => {
  canvas.append(Object.assign(document.createElement("style"), { textContent: css }));
  await new Promise((resized) => setTimeout(resized, 300)); // the canvas is higher without its strip
  const { camera } = globalThis[Symbol.for("loopscope.canvas")].canvases.get("canvas_graph");
  camera.fit();
  const { x, k } = camera, least = 0.9, middle = canvas.clientWidth / 2;
  // What is too tall to be read as a whole is shown from its top.
  if (k < least) camera.set(middle - ((middle - x) / k) * least, 8, least);
  camera.place();
}"""
BARE = ".tools, .overview, .legend, .notice, .bar-of-time { display: none !important; } .stage { bottom: 0 !important; --canvas-top: 4; }"


ABOVE = ".divider, .st-key-corner, .st-key-controls, .st-key-told, .st-key-strip_handle { display: none !important; }"
"""Hides what the page draws over the canvas."""


def main() -> int:
    if CHROMIUM is None:
        print("there is no chromium here")
        return 1
    wanted = set(sys.argv[1:])
    with served() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        entries: list[Sample | SampleTrace] = [*samples(), *sample_traces()]
        page = window(browser, WINDOW)
        page.goto(url)
        for one in entries:
            if not wanted or one.name in wanted:
                cards(page, url, one)
        if not wanted or "readme" in wanted:
            readme(browser, url)
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
            wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(20)


def wait_for(port: int, seconds: float = 60) -> None:
    """Return when the server accepts connections."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.2)


def window(browser: Browser, size: tuple[int, int]) -> Page:
    return browser.new_page(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="light",
        reduced_motion="reduce",
    )


def show(page: Page, address: str) -> None:
    page.goto(address)
    page.locator(".st-key-canvas_graph .box").first.wait_for(timeout=60_000)
    page.wait_for_timeout(900)


def cards(page: Page, url: str, one: Sample | SampleTrace) -> None:
    """Save the sample's pictures some steps into its run, without the canvas's own tools."""
    change_theme(page, "light")
    show(page, f"{url}/?model=sample:{one.name}")
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
        page.wait_for_timeout(250)
    page.add_style_tag(content=ABOVE)
    canvas = page.locator(".st-key-canvas_graph .canvas")
    canvas.evaluate(FRAME, BARE)
    page.mouse.move(5, 5)
    for scheme in SCHEMES:
        change_theme(page, scheme)
        page.wait_for_timeout(500)
        picture = Image.open(io.BytesIO(canvas.screenshot())).convert("RGB")
        inner = picture.crop((2, 2, picture.width - 2, picture.height - 2))
        whole = ImageOps.fit(inner, CARD, Image.Resampling.LANCZOS)
        save(whole, FOLDER / "pictures" / f"{one.name}-{scheme}.png")
    print(one.name)


def readme(browser: Browser, url: str) -> None:
    """The first sample after its run, with the verdict and the condition that decided."""
    page = window(browser, (1440, 900))
    show(page, f"{url}/?model=sample:collatz")
    page.keyboard.press("End")
    page.locator(".st-key-dock").get_by_text("stopped after 7 iterations").wait_for()
    page.mouse.move(5, 5)
    page.wait_for_timeout(4000)
    save(Image.open(io.BytesIO(page.screenshot())).convert("RGB"), PICTURES / "debugger-light.png")
    page.close()


def save(picture: Image.Image, path: Path) -> None:
    """As a small file: 256 colours are enough for drawings."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


if __name__ == "__main__":
    raise SystemExit(main())
