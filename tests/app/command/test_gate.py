"""Whom the server answers, with which headers, how long it waits, and that it sends nothing
elsewhere.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from loopscope.read import conversion_process
from loopscope_app import streamlit_insides
from loopscope_app.cli import main
from loopscope_app.command.gate import Visitors, visitors
from loopscope_app.streamlit_insides import StreamlitChanged
from tests.app.browsing import open_sample
from tests.app.serving import ROOT, SOURCES, serving
from tests.app.visitor import Visitor

LOCAL = visitors(server=False, host_names=())
SERVER = visitors(server=True, host_names=["Loops.example."])


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
@pytest.mark.parametrize("port", ["", ":80", ":8501", ":9"])
@pytest.mark.parametrize("answers", [LOCAL, SERVER])
def test_this_machine_is_reached_at_any_port(answers: Visitors, name: str, port: str) -> None:
    assert answers.refusal([name + port], []) == ""
    assert answers.refusal([name.upper() + port], [f"http://{name}{port}"]) == ""


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "evil.example:8501",
            "127.0.0.1.evil.example",
            "localhost.evil.example:8501",
            "10.0.0.5:8501",
        ),
        *(
            "",
            ":8501",
            "a@localhost",
            "localhost@evil.example",
            "localhost/evil.example",
            "localhost:x",
            "[::1",
            "0.0.0.0",
        ),
        *(
            "localhost:99999",
            "localhost?x",
            "localhost#x",
            "127.0.0.1,evil.example",
            "\\evil.example",
            "2130706433",
        ),
    ],
)
def test_another_host_is_refused(host: str) -> None:
    assert "is not a name of this server: use localhost" in LOCAL.refusal([host], [])


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "http://evil.example",
            "http://evil.example:8501",
            "https://localhost.evil.example",
            "null",
            "",
            "file://",
        ),
        *(
            "http://localhost:3000",
            "http://localhost",
            "http://127.0.0.1:8501",
            "https://localhost",
            "http://localhost:x",
        ),
        *(
            "chrome-extension://abc",
            "http://localhost@evil.example:8501",
            "http://x@localhost:8501",
        ),
    ],
)
def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    assert "belongs to another origin" in LOCAL.refusal(["localhost:8501"], [origin])


@pytest.mark.parametrize(
    ("hosts", "origins"),
    [([], []), (["localhost", "localhost"], []), (["localhost"], ["http://localhost"] * 2)],
)
def test_headers_that_contradict_are_refused(hosts: list[str], origins: list[str]) -> None:
    assert LOCAL.refusal(hosts, origins) == "expected one Host header and at most one Origin header"


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("loops.example", "https://loops.example"),
        ("127.0.0.1:8501", "https://loops.example"),
        ("LOOPS.example:8501", "http://loops.example:8501"),
        ("10.0.0.5:8501", "http://10.0.0.5:8501"),
        (f"{socket.gethostname()}:8501", ""),
    ],
)
def test_a_server_answers_to_its_names(host: str, origin: str) -> None:
    assert SERVER.refusal([host], [origin] if origin else []) == ""


@pytest.mark.parametrize(
    ("host", "origin"), [("evil.example", ""), ("10.0.0.5:8501", "http://10.0.0.6:8501")]
)
def test_a_server_refuses_other_names(host: str, origin: str) -> None:
    assert SERVER.refusal([host], [origin] if origin else [])
    assert "start the server with --host-name NAME" in SERVER.refusal(["evil.example"], [])


def test_a_name_without_a_server_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--no-browser", "--host-name", "loops.example"]) == 2
    assert "expected --server" in capsys.readouterr().err


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server without a network, and the file with its attempts to use one."""
    log = tmp_path_factory.mktemp("offline") / "attempts.txt"
    log.touch()
    home = tmp_path_factory.mktemp("home")
    (home / ".streamlit").mkdir()
    (home / ".streamlit" / "config.toml").write_text(
        "[browser]\ngatherUsageStats = true\n", encoding="utf-8"
    )
    command = [sys.executable, "-m", "tests.app.offline_server", str(log)]
    with serving(
        command, folder=ROOT, environment={**os.environ, "PYTHONPATH": SOURCES, "HOME": str(home)}
    ) as address:
        yield address, log


def _answer(address: str, path: str = "/", **headers: str) -> tuple[int, Mapping[str, str], str]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    try:
        connection.putrequest("GET", path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        return (
            response.status,
            dict(response.getheaders()),
            response.read().decode("utf-8", "replace"),
        )
    finally:
        connection.close()


def _handshake(address: str, origin: str) -> int:
    """The status of the answer: 101 if the socket was opened."""
    try:
        with connect(
            f"{address.replace('http', 'ws', 1)}/_stcore/stream",
            origin=Origin(origin),
            subprotocols=[Subprotocol("streamlit")],
            compression=None,
        ):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


@pytest.mark.parametrize(
    "path", ["/", "/_stcore/health", "/_stcore/host-config", "/media/x", "/nothing/there.js"]
)
def test_every_answer_forbids_frames_and_other_hosts(offline: tuple[str, Path], path: str) -> None:
    address, log = offline
    for headers, expected in (
        ({}, (200, 404)),
        ({"Host": "evil.example:8501"}, (403,)),
        ({"Origin": "http://evil.example"}, (403,)),
    ):
        status, said, body = _answer(address, path, **headers)
        assert status in expected
        told = {name.lower(): value for name, value in said.items()}
        assert (told["x-frame-options"], told["content-security-policy"]) == (
            "SAMEORIGIN",
            "frame-ancestors 'self'",
        )
        if status == 403:
            assert body.startswith("Loopscope: the ")
    assert log.read_text(encoding="utf-8") == ""


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "https:",
        "https://*.example",
        "https://a.example/x",
        "'self'",
        "a; script-src *",
        "data:",
    ],
)
def test_an_origin_for_frames_is_exact(origin: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--frame-origin", origin])
    assert "is not an origin: expected https://HOST" in capsys.readouterr().err


def test_a_server_for_others_is_shown_in_no_frame(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--server", "--frame-origin", "vscode-webview:"]) == 2
    assert "it cannot be combined with --server" in capsys.readouterr().err


def test_foreign_handshakes_are_refused_at_once_and_nothing_is_sent(
    offline: tuple[str, Path],
) -> None:
    address, log = offline
    begun = time.monotonic()
    for _ in range(20):
        assert _handshake(address, "http://evil.example") == 403
        assert _handshake(address, "http://localhost:3") == 403
    assert time.monotonic() - begun < 20  # two requests to a public address for each took 41 s
    assert _handshake(address, address) == 101
    assert log.read_text(encoding="utf-8") == ""


def test_a_session_sends_nothing_elsewhere(offline: tuple[str, Path]) -> None:
    address, log = offline
    with Visitor(address, "model=sample:collatz") as visitor:
        assert visitor.widgets
    assert log.read_text(encoding="utf-8") == ""


@pytest.mark.browser
def test_a_page_asks_only_its_own_server(page: Page, offline: tuple[str, Path]) -> None:
    address, log = offline
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda opened: asked.append(opened.url))
    open_sample(page, address, "collatz", step="3")
    page.wait_for_timeout(2000)
    own = (f"{address}/", f"{address.replace('http', 'ws', 1)}/", "data:", "blob:")
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith(own)] == []
    assert log.read_text(encoding="utf-8") == ""


def test_the_converter_of_openvino_reports_nothing() -> None:
    """Its package for that is absent in the process that converts."""
    script = (
        "import runpy, sys\n"
        "begin = runpy.run_path(sys.argv[1])['main']\n"
        "begin('nothing.pb', 'nothing.xml', 'convert')\n"
        "from openvino.tools.ovc import convert_impl, telemetry_utils\n"
        "print(convert_impl.tm.__name__, telemetry_utils.tm.__name__)\n"
    )
    file = str(conversion_process.__file__)
    ended = subprocess.run(
        [sys.executable, "-c", script, file], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["openvino.tools.ovc.telemetry_stub"] * 2


HALVES = {
    "nothing": b"",
    "a line": b"GET / HTTP/1.1\r\n",
    "headers": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n",
    "a body": b"POST /_stcore/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nabc",
    "a second request": b"GET /_stcore/health HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT",
}


@pytest.fixture(scope="module")
def impatient() -> Iterator[str]:
    """A server that waits one second for a request."""
    script = "import sys; from loopscope_app import cli; from loopscope_app.command import gate; gate.MOST_SECONDS_OF_A_HEAD = 1.0; sys.exit(cli.main(sys.argv[1:]))"
    with serving(
        [sys.executable, "-c", script],
        folder=ROOT,
        environment={**os.environ, "PYTHONPATH": SOURCES},
    ) as address:
        yield address


@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES.keys())
def test_a_half_sent_request_ends(impatient: str, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", urlsplit(impatient).port or 0), 30) as client:
        client.sendall(sent)
        begun = time.monotonic()
        while client.recv(65536):
            pass
        assert time.monotonic() - begun < 15


def test_a_request_that_drips_ends(impatient: str) -> None:
    with socket.create_connection(("127.0.0.1", urlsplit(impatient).port or 0), 30) as client:
        client.settimeout(0.2)
        begun = time.monotonic()
        while _drip(client):
            assert time.monotonic() - begun < 15


def _drip(client: socket.socket) -> bool:
    """Send one byte more; False if the server has ended the connection."""
    try:
        client.sendall(b"X")
        return bool(client.recv(4096))
    except TimeoutError:
        return True
    except OSError:
        return False


def test_an_open_session_is_not_ended(impatient: str) -> None:
    with connect(
        f"{impatient.replace('http', 'ws', 1)}/_stcore/stream",
        subprotocols=[Subprotocol("streamlit")],
        compression=None,
    ) as opened:
        time.sleep(2.5)
        opened.ping().wait(10)


@pytest.mark.parametrize("name", ["get_external_ip", "get_internal_ip"])
def test_another_way_to_find_addresses_is_said(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delattr(f"streamlit.net_util.{name}")
    with pytest.raises(StreamlitChanged, match=name):
        streamlit_insides.resolve_no_public_address()
