"""Loopscope's engine: read, check, run and explain neural-network graphs with control flow.

This module has the public names that README describes. Each name is imported on first access,
because a command that needs few of them should start quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopscope import builder
    from loopscope.checks.check import check
    from loopscope.checks.costs import costs
    from loopscope.checks.diagnostic import InvalidModel
    from loopscope.comparison.drift import drift
    from loopscope.debug.debugger import Debugger
    from loopscope.debug.result import Result, RunStopped
    from loopscope.debug.session import Session, run
    from loopscope.errors import (
        AddressError,
        BuildError,
        EngineError,
        ExpressionError,
        InputError,
        ReadError,
        ValueUnavailable,
        WriteError,
    )
    from loopscope.executor.machine.limits import Limits
    from loopscope.executor.plan.optimisation_flags import Optimise
    from loopscope.executor.record.recording import Record
    from loopscope.explain.compare import compare
    from loopscope.explain.verdict import verdict
    from loopscope.finite_differences import check_gradient
    from loopscope.ir.model import Model
    from loopscope.launch import show
    from loopscope.notebook import widget
    from loopscope.ops.declare import Operation
    from loopscope.read import read_model
    from loopscope.run_file.loading import load
    from loopscope.run_file.saving import save
    from loopscope.sweeps.sweep import sweep
    from loopscope.tracing import trace, trace_callback, trace_module
    from loopscope.transform.cut import cut
    from loopscope.transform.open_as_loop import open_as_loop
    from loopscope.transform.specialise.known_facts import TakenPaths
    from loopscope.transform.specialise.specialising import Specialised, specialise
    from loopscope.transform.with_gradients import gradients
    from loopscope.write import write_model

__all__ = [
    # errors
    "AddressError",
    "BuildError",
    # running and looking
    "Debugger",
    "EngineError",
    "ExpressionError",
    "InputError",
    "InvalidModel",
    "Limits",
    # models
    "Model",
    "Operation",
    "Optimise",
    "ReadError",
    "Record",
    "Result",
    "RunStopped",
    "Session",
    "Specialised",
    "TakenPaths",
    "ValueUnavailable",
    "WriteError",
    # building
    "builder",
    # explaining
    "check",
    "check_gradient",
    "compare",
    "costs",
    "cut",
    "drift",
    # changing
    "gradients",
    # a run as a file
    "load",
    # operators that are loops
    "open_as_loop",
    "read_model",
    "run",
    "save",
    # the app
    "show",
    "specialise",
    "sweep",
    # recording
    "trace",
    "trace_callback",
    "trace_module",
    "verdict",
    # a notebook's cell
    "widget",
    "write_model",
]

_MODULE_OF_NAME = {
    **dict.fromkeys(
        ("AddressError", "BuildError", "EngineError", "ExpressionError", "InputError"), "errors"
    ),
    **dict.fromkeys(("ReadError", "ValueUnavailable", "WriteError"), "errors"),
    **dict.fromkeys(("Result", "RunStopped"), "debug.result"),
    "Debugger": "debug.debugger",
    "InvalidModel": "checks.diagnostic",
    "Limits": "executor.machine.limits",
    "Model": "ir.model",
    "Operation": "ops.declare",
    "Optimise": "executor.plan.optimisation_flags",
    "Record": "executor.record.recording",
    "Session": "debug.session",
    "Specialised": "transform.specialise.specialising",
    "TakenPaths": "transform.specialise.known_facts",
    "check": "checks.check",
    "check_gradient": "finite_differences",
    "compare": "explain.compare",
    "cut": "transform.cut",
    "costs": "checks.costs",
    "drift": "comparison.drift",
    "gradients": "transform.with_gradients",
    "load": "run_file.loading",
    "open_as_loop": "transform.open_as_loop",
    "read_model": "read",
    "run": "debug.session",
    "save": "run_file.saving",
    "show": "launch",
    "specialise": "transform.specialise.specialising",
    "sweep": "sweeps.sweep",
    "trace": "tracing",
    "trace_callback": "tracing",
    "trace_module": "tracing",
    "verdict": "explain.verdict",
    "widget": "notebook",
    "write_model": "write",
}
"""Module of each name; ``builder`` is itself a module."""


def __getattr__(name: str) -> object:
    if name == "builder":
        return importlib.import_module("loopscope.builder")
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f"module 'loopscope' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"loopscope.{_MODULE_OF_NAME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
