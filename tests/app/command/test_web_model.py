"""Models on the web: downloaded within limits, and never from a private network by a name or a
redirect.
"""

from __future__ import annotations

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loopscope
from loopscope.errors import EngineError
from loopscope_app.cli import main
from loopscope_app.command.web_model import Download, is_web_address
from loopscope_samples import FOLDER

COLLATZ = FOLDER / "collatz"


class Files(http.server.BaseHTTPRequestHandler):
    """A server of a model, of redirects, and of answers that do not end."""

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/model.xml" | "/model.bin" as path:
                self._answer(200, (COLLATZ / path[1:]).read_bytes())
            case "/moved":
                self._redirect("/model.xml")
            case "/again":
                self._redirect("/again")
            case "/inside":
                self._redirect("http://10.0.0.1/")
            case "/endless":
                self.send_response(200)
                self.end_headers()
                try:
                    while True:
                        self.wfile.write(bytes(1 << 16))
                except OSError:
                    return
            case "/slow":
                self._answer(200, bytes(1 << 16), pause=0.05)
            case "/broken":
                self.send_response(200)
                self.send_header("Content-Length", "100")
                self.end_headers()
                self.wfile.write(bytes(40))
            case "/file":
                self._redirect("file:///etc/passwd")
            case _:
                self._answer(404, b"")

    def _answer(self, status: int, data: bytes, pause: float = 0) -> None:
        """Send data, with a pause in seconds after each byte if there is a pause."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        pieces = (data[index : index + 1] for index in range(len(data))) if pause else (data,)
        try:
            for piece in pieces:
                self.wfile.write(piece)
                time.sleep(pause)
        except OSError:
            return

    def _redirect(self, target: str) -> None:
        self.send_response(302)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """Address of the server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_model_comes_with_its_weights(web: str, tmp_path: Path) -> None:
    path = Download(tmp_path).model(f"{web}/model.xml?download=1")
    assert path == tmp_path / "model.xml"
    result = loopscope.run(loopscope.read_model(path), {"number": 3})
    assert result.control_flow[0].iterations == 7


REFUSED = {
    "/none.onnx": "the server answers 404",
    "/broken": "it cannot be downloaded (it ends after 40 bytes)",
    "/again": "more than 5 redirects",
    "/inside": "10.0.0.1 is the address 10.0.0.1 of a private network: add --allow-host 10.0.0.1",
    "/file": "is not an address, expected https://",
}


@pytest.mark.parametrize("path", REFUSED)
def test_refusals(web: str, path: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        Download(tmp_path).model(f"{web}{path}")
    assert REFUSED[path] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["https://user:secret@example.org/a", "https:///a", "https://a:port/b", "https://a/b c"],
)
def test_malformed_addresses(address: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError):
        Download(tmp_path).model(address)


def test_a_name_of_a_private_network_must_be_allowed(
    web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = socket.getaddrinfo

    def resolve(host: str, *rest: Any, **named: Any) -> Any:
        return original("127.0.0.1" if host == "models.example" else host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    address = f"{web.replace('127.0.0.1', 'models.example')}/model.xml"
    with pytest.raises(EngineError, match="private network: add --allow-host models"):
        Download(tmp_path).model(address)
    assert Download(tmp_path, ("models.example",)).model(address).is_file()


def test_size_and_time_are_bounded(web: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="more than 1,000,000 bytes"):
        Download(tmp_path, max_bytes=1_000_000).model(f"{web}/endless")
    begun = time.monotonic()
    for path in ("/endless", "/slow"):
        with pytest.raises(EngineError, match="took more than"):
            Download(tmp_path, max_seconds=0.2).model(f"{web}{path}")
    assert time.monotonic() - begun < 30


def test_a_refused_connection_is_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(EngineError, match="cannot be downloaded"):
            Download(tmp_path).model(f"http://127.0.0.1:{port}/model.onnx")


def test_the_command_line(web: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert is_web_address("HTTPS://example.org/m.onnx")
    assert not is_web_address("https.onnx")
    assert main([f"{web}/none.onnx", "--no-browser"]) == 2
    assert "the server answers 404" in capsys.readouterr().err
    assert main([f"{web}/model.xml", "--server", "--no-browser"]) == 2
    assert "cannot be combined with --server" in capsys.readouterr().err
    assert main([str(COLLATZ / "model.xml"), "--allow-host", "a", "--no-browser"]) == 2
    assert "--allow-host applies to a model on the web" in capsys.readouterr().err
