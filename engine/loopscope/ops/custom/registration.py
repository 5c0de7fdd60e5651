"""Checks of an operation's declaration at installation, before a model uses it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import get_args

from loopscope.ir.element_type import ElementType
from loopscope.ops.attribute_text import ITEMS, AttributeKind, is_of, written
from loopscope.ops.catalogue import Catalogue
from loopscope.ops.declare import REQUIRED, Attribute, AttributeProblem, Operation, value_of
from loopscope.ops.port_meanings import named_inputs

_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*")
_ATTRIBUTE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_KINDS = tuple(kind for group in get_args(AttributeKind) for kind in get_args(group))
_NUMBERS = ("int", "float", "ints", "floats")
_TENSORS = ("tensor", "tensors")


def declaration_problem(operation: Operation) -> str:
    """Return the first fault of a declaration (name apart), as the end of a sentence about the
    operation; empty if it is right.
    """
    checks: tuple[Callable[[Operation], str], ...] = (
        _check_opsets,
        _check_counts,
        _check_types,
        _check_attributes,
        _check_kernel,
        _check_docs,
    )
    return next((message for check in checks if (message := check(operation))), "")


def name_problem(operation: Operation) -> str:
    """Return the fault of the operation's name, as the end of a sentence without that name; empty
    if the name is right.
    """
    name: object = operation.name
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return (
            f"is called {name!r}, expected CamelCase: a capital letter, then letters, "
            "digits and underscores"
        )
    return ""


def conflict(operation: Operation, catalogue: Catalogue, beside: Iterable[Operation] = ()) -> str:
    """Return a clash with an operation that a layer or a call could also mean, as the end of a
    sentence.

    ``beside`` are the operations that are installed together with this one. Empty if nothing
    clashes.
    """
    same_title = [
        candidate
        for candidate in beside
        if candidate is not operation and candidate.title.lower() == operation.title.lower()
    ]
    if same_title:
        return "is declared twice"
    for other in (*beside, *catalogue):
        if other.title.lower() == operation.title.lower():
            continue
        if other.name.lower() == operation.name.lower() and _share_opset(operation, other):
            where = (
                f"version {other.opset!r}"
                if other.opset
                else f"opset{other.opsets[0]} to opset{other.opsets[1]}"
            )
            return (
                f"is in {where}, and so is {other.title}, so a layer could mean either: "
                "give each version an `opset` of its own"
            )
        if other.name.lower() != operation.name.lower() and _without_underscores(
            other.name
        ) == _without_underscores(operation.name):
            return (
                f"differs from {other.name} by underscores alone, so a call of "
                "builder.ops could mean either: give it another name"
            )
    return ""


def _share_opset(operation: Operation, other: Operation) -> bool:
    if operation.opset or other.opset:
        return operation.opset == other.opset
    return operation.opsets[0] <= other.opsets[1] and other.opsets[0] <= operation.opsets[1]


def _without_underscores(name: str) -> str:
    return name.replace("_", "").lower()


def _check_opsets(operation: Operation) -> str:
    version: object = operation.version
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        return f"has the version {version!r}, expected a whole number of at least 1"
    first, last = operation.opsets
    if not first <= last:
        return f"is in opset{first} to opset{last}, expected the first one first"
    opset: object = operation.opset
    if not isinstance(opset, str) or not opset.isprintable() or opset != opset.strip():
        return (
            f"has the opset {opset!r}, expected the text that layers have as their "
            "version, without control characters"
        )
    return ""


def _check_counts(operation: Operation) -> str:
    lower, upper = operation.inputs
    if lower < 0 or (upper is not None and upper < lower):
        return f"takes {lower} to {upper} inputs, expected the smaller number first"
    if operation.outputs is not None and operation.outputs < 0:
        return f"has {operation.outputs} outputs, expected at least 0"
    return ""


def _check_types(operation: Operation) -> str:
    types: tuple[object, ...] = operation.types
    for number, element_types in enumerate(types):
        if (
            not isinstance(element_types, frozenset)
            or not element_types
            or not all(isinstance(element, ElementType) for element in element_types)
        ):
            return (
                f"has the types {element_types!r} for input {number}, expected a "
                "frozenset of element types"
            )
    return "" if types else "has no `types`, expected a frozenset of element types for its inputs"


def _check_attributes(operation: Operation) -> str:
    keywords = {"name": "what builder.ops calls the name of a node"}
    keywords |= {"state": "the state of a stateful kernel"} if operation.stateful else {}
    keywords |= {"outputs": "the number of outputs"} if operation.counts_outputs else {}
    attributes: tuple[object, ...] = operation.attributes
    for attribute in attributes:
        if not isinstance(attribute, Attribute):
            return f"has the attribute {attribute!r}, expected loopscope.ops.Attribute"
        name: object = attribute.name
        if not isinstance(name, str) or not _ATTRIBUTE_NAME.fullmatch(name):
            return (
                f"has an attribute called {name!r}, expected a letter, then letters, "
                "digits, underscores and hyphens"
            )
        if attribute.keyword in keywords:
            return (
                f"has an attribute {attribute.name!r}, and {attribute.keyword!r} is already "
                f"{keywords[attribute.keyword]}"
            )
        keywords[attribute.keyword] = f"the keyword of its attribute {attribute.name!r}"
        message = _check_attribute(attribute)
        if message:
            return f"has an attribute {attribute.name!r} {message}"
    return ""


def _check_attribute(attribute: Attribute) -> str:
    kind = attribute.kind
    if kind not in _KINDS:
        return f"of the kind {kind!r}, expected one of {', '.join(_KINDS)}"
    item = ITEMS.get(kind, kind)
    if attribute.allowed and kind in _TENSORS:
        return "of tensors with `allowed` values, expected none: check them in the kernel"
    wrong = [value for value in attribute.allowed if not is_of(item, value)]
    if wrong:
        return f"that allows {wrong[0]!r}, which is not of the kind {item!r}"
    if attribute.least is not None and kind not in _NUMBERS:
        return (
            f"of the kind {kind!r} with `least`, expected a kind of numbers: {', '.join(_NUMBERS)}"
        )
    if attribute.fewest and kind not in ITEMS:
        return f"of the kind {kind!r} with `fewest`, expected a kind of lists: {', '.join(ITEMS)}"
    if attribute.fewest < 0:
        return f"with `fewest` {attribute.fewest}, expected at least 0"
    return _check_default(attribute)


def _check_default(attribute: Attribute) -> str:
    default = attribute.default
    if default is REQUIRED or default is None:
        return ""
    if not is_of(attribute.kind, default):
        return (
            f"of the kind {attribute.kind!r} with the default {default!r}, which is not "
            "of that kind"
        )
    try:
        value_of(attribute, default)
    except AttributeProblem:
        return (
            f"with the default {written(attribute.kind, default)!r}, which its own "
            "constraints refuse"
        )
    return ""


def _check_kernel(operation: Operation) -> str:
    kernel: object = operation.kernel
    if kernel is None:
        return "has no kernel"
    if not callable(kernel):
        return f"has the kernel {kernel!r}, expected a function"
    rule: object = operation.infer
    if rule is not None and not callable(rule):
        return f"has the shape function {rule!r}, expected a function"
    keywords: dict[str, object] = {attribute.keyword: None for attribute in operation.attributes}
    keywords |= {"state": 0} if operation.stateful else {}
    keywords |= {"outputs": 1} if operation.counts_outputs else {}
    try:
        signature = inspect.signature(kernel)
    except (TypeError, ValueError):  # Functions written in C may have no signature.
        return ""
    lower, upper = operation.inputs
    for count in {lower, upper if upper is not None else lower + 8}:
        try:
            signature.bind_partial(**keywords)
        except TypeError as error:
            return f"has a kernel that does not take its attributes as keywords: {error}"
        try:
            signature.bind(*[None] * count, **keywords)
        except TypeError as error:
            return f"has a kernel that does not take {count} input{'s' * (count != 1)}: {error}"
    return ""


def _check_docs(operation: Operation) -> str:
    names = named_inputs(operation)
    unknown = [name for name in operation.input_docs if names and name not in names]
    if unknown:
        return (
            f"documents an input {unknown[0]!r}, and the inputs of its kernel are "
            f"{', '.join(names)}"
        )
    if operation.outputs is not None and len(operation.output_docs) > operation.outputs:
        return f"documents {len(operation.output_docs)} outputs, and has {operation.outputs}"
    texts = (
        operation.doc,
        *operation.input_docs.values(),
        *operation.output_docs.values(),
        *(item.doc for item in operation.attributes),
    )
    wrong: list[object] = [item for item in texts if not isinstance(item, str)]
    return f"has the documentation {wrong[0]!r}, expected text" if wrong else ""
