"""Script that runs a source program in its own framework, in a separate process.

Arguments: the kind of source (``pt2``, ``python`` or ``saved_model``), its location, the names of
the file's inputs as JSON, a file of inputs (by position), and the output file for the recording. It
is started as a file and imports nothing of Loopscope except adjacent files, under names that no
user package has. The last line of stdout is the framework's version.
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
    """Return 0 if the program ran; otherwise 1, and the last line of stderr is the reason.

    The arguments are those of the module, in its order.
    """
    try:
        watching = import_adjacent("watching")
        with np.load(inputs, allow_pickle=False) as stored:
            arrays = [
                stored[str(number)]
                for number in range(sum(name.isdecimal() for name in stored.files))
            ]
        program = (
            import_adjacent("torch_program" if kind == "pt2" else "tensorflow_program")
            if kind != "python"
            else None
        )
        source: Any = where
        if kind == "python":
            source = source_of(where)
            program = import_adjacent(f"{framework(source, where)}_program")
        assert program is not None
        version = program.run(watching, source, arrays, json.loads(names), target)
    except Exception as error:
        sys.stderr.write(
            "\n" + (" ".join(str(error).split())[-20_000:] or type(error).__name__) + "\n"
        )
        return 1
    sys.stdout.write(f"\n{version}\n")
    return 0


def import_adjacent(name: str) -> ModuleType:
    """Import an adjacent file."""
    module_name = f"loopscope_source_{name}"
    spec = importlib.util.spec_from_file_location(
        module_name, Path(__file__).with_name(f"{name}.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def source_of(where: str) -> Any:
    """Return the object of ``module:name``, imported from the current folder.

    A class, or a function without parameters, is called.
    """
    module, _, name = where.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(value, part):
            raise ValueError(f"the module {module!r} has no {name!r}")
        value = getattr(value, part)
    if inspect.isclass(value) or (
        inspect.isfunction(value) and not inspect.signature(value).parameters
    ):
        value = value()
    return value


def framework(source: Any, where: str) -> str:
    """Return the framework of a source, from the type of an object, or the modules that a function
    refers to.
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
        used = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    frameworks = used & {"torch", "tensorflow", "keras"}
    if "torch" in frameworks and len(frameworks) > 1:
        raise ValueError(
            f"{where} uses both torch and tensorflow: expected a function that returns an "
            "exported program or a concrete function"
        )
    if not frameworks:
        raise ValueError(
            f"{where} is a value of type {type(source).__name__}, "
            "expected a program of torch or TensorFlow"
        )
    return "torch" if "torch" in frameworks else "tensorflow"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
