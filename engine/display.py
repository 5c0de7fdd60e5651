"""Rich display of models and runs in notebooks, by displays that packages register as entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

GROUP = "loopscope.display"
"""Entry points of this group are functions from a model, a run or a widget to a MIME bundle. The app registers one."""


def mime_bundle(shown: object) -> Mapping[str, Any]:
    """Return what a notebook displays, by MIME type: the bundle of the registered display, else the ``repr``."""
    for entry in entry_points(group=GROUP):
        bundle: Mapping[str, Any] = entry.load()(shown)
        return bundle
    return {"text/plain": repr(shown)}
