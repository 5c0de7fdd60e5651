"""The app under AppTest, and in a real chromium against a real server."""

from __future__ import annotations

import contextlib
import ctypes.util
import functools
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from loopscope_app.state.launch import LAUNCH
from tests.app.browsing import LONG
from tests.app.serving import ROOT, SOURCES, serving

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
VIEWPORT: ViewportSize = {"width": 1280, "height": 800}
"""The size of a window unless a test sets another."""


@pytest.fixture
def opened() -> Callable[..., AppTest]:
    """The app with a page address, as a first visit."""

    config.set_option("server.address", "127.0.0.1")

    def visit(**address: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app" / "loopscope_app" / "main.py"), default_timeout=90)
        for name, text in address.items():
            app.query_params[name] = text
        app.run()
        assert not app.exception, app.exception
        return app

    return visit


@pytest.fixture(autouse=True, scope="session")
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the app remembers of its user lies apart from what it remembers of whoever runs the
    tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _launch_options() -> Iterator[None]:
    """Restore the start options that a test of the command line sets for the rest of the process.

    Otherwise each model that a later test opens is compared with its runtime in the background.
    """
    before = [getattr(LAUNCH, option.name) for option in fields(LAUNCH)]
    yield
    for option, value in zip(fields(LAUNCH), before, strict=True):
        setattr(LAUNCH, option.name, value)


@pytest.fixture(autouse=True, scope="session")
def _one_scan_for_components() -> Iterator[None]:
    """Search the installed packages for Streamlit components once, not for every ``AppTest``.

    The search reads the metadata of all packages and takes half of the time of such a test.
    """
    with pytest.MonkeyPatch.context() as patch:
        scan = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        yield


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a real server, started as a user starts it.

    It leaves out the comparison with the runtime, which takes seconds of each opened model.
    """
    command = [sys.executable, "-m", "loopscope_app.cli", "--no-agreement"]
    with serving(
        command, folder=ROOT, environment={**os.environ, "PYTHONPATH": SOURCES}
    ) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    leave_out = pytest.fail if os.environ.get("CI") else pytest.skip
    if CHROMIUM is None:
        leave_out("there is no chromium here")
    if sys.platform == "linux" and ctypes.util.find_library("atomic") is None:
        leave_out(
            "libatomic.so.1, which the node of Playwright's wheel needs, is not here (Debian: libatomic1)"
        )
    expect.set_options(timeout=LONG)  # a busy machine is slow, not wrong
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """Yield the profile of all tests' pages, which stores the compiled scripts of the app."""
    context = browser.new_context(viewport=VIEWPORT)
    context.set_default_timeout(LONG)
    yield context
    context.close()


@pytest.fixture(scope="session")
def shared_tab(profile: BrowserContext) -> list[Page]:
    """Return the list of the tab that tests share; it is empty until one opens it.

    A page takes 2.5 seconds of processor time to open in a tab that exists, and 3.9 in a new one.
    """
    return []


@pytest.fixture
def page(profile: BrowserContext, shared_tab: list[Page]) -> Iterator[Page]:
    """Yield a page without anything that another test stored, in the tab that tests share.

    An error in its scripts fails the test.
    """
    if not shared_tab or shared_tab[0].is_closed():
        shared_tab[:] = [profile.new_page()]
    [page] = shared_tab
    with _without_script_errors(page):
        yield page
        for other in profile.pages:
            if other is not page:
                other.close()
        _forget(page)


@pytest.fixture
def own_page(profile: BrowserContext) -> Iterator[Page]:
    """Yield a page in a new tab, for tests that install scripts which stay in their tab."""
    page = profile.new_page()
    with _without_script_errors(page):
        yield page
        _forget(page)
        page.close()


@contextlib.contextmanager
def _without_script_errors(page: Page) -> Iterator[None]:
    errors: list[str] = []

    def note(error: Error) -> None:
        errors.append(str(error))

    page.on("pageerror", note)
    yield
    page.remove_listener("pageerror", note)
    assert not errors


def _forget(page: Page) -> None:
    """Delete what the page stored, and leave its tab as a new one."""
    profile = page.context
    profile.clear_cookies()
    profile.clear_permissions()
    if page.is_closed():
        return
    with contextlib.suppress(Error):  # of a page that shows no document
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.goto("about:blank")
    page.mouse.move(0, 0)
    page.set_viewport_size(VIEWPORT)
    page.emulate_media(color_scheme="light")
