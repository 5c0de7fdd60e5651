"""What a picture says of each part of it at a moment of a run: done, current, waiting, skipped
or failed.
"""

from __future__ import annotations

from typing import Literal

NodeStatus = Literal["current", "done", "waiting", "skipped", "failed"]
FrameStatus = Literal["active", "done", "waiting", "taken", "skipped"]
"""A loop's body is ``active`` while it runs, a copy of an unrolled one also ``done`` or
``waiting``; a branch is ``taken`` or ``skipped``.
"""
BreakpointState = Literal["on", "off"]
