"""The server that the command starts: where it listens, and how soon it answers."""

from __future__ import annotations

import http.client
import os
import socket
import statistics
import subprocess
import sys
import time

import pytest

from loopscope_app.cli import main
from loopscope_app.command.serve import free_port, settings
from tests.app.serving import SOURCES


def test_the_server_stays_at_home() -> None:
    told = settings("127.0.0.1", 8600)
    assert told["server.address"] == "127.0.0.1"
    assert told["browser.gatherUsageStats"] is False
    assert told["runner.postScriptGC"] is False
    assert 8501 <= free_port("127.0.0.1") < 8601


def test_who_asks_for_a_sample_as_for_a_file_is_told_how(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["collatz", "--no-browser"]) == 2
    told = "there is no such file, and no such command: `loopscope --sample collatz` opens it"
    assert capsys.readouterr().err == f"loopscope: collatz: {told}\n"


def test_a_port_that_is_taken_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["--no-browser", "--port", str(port)]) == 2
    assert (
        capsys.readouterr().err == f"loopscope: port {port} is taken: choose another with --port\n"
    )


def test_the_first_picture_waits_for_no_table_and_no_other_screen() -> None:
    """Importing these takes a third of the time to the first picture."""
    code = (
        "import sys; from loopscope_app import visit; from loopscope_app.command import gate\n"
        "print(sorted({'pandas', 'scipy.special', 'openvino', 'onnxruntime', 'torch'} & "
        "{*sys.modules}), [name for name in sys.modules if 'compare_view' in name])"
    )
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=150
    )
    assert result.stdout == "[] []\n", result.stderr


@pytest.mark.measured
def test_the_server_sends_every_packet_at_once(server: str) -> None:
    connection = http.client.HTTPConnection(server.removeprefix("http://"), timeout=30)
    seconds = []
    for _ in range(15):
        begun = time.perf_counter()
        connection.request("GET", "/favicon.png")
        connection.getresponse().read()
        seconds.append(time.perf_counter() - begun)
    connection.close()
    assert (
        statistics.median(seconds) < 0.03
    )  # a packet that waits for an answer to the one before takes 0.04
