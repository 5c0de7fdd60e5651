"""Statuses of the parts of a picture at a moment of a run."""

from __future__ import annotations

from typing import Literal

NodeStatus = Literal["current", "done", "waiting", "skipped", "failed"]
FrameStatus = Literal["active", "done", "waiting", "taken", "skipped"]
"""A loop's body is ``active`` while it runs. A copy of an unrolled body may also be ``done`` or
``waiting``. A branch is ``taken`` or ``skipped``.
"""
BreakpointState = Literal["on", "off"]
