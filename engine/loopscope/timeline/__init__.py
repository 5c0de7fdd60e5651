"""History of a run: the moment of each step, the control flow, and every value, stored or
recomputed.
"""

from __future__ import annotations

from loopscope.timeline.timeline import ControlFlowRecord

__all__ = [
    "ControlFlowRecord",
]
