"""The documentation site as a reader uses it: links, sizes, search, and runs in frames."""

from __future__ import annotations

import functools
import gzip
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs import gallery, lesson_pages
from docs.__main__ import GENERATED, ROOT, build_pages
from docs.living_pages import FOLDER, commands, embedded, file_name, write_all
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.docs.test_docs import PAGES

KILOBYTE = 1024
SHOWN = "questions/runtime-loops.html"
"""The page whose run is built for these tests."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """All pages, the run of one of them, and the commands of all runs."""
    folder = tmp_path_factory.mktemp("site")
    written = build_pages(folder)
    frames = re.findall(r'<iframe src="[^"]*/([^"/]+)"', (folder / SHOWN).read_text("utf-8"))
    write_all([command for command in written if file_name(command) in frames], folder, ROOT)
    return folder, written


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server without a log."""

    def log_message(self, *words: object) -> None:
        return


@pytest.fixture(scope="module")
def address(site: tuple[Path, list[str]]) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site[0]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def context(browser: Browser, address: str) -> Iterator[BrowserContext]:
    """A profile that blocks and records requests to other hosts.

    Playwright's own scheme would replace the one that a frame takes from its page.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, color_scheme="null")
    foreign: list[str] = []

    def local(url: str) -> bool:
        return not url.startswith((f"{address}/", "blob:", "data:"))

    def refuse(route: Route) -> None:
        foreign.append(route.request.url)
        route.abort()

    context.route(local, refuse)
    yield context
    context.close()
    assert foreign == []


def test_a_block_becomes_a_frame_at_any_depth() -> None:
    page = "```living\nloopscope page sample_models/gcd/model.xml --inputs 'a=4 b=6'\n```"
    assert commands(page) == ["loopscope page sample_models/gcd/model.xml --inputs 'a=4 b=6'"]
    assert '<iframe src="living/gcd-a-4-b-6.html"' in embedded(page, 0)
    assert '<iframe src="../living/gcd-a-4-b-6.html"' in embedded(page, 1)


def test_two_runs_never_share_a_page(tmp_path: Path) -> None:
    run = "loopscope page sample_models/gcd/model.xml --inputs "
    with pytest.raises(ValueError, match="write the same page: change an option"):
        write_all([f"{run}a=1", f"{run}a-1"], tmp_path, ROOT)


def test_every_frame_and_picture_is_a_file(site: tuple[Path, list[str]]) -> None:
    folder, written = site
    runs = {f"{FOLDER}/{file_name(command)}" for command in written}
    assert len(runs) > 40
    for path in folder.rglob("*.html"):
        text = path.read_text("utf-8")
        for target in re.findall(r'<(?:iframe|img)[^>]* src="([^":]+)"', text):
            linked = (path.parent / target).resolve().relative_to(folder)
            assert linked.as_posix() in runs or (folder / linked).is_file(), (path, target)
    models = {command.split()[2] for command in written}
    assert [model for model in models if not (ROOT / model).is_file()] == []


def test_the_site_has_every_page(site: tuple[Path, list[str]]) -> None:
    """mkdocs and pdoc have built it without a warning, which is an error."""
    generated = (*GENERATED, *gallery.pages(), *lesson_pages.pages(), "api/loopscope.html")
    names = ("index.html", *(name.replace(".md", ".html") for name in (*PAGES, *generated)))
    assert [name for name in names if not (site[0] / name).is_file()] == []


@pytest.mark.parametrize("name", ["index.html", "gallery.html", SHOWN])
def test_a_page_loads_less_than_a_megabyte(name: str, site: tuple[Path, list[str]]) -> None:
    """Count compressed bytes, as a host of static files sends them, without the pictures."""
    folder = site[0]
    waiting, loaded = [folder / name], set[Path]()
    while waiting:
        path = waiting.pop()
        loaded.add(path)
        found = re.findall(
            r'<(?:script|iframe)[^>]* src="([^":?]+)"|rel="stylesheet" href="([^":?]+)"',
            path.read_text("utf-8") if path.suffix == ".html" else "",
        )
        linked = {(path.parent / "".join(pair)).resolve() for pair in found}
        waiting += [each for each in linked - loaded if each.is_file()]
    loaded |= {folder / "search" / "search_index.json"}
    size = sum(len(gzip.compress(path.read_bytes())) for path in loaded)
    assert 50 * KILOBYTE < size < KILOBYTE * KILOBYTE


@pytest.fixture(scope="module")
def reader(context: BrowserContext) -> Page:
    return context.new_page()


def test_a_run_steps_in_its_frame_and_follows_the_scheme_of_the_page(
    reader: Page, address: str
) -> None:
    reader.goto(f"{address}/{SHOWN}")
    reader.locator(".living").scroll_into_view_if_needed()
    frame = reader.frame_locator(".living iframe")
    expect(frame.locator("#canvas .box").first).to_be_visible()
    frame.get_by_role("button", name="Step ›").click()
    expect(frame.locator("#place")).to_contain_text("Step 1 of ")
    light = frame.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    reader.locator("label[for^=__palette]:visible").click()
    expect(frame.locator("body")).not_to_have_css("background-color", light)


WORDS = {
    "one-more-iteration": (
        "looping one more time",
        "loop runs one extra iteration",
        "openvino loop executes one extra iteration",
        "while loop runs once more after conversion",
        "tf.while_loop trip count off by one",
    ),
    "first-wrong-token": (
        "wrong onnx output",
        "ONNX and Torch inference outputs are not the same",
        "decoder does not match PyTorch token by token",
        "decoder generates different text after export",
        "onnxruntime output differs from pytorch after a few tokens",
    ),
    "longest-runs": (
        "decode loop can hang indefinitely",
        "extremely long repetitive inference",
        "infinite loop model never terminates",
        "inference time depends on input",
    ),
    "runtime-loops": (
        "unroll TensorIterator",
        "TensorIterator unrolling takes enormous time",
        "does openvino unroll loop",
        "LSTM loop slow inference",
    ),
    "runtime-faults": (
        "what runtimes get wrong about loops",
        "onnxruntime If branch wrong result",
    ),
    "first-nan": (
        "occasional NaN results during inference",
        "find out why a model outputs NaN",
        "first node generates NaN",
        "Inf in fp16 inference",
    ),
    "testing-loops": (
        "continuous integration export test",
        "github action",
        "number of iterations in pytest",
    ),
    "report-a-runtime-bug": (
        "minimal reproducer",
        "Exception from CPU Loop node",
        "how to report onnxruntime bug",
    ),
    "model-without-the-if": (
        "Unimplemented: node operation If",
        "If operators with constant condition don't get simplified",
        "Unsupported operator If",
        "onnx If node remove silero vad",
    ),
    "how-loops-differ": (
        "difference between Loop and Scan",
        "Scan outputs for onnx.Loop",
        "scan output concatenated axis shape",
        "loop zero iterations output shape",
    ),
}
"""Words of public threads, by the page that answers them."""
FIRST = 3


def test_the_search_finds_each_question_in_the_words_of_those_who_asked(
    reader: Page, address: str
) -> None:
    reader.goto(f"{address}/404.html")
    field = reader.locator(".md-search__input")
    wrong: dict[str, list[str]] = {}
    results = reader.locator(".md-search-result__item > a")
    for page, queries in WORDS.items():
        for query in queries:
            for text, count in (("", 0), (query, 1)):
                field.fill(text)
                field.press("End")  # the search listens to keys
                expect(reader.locator(".md-search-result__item:first-child")).to_have_count(count)
            links = results.evaluate_all("all => all.map(each => each.pathname)")
            pages = list(dict.fromkeys(Path(link).stem for link in links))
            if page not in pages[:FIRST]:
                wrong[query] = pages[:FIRST]
    assert wrong == {}
