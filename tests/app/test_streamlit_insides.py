"""What Loopscope needs of Streamlit's insides is there, in the version that is installed; a new
one that changes them fails here.
"""

from __future__ import annotations

import re
import socket
import tomllib
from importlib.metadata import version

import pytest
from playwright.sync_api import Page, expect
from streamlit.web.server.starlette import starlette_server

from loopscope_app import streamlit_insides
from loopscope_app.actions.session_end import ClosedSessions
from loopscope_app.streamlit_insides import StreamlitChanged, keep_closed_sessions_in, send_at_once
from tests.app.browsing import LONG, open_sample
from tests.app.serving import ROOT


def test_the_newest_streamlit_that_is_asked_for_is_the_one_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (asked,) = (one for one in project["project"]["dependencies"] if one.startswith("streamlit"))
    major, minor = (int(part) for part in version("streamlit").split(".")[:2])
    assert asked.endswith(f",<{major}.{minor + 1}")


def test_a_server_sends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starlette_server, "_bind_socket", starlette_server._bind_socket)
    send_at_once()
    with starlette_server._bind_socket("127.0.0.1", 0, 1) as bound:
        assert bound.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_another_way_to_bind_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(starlette_server, "_bind_socket")
    with pytest.raises(StreamlitChanged, match=r"has no starlette_server\._bind_socket"):
        send_at_once()


def test_another_place_of_closed_sessions_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.runtime.get_instance", object)
    with pytest.raises(StreamlitChanged, match=r"has no Runtime\._session_mgr"):
        keep_closed_sessions_in(ClosedSessions(1.0))


def test_nothing_else_of_the_app_reaches_inside() -> None:
    inside = re.compile(
        r"\b(starlette_server|_session_mgr|_session_storage|_bind_socket|WebsocketSessionManager)\b"
    )
    here = f"app/{streamlit_insides.__name__.replace('.', '/')}.py"
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "app" / "loopscope_app").rglob("*.py")
        if inside.search(path.read_text(encoding="utf-8"))
    }
    assert found == {here}
    page = re.compile(r"st-key-|data-test")
    scripts = [
        path
        for path in (ROOT / "app" / "loopscope_app").rglob("*.js")
        if page.search(path.read_text(encoding="utf-8"))
    ]
    assert [path.name for path in scripts] == ["streamlit.js"]


@pytest.mark.browser
def test_a_page_has_what_the_canvas_looks_for(page: Page, server: str) -> None:
    """Everything that ``canvas/assets/streamlit.js`` names."""
    canvas = open_sample(page, server, "collatz", step="30")
    expect(canvas).to_have_attribute("data-step", "30", timeout=LONG)
    expect(page.locator("[data-test-script-state]")).to_have_attribute(
        "data-test-script-state", "notRunning", timeout=LONG
    )
    for move in ("restart", "back", "step", "next", "run"):
        expect(
            page.locator(f".st-key-transport .st-key-transport_{move} button").first
        ).to_be_attached()
    expect(page.locator(".st-key-canvas .st-key-corner").first).to_be_attached()
    found = canvas.evaluate("""canvas => ({
        inside: Boolean(canvas.getRootNode().host ? canvas.getRootNode().host.closest('.st-key-canvas') : canvas.closest('.st-key-canvas')),
        background: getComputedStyle(canvas).getPropertyValue('--st-background-color').trim(),
    })""")
    assert found["inside"]
    assert re.fullmatch(r"#[0-9a-f]{6}|rgb.*", found["background"])


@pytest.mark.browser
def test_the_state_of_the_script_tells_when_python_draws(page: Page, server: str) -> None:
    canvas = open_sample(page, server, "collatz", step="30")
    expect(canvas).to_have_attribute("data-step", "30", timeout=LONG)
    page.wait_for_timeout(1500)
    page.evaluate("""() => {
        const app = document.querySelector('[data-test-script-state]');
        window.states = [];
        new MutationObserver(() => window.states.push(app.dataset.testScriptState)).observe(app, { attributes: true });
    }""")
    canvas.locator('.box[data-address="main/number"]').dispatch_event("click")
    page.wait_for_function(
        "window.states.includes('running') && window.states.at(-1) === 'notRunning'", timeout=LONG
    )
