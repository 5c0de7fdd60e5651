"""A real server in a process of its own, as a user starts it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SOURCES = os.pathsep.join(
    [str(ROOT), *(str(ROOT / name) for name in ("engine", "app", "sample_models"))]
)
"""The roots of our packages, for processes that are started from a checkout."""
_SECONDS = 60
"""How long a server may take to listen on a busy machine."""


@contextlib.contextmanager
def serving(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str]
) -> Iterator[str]:
    """The address of the server that ``command``, with a port and ``--no-browser``, starts; it
    ends with the block.
    """
    with serving_process(command, folder=folder, environment=environment) as (address, _):
        yield address


@contextlib.contextmanager
def serving_process(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str]
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """As ``serving``, with the process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = [*command, "--no-browser", "--port", str(port)]
    process = subprocess.Popen(
        started, cwd=folder, env=dict(environment), stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
