"""What a run remembers: when each step was, which control flow ran, and every value, kept or
computed again.
"""

from __future__ import annotations

from loopscope.timeline.control_flow import ControlFlowRecord

__all__ = [
    "ControlFlowRecord",
]
