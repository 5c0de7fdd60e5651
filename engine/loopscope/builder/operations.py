"""Functions of operations, created from their declarations on first use.

``load_op_library`` returns those of the custom operations of a file.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from loopscope.builder.graph_builder import graph_of
from loopscope.builder.naming import letters, snake_case
from loopscope.builder.python_values import expected
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.custom import install_file
from loopscope.ops.declare import REQUIRED, Operation, Role
from loopscope.ops.own_operations import OPSET
from loopscope.ops.port_meanings import input_names, input_text

Function = Callable[..., Any]
_OTHER_FUNCTIONS = {
    Role.PARAMETER: "graph.parameter",
    Role.CONSTANT: "graph.constant",
    Role.RESULT: "graph.model",
    Role.REGION: "while_loop or cond",
}


def buildable(catalogue: Catalogue) -> Iterator[Operation]:
    """Return the operations that are functions of ``builder.ops``.

    Parameters, constants, Results, loops and branches are excluded; other functions build them.
    """
    return (operation for operation in catalogue if operation.role not in _OTHER_FUNCTIONS)


class Operations:
    """The operations of a catalogue as functions: ``ops.reduce_sum(x, [0], keep_dims=True)``.

    Names are those of the specification in snake_case, where a run of capitals is one word:
    ``reduce_sum``, ``gru_cell``, ``gather_nd``. A few are one word: ``matmul``, ``relu``,
    ``softmax``, ``topk``. Other spellings with the same letters also work: ``ops.MatMul``,
    ``ops.mat_mul``. Each function is the newest version; ``ops.version("Gather", 7)`` returns a
    particular one.

    Inputs are positional: tensors, numbers, lists or arrays. Attributes are keywords with the
    defaults of the specification. ``-`` in a name becomes ``_``, and a reserved word of Python gets
    a trailing ``_`` (``lambda_``). ``name=`` names the node.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._functions: dict[str, tuple[Operation, Function]] = {}

    def __dir__(self) -> list[str]:
        return [
            "version",
            *sorted({snake_case(operation.name) for operation in buildable(self._catalogue)}),
        ]

    def __iter__(self) -> Iterator[str]:
        return iter(
            sorted({snake_case(operation.name) for operation in buildable(self._catalogue)})
        )

    def __getattr__(self, name: str) -> Function:
        if name.startswith("_"):
            raise AttributeError(name)
        operation = self._newest(name)
        return self._function(operation)

    def version(self, name: str, version: int) -> Function:
        """Return the function of one version of an operation.

        ``BuildError`` if it does not exist; the message lists the existing versions.
        """
        candidates = [
            operation
            for operation in buildable(self._catalogue)
            if letters(operation.name) == letters(name)
        ]
        for operation in candidates:
            if operation.version == version:
                return self._function(operation)
        versions = ", ".join(operation.title for operation in candidates) or "none"
        raise BuildError(f"{name}-{version} does not exist; existing versions: {versions}")

    def _newest(self, name: str) -> Operation:
        key = letters(name)
        candidates = [operation for operation in self._catalogue if letters(operation.name) == key]
        if not candidates:
            close_names = difflib.get_close_matches(name, list(self), n=3)
            suggestion = f"did you mean {' or '.join(close_names)}? " if close_names else ""
            raise AttributeError(
                f"operation {name!r} does not exist; {suggestion}dir(ops) lists the operations, "
                "and `loopscope ops` describes them"
            )
        newest = max(candidates, key=lambda operation: operation.version)
        if newest.role in _OTHER_FUNCTIONS:
            raise AttributeError(
                f"{newest.name} is not a function of builder.ops: use "
                f"{_OTHER_FUNCTIONS[newest.role]}"
            )
        return newest

    def _function(self, operation: Operation) -> Function:
        entry = self._functions.get(operation.title)
        if (
            entry is None or entry[0] is not operation
        ):  # an operation of a user's may have been replaced
            entry = self._functions[operation.title] = (operation, function_of(operation))
        return entry[1]


def function_of(operation: Operation) -> Function:
    """Return the function that adds nodes of an operation to a graph. It returns a tensor, or a
    tuple for several outputs.
    """
    caller = snake_case(operation.name)

    def function(*inputs: Any, name: str = "", **attributes: Any) -> Tensor | tuple[Tensor, ...]:
        values = _unpack(operation, inputs)
        outputs = graph_of(values, caller).apply(operation, values, attributes, name)
        return outputs[0] if operation.outputs == 1 else outputs

    function.__name__ = function.__qualname__ = caller
    function.__doc__ = documentation(operation)
    function.__dict__["__signature__"] = signature(operation)  # PEP 362
    return function


def _unpack(operation: Operation, inputs: Sequence[Any]) -> Sequence[Any]:
    """Unpack a single list argument of operations with any number of inputs: ``concat([a, b],
    axis=0)``.
    """
    if operation.inputs[1] is None and len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        return tuple(inputs[0])
    return inputs


def signature(operation: Operation) -> inspect.Signature:
    """Return the signature that ``help`` and editors show."""
    lower, upper = operation.inputs
    kind, keyword = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
    if upper is None:
        parameters = [kind("inputs", kind.VAR_POSITIONAL, annotation="Tensor")]
    else:
        parameters = [
            kind(
                name,
                kind.POSITIONAL_ONLY,
                default=kind.empty if index < lower else None,
                annotation="Tensor",
            )
            for index, name in enumerate(input_names(operation))
        ]
    for attribute in sorted(operation.attributes, key=lambda item: item.default is not REQUIRED):
        default = kind.empty if attribute.default is REQUIRED else attribute.default
        parameters.append(kind(attribute.keyword, keyword, default=default))
    parameters.append(kind("name", keyword, default="", annotation="str"))
    returned = "Tensor" if operation.outputs == 1 else "tuple[Tensor, ...]"
    return inspect.Signature(parameters, return_annotation=returned)


def documentation(operation: Operation) -> str:
    """Return a docstring: the computation, inputs, outputs, attributes with defaults and values,
    and the page of the specification.
    """
    lines = [
        operation.description if operation.doc else operation.summary or f"{operation.title}.",
        "",
    ]
    lines.append(f"Operation {operation.title}; takes {input_text(operation)}.")
    for index, name in enumerate(input_names(operation)):
        types = operation.types[min(index, len(operation.types) - 1)]
        lines.append(_line(name, _types(types), operation.input_docs.get(name, "")))
    if operation.output_docs:
        lines += [
            "",
            "Outputs:",
            *(_line(name, doc) for name, doc in operation.output_docs.items()),
        ]
    if operation.attributes:
        lines += ["", "Attributes:"]
        for attribute in operation.attributes:
            default = (
                "required" if attribute.default is REQUIRED else f"default {attribute.default!r}"
            )
            lines.append(
                _line(attribute.keyword, f"{expected(attribute)}; {default}", attribute.doc)
            )
    lines += ["", f"{_page(operation)}``BuildError`` names an invalid argument."]
    return "\n".join(lines)


def _page(operation: Operation) -> str:
    """Return the reference to the specification, or "" for a custom operation."""
    if operation.opset == OPSET:
        return "Spec page: none, because only Loopscope has this operation. "
    return f"Spec page: {operation.page}. " if operation.page else ""


def _line(name: str, *texts: str) -> str:
    return f"    {name}: {'. '.join(text for text in texts if text)}"


def _types(types: frozenset[Any]) -> str:
    return (
        "any type"
        if len(types) > 20
        else ", ".join(sorted(str(element_type) for element_type in types))
    )


_LOADED: dict[Path, tuple[str, SimpleNamespace]] = {}


def load_op_library(library_filename: str | Path) -> SimpleNamespace:
    """Install the ``OPERATIONS`` of a Python file and return a function for each, by its name in
    snake_case.

            zero_out_module = builder.load_op_library("zero_out.py")
            zero_out_module.zero_out([[1, 2], [3, 4]])

    Like ``loopscope --ops``, this runs the file, which is the caller's own code. An unchanged file
    is not loaded again. ``EngineError`` if the file is invalid, or if an operation is declared
    wrongly or already exists.
    """
    path = Path(os.path.realpath(library_filename))
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if path in _LOADED and _LOADED[path][0] == text:
        return _LOADED[path][1]
    installed = install_file(path)
    functions = SimpleNamespace(
        **{snake_case(operation.name): function_of(operation) for operation in installed}
    )
    _LOADED[path] = text, functions
    return functions
