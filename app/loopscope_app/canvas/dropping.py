"""Files can be dropped anywhere on a page that has an uploader."""

from __future__ import annotations

from pathlib import Path

from loopscope_app.components import component

_drop = component("drop", "drop.js", style="drop.css", folder=Path(__file__).parent / "assets")


def take_dropped_files() -> None:
    """Pass files that are dropped anywhere to the page's uploader."""
    _drop(key="drop", data={}, height=1)
