"""How this server was started: what it opens first, and whether its users sit at this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

import loopscope
from loopscope.errors import ReadError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(slots=True)
class Launch:
    """Set once by the command, before the server runs; ``streamlit run
    app/loopscope_app/main.py`` leaves the defaults.
    """

    model: str = ""
    """Path of the model to open first; empty for the gallery."""
    inputs: str = ""
    """Path of the .npz file with that model's inputs; empty for made-up ones."""
    overlay: str = ""
    """Path of the JSON file with data about that model's nodes; empty for none."""
    server: bool = False
    """Users sit elsewhere: paths of this machine are none of their business."""

    @property
    def link(self) -> str:
        """What the page's address calls the first model: on a server its name, never its folder."""
        return Path(self.model).name if self.server else self.model


LAUNCH = Launch()
_PER_SESSION = loopscope.Limits(iterations=10_000_000, seconds=60, memory_bytes=2**29)


def limits() -> loopscope.Limits:
    """What one run may take: on a server for others, so much that one user leaves enough to the
    rest.
    """
    return _PER_SESSION if LAUNCH.server else loopscope.Limits()


def paths_allowed(address: str | None) -> bool:
    """Whether a user may name a file of this machine: only where no other machine can reach the
    server.

    >>> paths_allowed("127.0.0.1"), paths_allowed("0.0.0.0"), paths_allowed(None)
    (True, False, False)
    """
    return not LAUNCH.server and address in LOOPBACK


def must_be_local() -> None:
    """``ReadError`` when a user of this server may name no file of its machine."""
    if not paths_allowed(st.get_option("server.address")):
        raise ReadError("this server opens samples and uploads only")
