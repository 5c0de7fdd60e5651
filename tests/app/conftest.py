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
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright
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
    """One profile for the pages of all tests, which keeps the compiled scripts of the app: a page
    opens with two thirds of the work.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield context
    context.close()


@pytest.fixture
def page(profile: BrowserContext) -> Iterator[Page]:
    """A page without anything that another test stored; an error in its scripts fails the test."""
    page = profile.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    with contextlib.suppress(Error):  # of a page that was closed or shows no document
        page.evaluate("localStorage.clear()")
    for opened in profile.pages:
        opened.close()
    profile.clear_cookies()
    profile.clear_permissions()
    assert not errors
