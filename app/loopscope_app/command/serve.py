"""The app's server: start it and open it in the browser."""

from __future__ import annotations

import argparse
import socket
import threading
import time
import tomllib
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from loopscope.errors import InputError, listed, shorten
from loopscope.ir import significant
from loopscope.read import WeightsFile, what_is_at
from loopscope_app.command import progress
from loopscope_app.command.web_model import Download, is_web_address
from loopscope_app.describe.lessons import FIRST_SAMPLE
from loopscope_app.state.launch import LAUNCH
from loopscope_app.streamlit_insides import resolve_no_public_address, send_at_once, serve_with
from loopscope_samples import sample, samples

FIRST_PORT, PORTS_TRIED = 8501, 100
APP = Path(__file__).resolve().parent.parent
_SERVER_UPLOAD_MEGABYTES = 100


def main(options: argparse.Namespace) -> int:
    """Serve the app until interrupted.

    Raise ``InputError`` for options that do not fit together and for a model that does not exist,
    and ``OSError`` if a file of inputs or colors does not exist or no port is free.
    """
    for option in ("inputs", "overlay", "watch"):
        if getattr(options, option) and not options.model:
            raise InputError(f"--{option} needs a model: expected MODEL before it")
    if options.watch and (options.server or is_web_address(options.model)):
        raise InputError("--watch applies to a file of this machine without --server")
    if options.sample and sample(options.sample) is None:
        names = listed([entry.name for entry in samples()], 99)
        raise InputError(f"there is no sample {shorten(options.sample)!r}: expected one of {names}")
    if is_web_address(options.model):
        with TemporaryDirectory(prefix="loopscope-") as folder:
            options.model = _downloaded(options, Path(folder))
            return _serve(options)
    if options.allow_host:
        raise InputError("--allow-host applies to a model on the web: expected https://HOST/PATH")
    if options.model and what_is_at(options.model) is None:
        advice = (
            f"`loopscope --sample {options.model}` opens it"
            if sample(options.model)
            else "`loopscope --help` lists the commands"
        )
        raise InputError(
            f"{shorten(options.model)}: there is no such file, and no such command: {advice}"
        )
    return _serve(options)


def _downloaded(options: argparse.Namespace, folder: Path) -> str:
    """Download the model that the command names; return its path."""
    if options.server:
        raise InputError("a model on the web cannot be combined with --server: download it first")
    with progress.doing("downloading the model"):
        return str(Download(folder, tuple(options.allow_host)).model(options.model))


def _serve(options: argparse.Namespace) -> int:
    """Serve the app with a model that exists, or without a model."""
    if options.frame_origin and options.server:
        raise InputError(
            "--frame-origin applies to this machine: it cannot be combined with --server"
        )
    if options.host_name and not options.server:
        raise InputError("--host-name applies to a server for other machines: expected --server")
    for file in filter(None, (options.inputs, options.overlay)):
        Path(file).stat()
    LAUNCH.model = str(Path(options.model).resolve()) if options.model else ""
    LAUNCH.inputs = str(Path(options.inputs).resolve()) if options.inputs else ""
    LAUNCH.overlay = str(Path(options.overlay).resolve()) if options.overlay else ""
    LAUNCH.server = options.server
    LAUNCH.watch = options.watch
    WeightsFile.maps = not options.watch
    LAUNCH.compares = not options.server and not options.no_agreement
    LAUNCH.first_run = options.sample == FIRST_SAMPLE
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
    from loopscope_app.actions.report_errors import say_sorry
    from loopscope_app.actions.session_end import watching_over_sessions
    from loopscope_app.command.gate import GuardedApp, TimedRequests, headers, visitors

    send_at_once()
    serve_with(headers(options.frame_origin), TimedRequests)
    resolve_no_public_address()
    app = GuardedApp(APP / "main.py", on_script_error=say_sorry, lifespan=watching_over_sessions)
    app.visitors = visitors(server=options.server, host_names=options.host_name)
    app.run(config=settings(address, port))
    return 0


def bounds() -> str:
    """Return the limits of a session and of all sessions on a server for others, as text."""
    from loopscope_app.actions.memory_budget import budget
    from loopscope_app.state.launch import limits
    from loopscope_app.state.model_cache import MOST_BYTES

    limits_of_run = limits()
    seconds = settings("", 0)["server.disconnectedSessionTTL"]
    return (
        f"One run: at most {(limits_of_run.memory_bytes or 0) >> 20} MB of values,"
        f" {limits_of_run.iterations:,} iterations,"
        f" {significant(limits_of_run.seconds or 0, 6)} s at a time.\n"
        f"One upload: at most {_SERVER_UPLOAD_MEGABYTES} MB; stored until its session ends,"
        f" {seconds} s after its page.\n"
        f"All sessions: at most {budget() / 2**30:.1f} GB; above that, the runs that were idle"
        " longest lose their values.\n"
        f"Models without a session: at most {MOST_BYTES // 2**20} MB are cached."
    )


def settings(address: str, port: int) -> Mapping[str, Any]:
    """Return the packaged configuration with this server's address and port, by dotted name."""
    with (APP / ".streamlit" / "config.toml").open("rb") as file:
        packaged = _dotted(tomllib.load(file))
    if LAUNCH.server:
        # Uploads stay in memory until their session ends.
        packaged["server.maxUploadSize"] = _SERVER_UPLOAD_MEGABYTES
        packaged["server.allowedHosts"] = []  # the gate checks hosts, because it knows --host-name
    return {**packaged, "server.address": address, "server.port": port}


def _dotted(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested table as a flat one with dotted names.

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


def free_port(address: str, requested: int = 0) -> int:
    """Return the requested port, or the first free one of ``PORTS_TRIED`` from 8501 on.

    Raise ``OSError`` if the requested port is in use, or all of them are.
    """
    for port in (requested,) if requested else range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                continue
            return port
    subject = (
        f"port {requested} is"
        if requested
        else f"all ports from {FIRST_PORT} to {FIRST_PORT + PORTS_TRIED - 1} are"
    )
    raise OSError(f"{subject} taken: choose another with --port")


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
