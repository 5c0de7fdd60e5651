"""Loopscope's engine: read, check, run and explain neural-network graphs with control flow.

This is the door: what README speaks of. ``check`` and ``run`` are functions here and rooms as well: the functions are what
the names mean to those who ``import engine``, and modules of the rooms are imported as always (``from engine.check import text``).

Each name is imported when it is first asked for, because a command that needs few of them should not wait for all.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine import build
    from engine.check.check import check
    from engine.check.diagnostic import InvalidModel
    from engine.compare.drift import drift
    from engine.debug.debugger import Debugger
    from engine.debug.fetches import run
    from engine.debug.result import Result, RunStopped
    from engine.debug.session import Session
    from engine.errors import (
        AddressError,
        BuildError,
        EngineError,
        ExpressionError,
        InputError,
        ReadError,
        ValueUnavailable,
        WriteError,
    )
    from engine.explain.compare import compare
    from engine.explain.verdict import verdict
    from engine.finite_differences import check_gradient
    from engine.ir.model import Model
    from engine.notebook import widget
    from engine.ops.declare import Operation
    from engine.read import read_model
    from engine.run.machine.limits import Limits
    from engine.run.plan.optimise import Optimise
    from engine.run.record.recording import Record
    from engine.run_file.loading import load
    from engine.run_file.saving import save
    from engine.show import show
    from engine.sweep.sweep import sweep
    from engine.transform.with_gradients import gradients
    from engine.write import write_model

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
    "ValueUnavailable",
    "WriteError",
    # building
    "build",
    # explaining
    "check",
    "check_gradient",
    "compare",
    "drift",
    # changing
    "gradients",
    # a run as a file
    "load",
    "read_model",
    "run",
    "save",
    # the app
    "show",
    "sweep",
    "verdict",
    # a notebook's cell
    "widget",
    "write_model",
]

_HOMES = {
    **dict.fromkeys(("AddressError", "BuildError", "EngineError", "ExpressionError", "InputError"), "errors"),
    **dict.fromkeys(("ReadError", "ValueUnavailable", "WriteError"), "errors"),
    **dict.fromkeys(("Result", "RunStopped"), "debug.result"),
    "Debugger": "debug.debugger",
    "InvalidModel": "check.diagnostic",
    "Limits": "run.machine.limits",
    "Model": "ir.model",
    "Operation": "ops.declare",
    "Optimise": "run.plan.optimise",
    "Record": "run.record.recording",
    "Session": "debug.session",
    "check": "check.check",
    "check_gradient": "finite_differences",
    "compare": "explain.compare",
    "drift": "compare.drift",
    "gradients": "transform.with_gradients",
    "load": "run_file.loading",
    "read_model": "read",
    "run": "debug.fetches",
    "save": "run_file.saving",
    "show": "show",
    "sweep": "sweep.sweep",
    "verdict": "explain.verdict",
    "widget": "notebook",
    "write_model": "write",
}
"""The module of each name; ``build`` is one itself."""


class _Door(ModuleType):
    """The module of this file: the import system may not put a room in the place of the function that has its name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in _HOMES):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Door


def __getattr__(name: str) -> object:
    if name == "build":
        return importlib.import_module("engine.build")
    if name not in _HOMES:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"engine.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
