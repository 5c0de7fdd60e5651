"""How large pages of runs are, and how long after a double click their first picture is there, in a
real chromium, from disk.

Run it by hand: python -m tests.benchmarks.page [MODEL.onnx IN.npz [BODY]]; without words of
collatz, count_primes and hybrid_stack.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import loopscope
from loopscope_app.page import page_of
from loopscope_samples import sample
from tests.app.conftest import CHROMIUM, FLAGS

SAMPLES = ("collatz", "count_primes", "hybrid_stack")
TIMES = 5


def main(words: list[str]) -> None:
    if words:
        with np.load(words[1], allow_pickle=False) as arrays:
            given = dict(arrays)
        print(
            measured(
                Path(words[0]).name,
                loopscope.read_model(words[0]),
                given,
                words[2] if len(words) > 2 else "main",
            )
        )
        return
    for name in SAMPLES:
        found = sample(name)
        assert found is not None
        print(
            measured(
                name, loopscope.read_model(found.model), next(iter(found.sets)).arrays(), "main"
            )
        )


def measured(name: str, model: loopscope.Model, given: Mapping[str, np.ndarray], body: str) -> str:
    """One line: steps, size, seconds to write, first picture, and the processor's time for that
    of all of chromium's processes.
    """
    debugger = loopscope.Debugger(model, given)
    debugger.run()
    debugger.seek(0)
    begun = time.perf_counter()
    page = page_of(debugger, title=name, root=body)
    wrote = time.perf_counter() - begun
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page, encoding="utf-8")
        pictures, busy = zip(*(first_picture(path) for _ in range(TIMES)), strict=True)
    size = (
        f"{len(page.encode()) / 2**20:.2f} MB, {debugger.steps:,} steps, written in {wrote:.1f} s"
    )
    shown = (
        f"first picture after {statistics.median(pictures):.0f} ms (fastest {min(pictures):.0f})"
    )
    return f"{name} {body}: {size}; {shown}, {statistics.median(busy):.1f} s of the processor"


def first_picture(path: Path) -> tuple[float, float]:
    """Milliseconds from the navigation to the picture, and seconds of the processor until then,
    in a browser of its own.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True).new_page()
        before = processor_seconds()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-opened]", state="attached", timeout=60_000)
        busy = processor_seconds() - before
        milliseconds = float(page.evaluate("document.documentElement.dataset.opened"))
        browser.close()
    return milliseconds, busy


def processor_seconds() -> float:
    """Of all processes of chromium that this one began, as Linux counts them."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = stat.read_text().split(" (", 1)
        except OSError:
            continue  # it has ended
        facts = rest.rpartition(") ")[2].split()
        parents[int(number)] = int(facts[1])
        spent[int(number)] = (int(facts[11]) + int(facts[12])) / 100
    inside = {int(Path("/proc/self").readlink().name)}
    while more := {one for one, parent in parents.items() if parent in inside} - inside:
        inside |= more
    return sum(spent[one] for one in inside)


if __name__ == "__main__":
    main(sys.argv[1:])
