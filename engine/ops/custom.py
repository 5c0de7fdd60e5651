"""Operations that users add: from a Python file they name on the command line, from an installed package, or by a call.

A file declares them as the engine does, in a literal ``OPERATIONS`` tuple. It is the local user's own code: it is only ever
loaded because a person at this machine named it, never because a model or a browser did.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from engine.errors import EngineError
from engine.ir.element_type import ElementType
from engine.ops.catalogue import CATALOGUE
from engine.ops.declare import Array, Attribute, Kernel, Operation
from engine.ops.dialect import domain_of

ENTRY_POINTS = "loopscope.operations"
"""Group of the package entry points; each names a module with ``OPERATIONS``."""


def install(operations: Iterable[Operation], *, replace: bool = False) -> tuple[Operation, ...]:
    """Adds operations to what every model of this process may use; do it before models are run.

    ``EngineError`` when one has a name that OpenVINO's opsets or ONNX's domains have, or a name and version that were added
    before, and ``replace`` is not asked for; or when it cannot run.
    """
    added = tuple(operations)
    for operation in added:
        if not isinstance(operation, Operation):
            raise EngineError(f"OPERATIONS holds {operation!r}, expected engine.Operation")
        problem = _problem(operation) or ("" if replace else _taken(operation))
        if problem:
            raise EngineError(f"operation {operation.title} {problem}")
    try:
        CATALOGUE.install(added, replace=replace)
    except ValueError as error:
        raise EngineError(str(error)) from None
    return added


def _taken(operation: Operation) -> str:
    """Whose operation has that name, as the end of a sentence: in an ONNX model, an added one stands for all of its name."""
    openvino = [one for one in CATALOGUE.versions(operation.name) if CATALOGUE.category_of(one) != "custom"]
    domain = "" if openvino else domain_of(operation.name)
    if not openvino and not domain:
        return ""
    whose = "OpenVINO's opsets" if openvino else f"the ONNX domain {domain!r}"
    return f"has a name that exists in {whose}: give it another name, or install it in Python with replace=True"


def _problem(operation: Operation) -> str:
    """What a declaration gets wrong, as the end of a sentence; empty when nothing is."""
    first, last = operation.opsets
    if not operation.name.strip() or not operation.name.isprintable():
        return f"is called {operation.name!r}, expected the type that layers of it have"
    if not first <= last:
        return f"is in opset{first} to opset{last}, expected the first one first"
    kernel: object = operation.kernel
    if kernel is None:
        return "has no kernel"
    if not callable(kernel):
        return f"has the kernel {kernel!r}, expected a function"
    attributes: tuple[object, ...] = operation.attributes
    odd = [one for one in attributes if not isinstance(one, Attribute)]
    if odd:
        return f"has the attribute {odd[0]!r}, expected engine.ops.Attribute"
    try:
        inspect.signature(kernel).bind_partial(**{one.keyword: one.default for one in operation.attributes})
    except TypeError as error:
        return f"has a kernel that does not take its attributes as keywords: {error}"
    except ValueError:  # functions written in C may not tell what they take
        return ""
    return ""


def install_file(path: str | Path, *, replace: bool = False) -> tuple[Operation, ...]:
    """Runs a Python file that the local user named, and installs its ``OPERATIONS``; ``EngineError`` says what is wrong with it."""
    file = Path(path)
    spec = importlib.util.spec_from_file_location(f"loopscope_operations_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise EngineError(f"{file}: there is no such Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise EngineError(f"{file}: {type(error).__name__}: {error}") from error
    return install(_declared(module, str(file)), replace=replace)


def install_packages() -> tuple[Operation, ...]:
    """Installs the operations of every installed package that has an entry point in the group ``loopscope.operations``."""
    found: list[Operation] = []
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            module = entry.load()
        except Exception as error:
            raise EngineError(f"the package entry point {entry.name!r} cannot be loaded: {type(error).__name__}: {error}") from error
        found += install(_declared(module, f"entry point {entry.name!r}"))
    return tuple(found)


def _declared(module: ModuleType, where: str) -> tuple[Operation, ...]:
    declared = getattr(module, "OPERATIONS", None)
    if not isinstance(declared, (tuple, list)) or not declared:
        raise EngineError(f"{where}: it declares no OPERATIONS, a tuple of engine.Operation")
    return tuple(declared)


def by_element_type(kernels: Mapping[ElementType, Kernel]) -> Kernel:
    """One kernel out of several, chosen by the element type of the first input."""

    def kernel(*arrays: Array, **attributes: Any) -> Any:
        element_type = ElementType.of(arrays[0])
        chosen = kernels.get(element_type)
        if chosen is None:
            raise ValueError(f"there is no kernel for {element_type}, only for {', '.join(str(one) for one in kernels)}")
        return chosen(*arrays, **attributes)

    kernel.__doc__ = next(iter(kernels.values())).__doc__
    return kernel
