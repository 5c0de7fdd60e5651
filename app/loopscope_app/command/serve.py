"""Starts the app's server and opens it in the browser."""

from __future__ import annotations

import argparse
import socket
import threading
import time
import tomllib
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from loopscope.errors import InputError, listed, shorten
from loopscope.read import what_is_at
from loopscope_app.state.launch import LAUNCH
from loopscope_app.streamlit_insides import resolve_no_public_address, send_at_once, serve_with
from loopscope_samples import sample, samples

FIRST_PORT, PORTS_TRIED = 8501, 100
APP = Path(__file__).resolve().parent.parent
_SERVER_UPLOAD_MEGABYTES = 100


def main(options: argparse.Namespace) -> int:
    """Serves until interrupted; ``OSError`` when the model's file is not there or no port is
    free.
    """
    for option, words in (
        ("inputs", "--inputs are the inputs"),
        ("overlay", "--overlay is of the nodes"),
    ):
        if getattr(options, option) and not options.model:
            raise InputError(f"{words} of a model, and no model is given")
    if options.sample and sample(options.sample) is None:
        raise InputError(
            f"there is no sample {shorten(options.sample)!r}: there are {listed([one.name for one in samples()], 99)}"
        )
    if options.model and what_is_at(options.model) is None:
        told = (
            f"`loopscope --sample {options.model}` opens it"
            if sample(options.model)
            else "`loopscope --help` lists the commands"
        )
        raise InputError(
            f"{shorten(options.model)}: there is no such file, and no such command: {told}"
        )
    if options.host_name and not options.server:
        raise InputError(
            "--host-name names a server for other machines: expected --server beside it"
        )
    for file in filter(None, (options.inputs, options.overlay)):
        Path(file).stat()
    LAUNCH.model = str(Path(options.model).resolve()) if options.model else ""
    LAUNCH.inputs = str(Path(options.inputs).resolve()) if options.inputs else ""
    LAUNCH.overlay = str(Path(options.overlay).resolve()) if options.overlay else ""
    LAUNCH.server = options.server
    address = "0.0.0.0" if options.server else "127.0.0.1"
    port = free_port(address, options.port)
    url = f"http://localhost:{port}" + (
        f"/?model=sample:{quote(options.sample)}" if options.sample and not options.model else ""
    )
    print(f"Loopscope is at {url} (stop it with Ctrl+C)", flush=True)
    if options.server:
        print(bounds(), flush=True)
    if not options.no_browser:
        threading.Thread(target=_open_when_ready, args=(port, url), daemon=True).start()
    # Imported here because Streamlit takes most of a second, and `loopscope run` does not use it.
    from loopscope_app.actions.session_end import watching_over_sessions
    from loopscope_app.command.gate import HEADERS, GuardedApp, TimedRequests, visitors
    from loopscope_app.parts.frame.failure import say_sorry

    send_at_once()
    serve_with(HEADERS, TimedRequests)
    resolve_no_public_address()
    app = GuardedApp(APP / "main.py", on_script_error=say_sorry, lifespan=watching_over_sessions)
    app.visitors = visitors(server=options.server, host_names=options.host_name)
    app.run(config=settings(address, port))
    return 0


def bounds() -> str:
    """What a server for others lets one session and all of them take, in words."""
    from loopscope_app.actions.memory_budget import budget
    from loopscope_app.state.launch import limits
    from loopscope_app.state.model_cache import MOST_BYTES

    one = limits()
    seconds = settings("", 0)["server.disconnectedSessionTTL"]
    return "\n".join(
        (
            f"One run: at most {(one.memory_bytes or 0) >> 20} MB of values, {one.iterations:,} iterations, {one.seconds:g} s at a time.",
            f"One upload: at most {_SERVER_UPLOAD_MEGABYTES} MB; it is held as long as its session, which ends {seconds} s after its page.",
            f"All sessions: at most {budget() / 2**30:.1f} GB; beyond, the runs that were left alone longest give up their values.",
            f"Models that nobody looks at: at most {MOST_BYTES // 2**20} MB are kept for the next one.",
        )
    )


def settings(address: str, port: int) -> Mapping[str, Any]:
    """The packaged configuration with the address and the port of this start, as dotted names."""
    with (APP / ".streamlit" / "config.toml").open("rb") as file:
        packaged = _dotted(tomllib.load(file))
    if LAUNCH.server:
        # Uploads stay in memory as long as their session.
        packaged["server.maxUploadSize"] = _SERVER_UPLOAD_MEGABYTES
        packaged["server.allowedHosts"] = []  # the gate decides, which knows --host-name
    return {**packaged, "server.address": address, "server.port": port}


def _dotted(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested table as flat names.

    >>> _dotted({"theme": {"light": {"textColor": "#000"}}, "port": 1})
    {'theme.light.textColor': '#000', 'port': 1}
    """
    flat: dict[str, Any] = {}
    for name, value in table.items():
        flat.update(
            _dotted(value, f"{prefix}{name}.")
            if isinstance(value, dict)
            else {prefix + name: value}
        )
    return flat


def free_port(address: str, wanted: int = 0) -> int:
    """The port asked for, or the first free one from 8501 on; ``OSError`` when it is taken, or
    all of them are.
    """
    for port in (wanted,) if wanted else range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                continue
            return port
    taken = (
        f"port {wanted} is"
        if wanted
        else f"all ports from {FIRST_PORT} to {FIRST_PORT + PORTS_TRIED - 1} are"
    )
    raise OSError(f"{taken} taken: choose another with --port")


def _open_when_ready(port: int, url: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
            continue
        webbrowser.open(url)
        return
