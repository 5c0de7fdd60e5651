"""Operations that users add: from a Python file named on the command line, an installed package, or
a call.

A file declares operations as the engine does, in a literal ``OPERATIONS`` tuple. The file is code
of the local user. It is loaded only if a person at this machine named it, never for a model or a
browser.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from loopscope.errors import EngineError
from loopscope.ir.element_type import ElementType
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.custom.registration import conflict, declaration_problem, name_problem
from loopscope.ops.custom.verification import verify_operation
from loopscope.ops.declare import Array, Kernel, Operation
from loopscope.ops.dialect import domain_of
from loopscope.ops.infer import with_shared_type

ENTRY_POINTS = "loopscope.operations"
"""Group of the package entry points; each names a module with ``OPERATIONS``."""


_FILES: dict[str, str] = {}


def install(operations: Iterable[Operation], *, replace: bool = False) -> tuple[Operation, ...]:
    """Add operations to those that every model of this process may use; call it before models are
    run.

    Raise ``EngineError`` if an operation has a name of OpenVINO's opsets or ONNX's domains, or a
    name and version that were added before, unless ``replace`` is set. Raise it also if a layer
    could mean two of the operations, or if a declaration is wrong.
    """
    candidates = tuple(operations)
    for operation in candidates:
        if not isinstance(operation, Operation):
            raise EngineError(f"OPERATIONS holds {operation!r}, expected loopscope.Operation")
        message = name_problem(operation)
        if message:
            raise EngineError(f"an operation {message}")
        message = (
            declaration_problem(operation)
            or ("" if replace else _existing_owner(operation))
            or conflict(operation, CATALOGUE, candidates)
        )
        if message:
            raise EngineError(f"operation {operation.title} {message}")
    added = tuple(with_shared_type(operation) for operation in candidates)
    try:
        CATALOGUE.install(added, replace=replace)
    except ValueError as error:
        raise EngineError(str(error)) from None
    return added


def _existing_owner(operation: Operation) -> str:
    """Return the owner of an existing name, as the end of a sentence; empty if the name is free.

    In an ONNX model, an added operation replaces all operations of its name.
    """
    openvino = [
        version
        for version in CATALOGUE.versions(operation.name)
        if CATALOGUE.category_of(version) != "custom"
    ]
    domain = "" if openvino else domain_of(operation.name)
    if not openvino and not domain:
        return ""
    whose = "OpenVINO's opsets" if openvino else f"the ONNX domain {domain!r}"
    return (
        f"has a name that exists in {whose}: give it another name, or install it in "
        "Python with replace=True"
    )


def install_file(path: str | Path, *, replace: bool = False) -> tuple[Operation, ...]:
    """Run a Python file that the local user named, and install its ``OPERATIONS``; raise
    ``EngineError`` if it is wrong.
    """
    file = Path(path)
    spec = importlib.util.spec_from_file_location(f"loopscope_operations_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise EngineError(f"{file}: there is no such Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise EngineError(f"{file}: {type(error).__name__}: {error}") from error
    installed = install(_operations_of(module, str(file)), replace=replace)
    _FILES[file.stem] = file.read_text(encoding="utf-8")
    return installed


def installed_files() -> Mapping[str, str]:
    """Return the text of every installed file by its name without ``.py``, so that other processes
    can install it.
    """
    return dict(_FILES)


def install_packages() -> tuple[Operation, ...]:
    """Install the operations of every installed package that has an entry point in the group
    ``loopscope.operations``.
    """
    installed: list[Operation] = []
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            module = entry.load()
        except Exception as error:
            raise EngineError(
                f"the package entry point {entry.name!r} cannot be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error
        installed += install(_operations_of(module, f"entry point {entry.name!r}"))
    return tuple(installed)


def _operations_of(module: ModuleType, where: str) -> tuple[Operation, ...]:
    declared = getattr(module, "OPERATIONS", None)
    if not isinstance(declared, (tuple, list)) or not declared:
        raise EngineError(f"{where}: it declares no OPERATIONS, a tuple of loopscope.Operation")
    return tuple(declared)


def verify(operation: Operation, *inputs: Any, **attributes: object) -> Any:
    """Call an operation's kernel with all checks and return its result: one line tests an
    operation.

        assert verify(ZERO_OUT, [5, 4, 3], keep=1).tolist() == [5, 0, 0]

    ``inputs``: arrays or lists, None where one is omitted; ``attributes`` by keyword, as
    ``builder.ops`` takes them. The operation need not be installed.

    Raise ``EngineError`` if the declaration is wrong, or if inputs or attributes do not match it.
    Raise it if the kernel fails, writes into its inputs, returns two answers for the same inputs,
    or returns anything but arrays of element types. Raise it if the shape function fails or
    contradicts the kernel, with values, shapes, ranks, types or nothing known of the inputs.
    """
    return verify_operation(operation, inputs, attributes)


def by_element_type(kernels: Mapping[ElementType, Kernel]) -> Kernel:
    """Return one kernel that selects among several by the element type of the first input."""

    def kernel(*arrays: Array, **attributes: Any) -> Any:
        element_type = ElementType.of(arrays[0])
        function = kernels.get(element_type)
        if function is None:
            raise ValueError(
                f"there is no kernel for {element_type}, only for "
                f"{', '.join(str(allowed) for allowed in kernels)}"
            )
        return function(*arrays, **attributes)

    kernel.__doc__ = next(iter(kernels.values())).__doc__
    return kernel
