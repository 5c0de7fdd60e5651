"""Operations that users add: from a Python file they name on the command line, from an installed
package, or by a call.

A file declares them as the engine does, in a literal ``OPERATIONS`` tuple. It is the local user's
own code: it is only ever loaded because a person at this machine named it, never because a model or
a browser did.
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
from loopscope.ops.declare import Array, Kernel, Operation
from loopscope.ops.dialect import domain_of
from loopscope.ops.infer import of_one_type
from loopscope.ops.registration import conflict, name_problem, problem
from loopscope.ops.verification import verified

ENTRY_POINTS = "loopscope.operations"
"""Group of the package entry points; each names a module with ``OPERATIONS``."""


_FILES: dict[str, str] = {}


def install(operations: Iterable[Operation], *, replace: bool = False) -> tuple[Operation, ...]:
    """Adds operations to what every model of this process may use; do it before models are run.

    ``EngineError`` when one has a name that OpenVINO's opsets or ONNX's domains have, or a name and
    version that were added before, and ``replace`` is not asked for; when a layer could mean two of
    them; or when its declaration is wrong.
    """
    given = tuple(operations)
    for operation in given:
        if not isinstance(operation, Operation):
            raise EngineError(f"OPERATIONS holds {operation!r}, expected loopscope.Operation")
        told = name_problem(operation)
        if told:
            raise EngineError(f"an operation {told}")
        told = (
            problem(operation)
            or ("" if replace else _taken(operation))
            or conflict(operation, CATALOGUE, given)
        )
        if told:
            raise EngineError(f"operation {operation.title} {told}")
    added = tuple(of_one_type(operation) for operation in given)
    try:
        CATALOGUE.install(added, replace=replace)
    except ValueError as error:
        raise EngineError(str(error)) from None
    return added


def _taken(operation: Operation) -> str:
    """Whose operation has that name, as the end of a sentence: in an ONNX model, an added one
    stands for all of its name.
    """
    openvino = [
        one for one in CATALOGUE.versions(operation.name) if CATALOGUE.category_of(one) != "custom"
    ]
    domain = "" if openvino else domain_of(operation.name)
    if not openvino and not domain:
        return ""
    whose = "OpenVINO's opsets" if openvino else f"the ONNX domain {domain!r}"
    return f"has a name that exists in {whose}: give it another name, or install it in Python with replace=True"


def install_file(path: str | Path, *, replace: bool = False) -> tuple[Operation, ...]:
    """Runs a Python file that the local user named, and installs its ``OPERATIONS``;
    ``EngineError`` says what is wrong with it.
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
    installed = install(_declared(module, str(file)), replace=replace)
    _FILES[file.stem] = file.read_text(encoding="utf-8")
    return installed


def installed_files() -> Mapping[str, str]:
    """The text of every file whose operations this process has, by the file's name without
    ``.py``: what other processes need for them.
    """
    return dict(_FILES)


def install_packages() -> tuple[Operation, ...]:
    """Installs the operations of every installed package that has an entry point in the group
    ``loopscope.operations``.
    """
    found: list[Operation] = []
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            module = entry.load()
        except Exception as error:
            raise EngineError(
                f"the package entry point {entry.name!r} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        found += install(_declared(module, f"entry point {entry.name!r}"))
    return tuple(found)


def _declared(module: ModuleType, where: str) -> tuple[Operation, ...]:
    declared = getattr(module, "OPERATIONS", None)
    if not isinstance(declared, (tuple, list)) or not declared:
        raise EngineError(f"{where}: it declares no OPERATIONS, a tuple of loopscope.Operation")
    return tuple(declared)


def verify(operation: Operation, *inputs: Any, **attributes: object) -> Any:
    """Calls an operation's kernel as a run does, and gives what it returns: one line of a test of
    one's own operation.

        assert verify(ZERO_OUT, [5, 4, 3], keep=1).tolist() == [5, 0, 0]

    ``inputs``: arrays or lists, None where one is left out; ``attributes`` by keyword, as
    ``builder.ops`` takes them. The operation need not be installed. ``EngineError`` when its
    declaration is wrong, when inputs or attributes are not what it declares, when the kernel fails,
    writes into its inputs, gives two answers, or gives anything but arrays of element types; and
    when its shape function fails or says another type or shape, whether it is told values, shapes,
    ranks, types or nothing.
    """
    return verified(operation, inputs, attributes)


def by_element_type(kernels: Mapping[ElementType, Kernel]) -> Kernel:
    """One kernel out of several, chosen by the element type of the first input."""

    def kernel(*arrays: Array, **attributes: Any) -> Any:
        element_type = ElementType.of(arrays[0])
        chosen = kernels.get(element_type)
        if chosen is None:
            raise ValueError(
                f"there is no kernel for {element_type}, only for {', '.join(str(one) for one in kernels)}"
            )
        return chosen(*arrays, **attributes)

    kernel.__doc__ = next(iter(kernels.values())).__doc__
    return kernel
