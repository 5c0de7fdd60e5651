"""Files can be dropped anywhere on a page that has an uploader of models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loopscope_app.components import component

_drop = component("drop", "drop.js", style="drop.css", folder=Path(__file__).parent / "assets")


def take_dropped_files(endings: Sequence[str], *, ask: bool) -> None:
    """Pass files with these endings to the uploader of models; ``ask`` before they are opened."""
    _drop(key="drop", data={"ask": ask, "endings": list(endings)}, height=1)
