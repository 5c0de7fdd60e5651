"""Start options of this server: the first model, and whether its users are at this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

import loopscope
from loopscope.errors import ReadError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(slots=True)
class Launch:
    """Start options.

    The command line sets them once before the server runs; ``streamlit run
    app/loopscope_app/main.py`` leaves the defaults.
    """

    model: str = ""
    """Path of the first model; empty for the gallery."""
    inputs: str = ""
    """Path of the .npz file with that model's inputs; empty for generated inputs."""
    overlay: str = ""
    """Path of the JSON file with data about that model's nodes; empty for none."""
    server: bool = False
    """True if users are at other machines: they must not name paths of this machine."""

    watch: bool = False
    """True if the first model is opened again when its file changes."""
    compares: bool = False
    """True if opened models are compared with their runtimes in the background."""
    first_run: bool = False
    """True if the first steps are shown on arrival at their sample."""

    @property
    def link(self) -> str:
        """Name of the first model in the page's address: on a server without its folder."""
        return Path(self.model).name if self.server else self.model


LAUNCH = Launch()
_PER_SESSION = loopscope.Limits(iterations=10_000_000, seconds=60, memory_bytes=2**29)


def limits() -> loopscope.Limits:
    """Return the limits of one run; on a server they leave enough for other users."""
    return _PER_SESSION if LAUNCH.server else loopscope.Limits()


def paths_allowed(address: str | None) -> bool:
    """Return True if a user may name files of this machine: if no other machine can reach the
    server.

    >>> paths_allowed("127.0.0.1"), paths_allowed("0.0.0.0"), paths_allowed(None)
    (True, False, False)
    """
    return not LAUNCH.server and address in LOOPBACK


def must_be_local() -> None:
    """Raise ``ReadError`` if users of this server may not name files of its machine."""
    if not paths_allowed(st.get_option("server.address")):
        raise ReadError("this server opens samples and uploads only")
