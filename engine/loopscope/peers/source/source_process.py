"""Runs a source program by its own framework, in a process of its own.

Arguments: the kind of source (``pt2``, ``python`` or ``saved_model``), where it is, the names of
the file's inputs as JSON, a file of inputs (by position), and the file that what happened goes to.
Started as a file, so it imports nothing of ours but its neighbours, by their files and under names
that no package of a user has. The last line of the output says which version ran.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np


def main(kind: str, where: str, names: str, inputs: str, target: str) -> int:
    """0 when the program has run; else the last line of stderr says why not."""
    try:
        watching = neighbour("watching")
        with np.load(inputs, allow_pickle=False) as stored:
            given = [
                stored[str(number)]
                for number in range(sum(name.isdecimal() for name in stored.files))
            ]
        program = (
            neighbour("torch_program" if kind == "pt2" else "tensorflow_program")
            if kind != "python"
            else None
        )
        source: Any = where
        if kind == "python":
            source = named(where)
            program = neighbour(f"{framework(source, where)}_program")
        assert program is not None
        version = program.run(watching, source, given, json.loads(names), target)
    except Exception as error:
        sys.stderr.write(
            "\n" + (" ".join(str(error).split())[-20_000:] or type(error).__name__) + "\n"
        )
        return 1
    sys.stdout.write(f"\n{version}\n")
    return 0


def neighbour(name: str) -> ModuleType:
    """A file beside this one."""
    own = f"loopscope_source_{name}"
    spec = importlib.util.spec_from_file_location(own, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[own] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def named(where: str) -> Any:
    """What ``module:name`` is, from the folder that the command runs in; what a function without
    parameters gives.
    """
    module, _, name = where.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"the module {module!r} has no {name!r}")
        found = getattr(found, part)
    if inspect.isclass(found) or (
        inspect.isfunction(found) and not inspect.signature(found).parameters
    ):
        found = found()
    return found


def framework(source: Any, where: str) -> str:
    """Whose a source is: told by the type of an object, of a plain function by the modules that
    it names.
    """
    if inspect.isfunction(source):
        used = {
            value.__name__.partition(".")[0]
            for value in source.__globals__.values()
            if isinstance(value, ModuleType)
        }
        used |= {
            str(getattr(value, "__module__", "")).partition(".")[0]
            for value in source.__globals__.values()
        }
    else:
        used = {one.__module__.partition(".")[0] for one in type(source).__mro__}
    found = used & {"torch", "tensorflow", "keras"}
    if "torch" in found and len(found) > 1:
        raise ValueError(
            f"{where} uses both torch and tensorflow: give a function that returns an exported program or a concrete function"
        )
    if not found:
        raise ValueError(
            f"{where} gives a value of type {type(source).__name__}, which is no program of torch or TensorFlow"
        )
    return "torch" if "torch" in found else "tensorflow"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
