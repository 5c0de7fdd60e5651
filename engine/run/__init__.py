"""Runs a checked model: the plan, the machine that steps through it, and the generated code that runs its loops fast."""

from __future__ import annotations

from engine.run.codegen.compile import generated_loops
from engine.run.plan.left_out import left_out, left_out_for_outputs
from engine.run.plan.numbers import Slot
from engine.run.plan.plan import LoopRegion, Plan, Program
from engine.run.plan.planner import plan_of
from engine.run.record.endings import StopCause
from engine.run.record.recording import LoopTable

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
