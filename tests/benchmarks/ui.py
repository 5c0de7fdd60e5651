"""How long the screens take: from a key press to the painted overlay, to the first picture, between
frames while something moves.

Real chromium, real server, one step per key. Run it by hand: python -m tests.benchmarks.ui [words
of a line, to measure only those]
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from tests.app.conftest import CHROMIUM, FLAGS
from tests.app.serving import SOURCES
from tests.benchmarks.big_transformers import saved

ROOT = Path(__file__).resolve().parent.parent.parent

STEPS = 60
SECONDS = 2.0
"""That something is moved."""
NESTED = "sample:count_primes&set=up_to_30&step=400"
LATE = "sample:collatz&set=twenty_seven&step=1000"
FIRST_PICTURES, ABOVE_EMPTY_PAGE = 5, 0.8
"""Number of pictures, and the bar in seconds."""
BIG = {"2,700 nodes,": (38, 64), "15,000 nodes,": (212, 64), "700 MB,": (24, 800)}
"""Layers and channels; bars: pictures within 2, 3 and 2.5 seconds on a quiet machine."""
WATCHES = ("candidate", "limit - candidate", "max(abs(found))")
FRAMES = """() => {
  window.frames = [];
  const next = (now) => { window.frames.push(now); window.framing = requestAnimationFrame(next); };
  window.framing = requestAnimationFrame(next);
}"""
WATCH = """canvas => {
  window.painted = [];
  let pressed = 0;
  addEventListener("keydown", event => { if (event.key.startsWith("Arrow")) pressed = performance.now(); }, true);
  const changes = new MutationObserver(() => {
    if (!pressed) return;
    const begun = pressed;
    pressed = 0;
    requestAnimationFrame(() => {
      const after = new MessageChannel();  // its message comes when the frame has been painted
      after.port1.onmessage = () => window.painted.push(performance.now() - begun);
      after.port2.postMessage(0);
    });
  });
  changes.observe(canvas, { subtree: true, childList: true, attributes: true, attributeFilter: ["class", "data-current"] });
  // Steps inside a folded group change the words above the canvas only.
  changes.observe(document.querySelector(".st-key-place"), { subtree: true, childList: true, characterData: true });
}"""


def main() -> int:
    if CHROMIUM is None:
        print("there is no chromium here")
        return 1
    port = _free_port()
    command = [sys.executable, "-m", "loopscope_app.cli", "--no-browser", "--port", str(port)]
    server = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": SOURCES}, stdout=subprocess.DEVNULL
    )
    folder = Path(tempfile.mkdtemp())
    try:
        _wait(port)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            _open(browser.new_page(), port, "sample:if_add")  # warms the server
            wide = str(_wide(folder, 1000))
            models = {
                "51 nodes, 3 levels": NESTED,
                "51 nodes, code open": f"{NESTED}&tab=code",
                "51 nodes, matrix and code open": f"{NESTED}&strip=matrix&tab=code",
                "51 nodes, matrix and watches open": f"{NESTED}&strip=matrix&tab=setup",
                "37 nodes, iteration 110, iterations open": LATE,
                "37 nodes, iteration 110, matrix and code open": f"{LATE}&strip=matrix&tab=code",
                "chain of 1,000 nodes": wide,
            }
            big = {
                f"{title} transformer": partial(saved, folder, title.replace(" ", "_"), *size)
                for title, size in BIG.items()
            }
            chosen = {
                title: link
                for title, link in models.items()
                if all(word in title for word in sys.argv[1:])
            }
            for title, link in chosen.items():
                _report_steps(browser, port, title, link)
            for title, made in big.items():
                if all(word in title for word in sys.argv[1:]):
                    _report_opening(browser, port, title, str(made()))
            if not sys.argv[1:] or "first" in sys.argv[1:]:
                _report_first_picture(browser, port, folder)
            if not sys.argv[1:] or "frames" in sys.argv[1:]:
                _report_frames(browser, port, wide)
            browser.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)
        shutil.rmtree(folder)
    return 0


def _report_steps(browser: Browser, port: int, title: str, link: str) -> None:
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    seconds = _open(page, port, link)
    if "watches" in title:
        _watch(page)
    times = _steps(page)
    print(
        f"{title}: first picture {seconds:.2f} s; key press to paint, median {statistics.median(times):.0f} ms, "
        f"95th percentile {np.percentile(times, 95):.0f} ms, {len(times)} steps",
        flush=True,
    )
    page.close()


def _report_first_picture(browser: Browser, port: int, folder: Path) -> None:
    """The picture of a model with 51 nodes beside the text of an empty Streamlit page, in turns."""
    seconds: list[tuple[float, float]] = []
    with _empty_page(folder) as address:
        for _ in range(FIRST_PICTURES + 1):  # the first one warms the servers
            page = browser.new_page(viewport={"width": 1600, "height": 1000})
            begun = time.perf_counter()
            page.goto(address)
            page.get_by_text("ready").wait_for(timeout=60_000)
            empty = time.perf_counter() - begun
            page.close()
            page = browser.new_page(viewport={"width": 1600, "height": 1000})
            seconds.append((empty, _open(page, port, NESTED)))
            page.close()
    empty, picture = (statistics.median(column) for column in zip(*seconds[1:], strict=True))
    print(
        f"first picture {picture:.2f} s, {picture - empty:.2f} s above an empty page; "
        f"bar {ABOVE_EMPTY_PAGE} s",
        flush=True,
    )


@contextmanager
def _empty_page(folder: Path) -> Iterator[str]:
    """Serve a Streamlit page that only has a text; its address."""
    script = folder / "empty.py"
    script.write_text("import streamlit\nstreamlit.write('ready')\n")
    port = _free_port()
    options = {"port": port, "headless": "true", "fileWatcherType": "none"}
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    command += [f"--server.{name}={value}" for name, value in options.items()]
    command += ["--browser.gatherUsageStats=false", "--browser.serverAddress=127.0.0.1"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _report_opening(browser: Browser, port: int, title: str, path: str) -> None:
    """The picture of a model that nobody has opened before, and when its run can be stepped."""
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    begun = time.perf_counter()
    seconds = _open(page, port, path)
    page.locator(".st-key-transport").wait_for(timeout=60_000)
    ready = time.perf_counter() - begun
    boxes = page.locator(".st-key-canvas_graph .box").count()
    print(
        f"{title}: first picture {seconds:.2f} s with {boxes} boxes, ready to step {ready:.2f} s",
        flush=True,
    )
    page.close()


def _watch(page: Page) -> None:
    for number, expression in enumerate(WATCHES, 1):
        page.get_by_label("Watch", exact=True).fill(expression)
        page.keyboard.press("Enter")
        page.locator("[class*=st-key-watch_remove]").nth(number - 1).wait_for()
    page.locator(".st-key-canvas_graph .canvas").focus()


def _report_frames(browser: Browser, port: int, wide: str) -> None:
    """Playing and sliding through a run, then dragging and zooming a picture with a thousand
    boxes.
    """
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    _open(page, port, f"{LATE}&strip=matrix")
    canvas = page.locator(".st-key-canvas_graph .canvas")
    page.keyboard.press("Home")
    canvas.locator(".speed").select_option("8")
    page.wait_for_timeout(1000)
    begun = int(canvas.get_attribute("data-step") or 0)
    page.keyboard.press("p")
    _frames(page, "playing at speed 8", lambda: page.wait_for_timeout(SECONDS * 1000))
    page.keyboard.press("p")
    print(f"  {(int(canvas.get_attribute('data-step') or 0) - begun) / SECONDS:.0f} steps a second")
    _drag(page, canvas.locator(".rail").first, "sliding along the run", 0.02, 0.98, 0.5)
    _open(page, port, wide)
    _unfold_all(page, canvas)
    print(f"{canvas.locator('.box').count():,} boxes on the canvas")
    page.wait_for_timeout(1000)
    _drag(page, canvas, "dragging the picture", 0.7, 0.2, 0.6)
    _frames(page, "zooming the picture", lambda: _wheel(page))
    page.close()


def _unfold_all(page: Page, canvas: Locator) -> None:
    """Group by group; there may be groups inside one, so the picture is waited for, not how many
    groups are left.
    """
    while canvas.locator(".box.folded").count():
        before = canvas.get_attribute("data-hash")
        canvas.locator(".box.folded [data-action=unfold]").first.dispatch_event("click")
        shown = [canvas.element_handle(), before]
        page.wait_for_function(
            "([canvas, before]) => canvas.dataset.hash !== before", arg=shown, timeout=60_000
        )


def _drag(page: Page, what: Locator, title: str, begin: float, end: float, height: float) -> None:
    """From one share of its width to another, and back, as fast as a hand is."""
    box = what.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] * height
    page.mouse.move(box["x"] + box["width"] * begin, y)
    page.mouse.down()
    there, back = box["x"] + box["width"] * end, box["x"] + box["width"] * begin

    def there_and_back() -> None:
        for x in (there, back):
            page.mouse.move(x, y, steps=60)

    _frames(page, title, there_and_back)
    page.mouse.up()


def _wheel(page: Page) -> None:
    for turn in (-120, 120):
        for _ in range(30):
            page.mouse.wheel(0, turn)
            page.wait_for_timeout(16)


def _frames(page: Page, title: str, move: Callable[[], object]) -> None:
    page.evaluate(FRAMES)
    move()
    stamps = np.diff(
        page.evaluate("() => { cancelAnimationFrame(window.framing); return window.frames; }")
    )
    rate = 1000 / statistics.mean(stamps.tolist())
    print(
        f"{title}: {rate:.0f} frames a second, 95th percentile {np.percentile(stamps, 95):.0f} ms between two",
        flush=True,
    )


def _wait(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)


def _open(page: Page, port: int, link: str) -> float:
    begun = time.perf_counter()
    page.goto(f"http://127.0.0.1:{port}/?model={link}")
    page.locator(".st-key-canvas_graph .box").first.wait_for(timeout=60_000)
    return time.perf_counter() - begun


def _steps(page: Page) -> list[float]:
    page.wait_for_timeout(1500)
    page.locator(".st-key-place").wait_for()
    page.locator(".st-key-canvas_graph .canvas").evaluate(WATCH)
    for step in range(1, STEPS + 1):
        page.keyboard.press("ArrowRight")
        page.wait_for_function("count => window.painted.length >= count", arg=step, timeout=20_000)
        page.wait_for_timeout(60)
    times: list[float] = page.evaluate("window.painted")
    return times


def _wide(folder: Path, nodes: int) -> Path:
    """A chain of so many additions."""
    import openvino as ov
    from openvino import opset15 as ops

    value = parameter = ops.parameter([4], np.float32, name="x")
    for number in range(nodes):
        value = (
            ops.add(value, np.float32(number), name=f"add_{number}")
            if number % 2
            else ops.relu(value, name=f"relu_{number}")
        )
    ov.save_model(
        ov.Model([value], [parameter], "chain"), folder / "chain.xml", compress_to_fp16=False
    )
    return folder / "chain.xml"


if __name__ == "__main__":
    raise SystemExit(main())
