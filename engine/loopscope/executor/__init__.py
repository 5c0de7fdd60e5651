"""Execution of a checked model: the plan, the machine that steps through it, and generated code for
its loops.
"""

from __future__ import annotations

from loopscope.executor.codegen.compile import generated_loops
from loopscope.executor.plan.analyses import left_out, left_out_for_outputs
from loopscope.executor.plan.plan import LoopRegion, Plan, Program
from loopscope.executor.plan.planner import plan_of
from loopscope.executor.plan.slots import Slot
from loopscope.executor.record.recording import LoopTable, StopCause

__all__ = [
    "LoopRegion",
    "LoopTable",
    "Plan",
    "Program",
    "Slot",
    "StopCause",
    "generated_loops",
    "left_out",
    "left_out_for_outputs",
    "plan_of",
]
