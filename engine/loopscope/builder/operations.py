"""One function per operation, made from its declaration when it is first asked for."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from loopscope.builder.graph_builder import graph_of
from loopscope.builder.naming import letters, snake_case
from loopscope.builder.python_attributes import expected
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import REQUIRED, Operation, Role
from loopscope.ops.effects import OPSET
from loopscope.ops.input_names import input_names, input_text

Function = Callable[..., Any]
_ELSEWHERE = {
    Role.PARAMETER: "graph.parameter",
    Role.CONSTANT: "graph.constant",
    Role.RESULT: "graph.model",
    Role.REGION: "while_loop or cond",
}


def buildable(catalogue: Catalogue) -> Iterator[Operation]:
    """The operations that are functions here; Parameters, constants, Results, loops and branches
    are made by other functions.
    """
    return (operation for operation in catalogue if operation.role not in _ELSEWHERE)


class Operations:
    """The operations of a catalogue as functions: ``ops.reduce_sum(x, [0], keep_dims=True)``.

    Names are those of the spec in snake_case (a run of capitals is one word): ``reduce_sum``,
    ``gru_cell``, ``gather_nd``; a few that everybody reads as one word are one (``matmul``,
    ``relu``, ``softmax``, ``topk``). Any other way to write the same letters is understood:
    ``ops.MatMul``, ``ops.mat_mul``. Each is the newest version; ``ops.version("Gather", 7)`` is a
    given one.

    Inputs are positional: tensors, numbers, lists or arrays. Attributes are keywords with the
    defaults of the spec; ``-`` in a name becomes ``_``, and a name that Python keeps for itself
    gets ``_`` after it (``lambda_``). ``name=`` names the node.
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
        """The function of one version of an operation; ``BuildError`` names those that there
        are.
        """
        there = [
            operation
            for operation in buildable(self._catalogue)
            if letters(operation.name) == letters(name)
        ]
        for operation in there:
            if operation.version == version:
                return self._function(operation)
        versions = ", ".join(operation.title for operation in there) or "nothing of that name"
        raise BuildError(f"there is no {name}-{version}; there is {versions}")

    def _newest(self, name: str) -> Operation:
        wanted = letters(name)
        found = [operation for operation in self._catalogue if letters(operation.name) == wanted]
        if not found:
            near = difflib.get_close_matches(name, list(self), n=3)
            meant = f"did you mean {' or '.join(near)}? " if near else ""
            raise AttributeError(
                f"there is no operation {name!r}; {meant}dir(ops) lists them, and `loopscope ops` what each of them does"
            )
        newest = max(found, key=lambda operation: operation.version)
        if newest.role in _ELSEWHERE:
            raise AttributeError(
                f"{newest.name} is not a function of this kind: use {_ELSEWHERE[newest.role]}"
            )
        return newest

    def _function(self, operation: Operation) -> Function:
        made = self._functions.get(operation.title)
        if (
            made is None or made[0] is not operation
        ):  # an operation of a user's may have been replaced
            made = self._functions[operation.title] = (operation, function_of(operation))
        return made[1]


def function_of(operation: Operation) -> Function:
    """The function that adds nodes of an operation to a graph: one tensor, or a tuple when it
    has several outputs.
    """
    called = snake_case(operation.name)

    def function(*inputs: Any, name: str = "", **attributes: Any) -> Tensor | tuple[Tensor, ...]:
        given = _spread(operation, inputs)
        made = graph_of(given, called).apply(operation, given, attributes, name)
        return made[0] if operation.outputs == 1 else made

    function.__name__ = function.__qualname__ = called
    function.__doc__ = documentation(operation)
    function.__signature__ = signature(operation)  # type: ignore[attr-defined]  # inspect's, unknown to typeshed
    return function


def _spread(operation: Operation, inputs: Sequence[Any]) -> Sequence[Any]:
    """Operations that take any number of inputs also take them in one list: ``concat([a, b],
    axis=0)``.
    """
    if operation.inputs[1] is None and len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        return tuple(inputs[0])
    return inputs


def signature(operation: Operation) -> inspect.Signature:
    """What ``help`` and editors show."""
    least, most = operation.inputs
    kind, keyword = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
    if most is None:
        parameters = [kind("inputs", kind.VAR_POSITIONAL, annotation="Tensor")]
    else:
        parameters = [
            kind(
                name,
                kind.POSITIONAL_ONLY,
                default=kind.empty if index < least else None,
                annotation="Tensor",
            )
            for index, name in enumerate(input_names(operation))
        ]
    for attribute in sorted(operation.attributes, key=lambda one: one.default is not REQUIRED):
        default = kind.empty if attribute.default is REQUIRED else attribute.default
        parameters.append(kind(attribute.keyword, keyword, default=default))
    parameters.append(kind("name", keyword, default="", annotation="str"))
    returned = "Tensor" if operation.outputs == 1 else "tuple[Tensor, ...]"
    return inspect.Signature(parameters, return_annotation=returned)


def documentation(operation: Operation) -> str:
    """What it computes, inputs, outputs, attributes with their defaults and values, and the page
    of the specification.
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
    lines += ["", f"{_page(operation)}``BuildError`` says which argument does not fit."]
    return "\n".join(lines)


def _page(operation: Operation) -> str:
    """Nothing for an operation of a user."""
    if operation.opset == OPSET:
        return "Spec page: none, it is Loopscope's own and no runtime knows it. "
    return f"Spec page: {operation.page}. " if operation.page else ""


def _line(name: str, *told: str) -> str:
    return f"    {name}: {'. '.join(one for one in told if one)}"


def _types(types: frozenset[Any]) -> str:
    return "any type" if len(types) > 20 else ", ".join(sorted(str(one) for one in types))
