"""How long the screens take: from a key press to the painted overlay, from a click on the page's address to the first picture.

Real chromium, real server, one step per key. Run it by hand: python tests/benchmarks/ui.py
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
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.app.conftest import CHROMIUM, FLAGS  # noqa: E402 - the folder above is not on the path of a script

STEPS = 60
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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "app.cli", "--no-browser", "--port", str(port)]
    server = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL)
    folder = Path(tempfile.mkdtemp())
    try:
        _wait(port)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            _open(browser.new_page(), port, "sample:if_add")  # warms the server
            models = {"count_primes, 51 nodes, 3 levels": "sample:count_primes", "chain of 1,000 nodes": str(_wide(folder, 1000))}
            for title, link in models.items():
                page = browser.new_page(viewport={"width": 1600, "height": 1000})
                seconds = _open(page, port, link)
                times = _steps(page)
                print(
                    f"{title}: first picture {seconds:.2f} s; key press to paint, median {statistics.median(times):.0f} ms, "
                    f"95th percentile {np.percentile(times, 95):.0f} ms, {len(times)} steps"
                )
                page.close()
            browser.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)
        shutil.rmtree(folder)
    return 0


def _wait(port: int) -> None:
    for _ in range(300):
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
        value = ops.add(value, np.float32(number), name=f"add_{number}") if number % 2 else ops.relu(value, name=f"relu_{number}")
    ov.save_model(ov.Model([value], [parameter], "chain"), folder / "chain.xml", compress_to_fp16=False)
    return folder / "chain.xml"


if __name__ == "__main__":
    raise SystemExit(main())
