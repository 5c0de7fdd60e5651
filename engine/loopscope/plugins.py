"""Plugins: functions of higher rooms and other packages that lower rooms call, registered as entry
points by group.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

DISPLAY = "loopscope.display"
"""Group of functions from a model, run or widget to its notebook display by MIME type. The app
registers one.
"""
RUNNER = "loopscope.runner"
"""Group of functions that run a model of the builder for ``compat.v1.Session``."""
COMMAND = "console_scripts"


def plugin(group: str, name: str = "") -> EntryPoint | None:
    """Return the first entry point of a group, or of that name in the group; None if no package
    registers one.
    """
    matches = entry_points(group=group, name=name) if name else entry_points(group=group)
    return next(iter(matches), None)


def mime_bundle(shown: object) -> Mapping[str, Any]:
    """Return what a notebook displays, by MIME type: the bundle of the registered display, else
    the ``repr``.
    """
    display = plugin(DISPLAY)
    if display is None:
        return {"text/plain": repr(shown)}
    bundle: Mapping[str, Any] = display.load()(shown)
    return bundle
