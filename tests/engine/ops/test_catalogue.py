"""The catalogue against what the installed OpenVINO can create: nothing missing, nothing
invented, nothing said twice.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache, partial
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino.utils.node_factory import NodeFactory

from loopscope.ir.element_type import ElementType
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import REQUIRED, Operation, Role
from loopscope.ops.onnx.table import ROWS as ONNX_ROWS

OPSETS = range(1, 18)
SPELLED_IN_XML = {"Constant": "Const", "Relu": "ReLU", "PRelu": "PReLU", "Softmax": "SoftMax"}
"""Four names that the XML spells unlike the C++ type."""


@cache
def openvinos() -> dict[tuple[str, int], tuple[int, int]]:
    """First and last opset of each (name as in the XML, version) that some opset of the
    installed library creates.
    """
    found: dict[tuple[str, int], list[int]] = {}
    names = sorted(_classes() | {_in_library(operation.name) for operation in CATALOGUE})
    for opset in OPSETS:
        factory = NodeFactory(f"opset{opset}")
        for name in names:
            try:
                info = factory.create(name).get_type_info()
            except RuntimeError:
                continue
            key = (
                SPELLED_IN_XML.get(info.name, info.name),
                int(info.version_id.removeprefix("opset")),
            )
            found.setdefault(key, []).append(opset)
    # The factory makes no constants, though each opset has them.
    return {key: (min(opsets), max(opsets)) for key, opsets in found.items()} | {
        ("Const", 1): (1, 17)
    }


def _classes() -> set[str]:
    """Names of classes in the namespaces of operations, from the mangled symbols of the library."""
    library = next(Path(ov.__file__).parent.glob("libs/*openvino.*"))
    names = set[str]()
    for digits, text in re.findall(
        rb"2ov2op[0-9]v([0-9]+)([A-Z][A-Za-z0-9]{1,60})", library.read_bytes()
    ):
        # The digits are the namespace's version and the length of the name, with nothing between
        # them.
        names.update(text[: int(digits[cut:])].decode() for cut in range(1, len(digits)))
    return names


def _in_library(name: str) -> str:
    return {ours: theirs for theirs, ours in SPELLED_IN_XML.items()}.get(name, name)


def test_nothing_is_missing_and_nothing_invented() -> None:
    ours = {
        (operation.name, operation.version): operation.opsets
        for operation in CATALOGUE
        if not operation.opset
    }
    assert len(openvinos()) >= 245
    assert sorted(openvinos().keys() - ours.keys()) == [], "add rows for these of OpenVINO"
    assert sorted(ours.keys() - openvinos().keys()) == [], "rows of what OpenVINO does not have"
    assert {key: opsets for key, opsets in ours.items() if openvinos()[key] != opsets} == {}


def test_no_opset_holds_two_versions_of_an_operation() -> None:
    held = Counter(
        (row.name.lower(), opset)
        for row in CATALOGUE
        for opset in range(row.opsets[0], row.opsets[1] + 1)
    )
    assert [place for place, count in held.items() if count > 1] == []


@pytest.mark.parametrize(
    ("opset", "title"),
    [
        ("opset1", "ShapeOf-1"),
        ("opset8", "ShapeOf-3"),
        ("opset18", None),
        ("opset0", None),
        ("1", None),
        ("opset01", None),
        ("", None),
    ],
)
def test_an_operation_is_found_by_the_opset_as_it_is_written(opset: str, title: str | None) -> None:
    found = CATALOGUE.find("shapeof", opset)
    assert (found and found.title) == title


@pytest.mark.parametrize("operation", list(CATALOGUE), ids=lambda operation: operation.title)
def test_a_row_and_its_kernel_fit(operation: Operation) -> None:
    assert operation.page.count("/") == (
        0 if operation.opset else 1
    )  # our own have no page in the specification
    assert operation.types
    assert all(operation.types)
    if operation.role is not Role.COMPUTE:
        assert operation.kernel is None
        return
    assert operation.kernel is not None
    assert operation.summary.endswith("."), "the kernel's docstring begins with a sentence"
    assert operation.infer is not None, "give the row a shape function: infer="
    parameters = inspect.signature(operation.kernel).parameters.values()
    expected = {attribute.keyword for attribute in operation.attributes}
    expected |= {
        name
        for name, asked in (("state", operation.stateful), ("outputs", operation.counts_outputs))
        if asked
    }
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        keywords = {
            parameter.name: parameter.default
            for parameter in parameters
            if parameter.kind is parameter.KEYWORD_ONLY
        }
        assert expected <= keywords.keys()
        # Versions may share a kernel: what this one lacks then has a default.
        assert {
            name for name, default in keywords.items() if default is inspect.Parameter.empty
        } <= expected
    positional = [
        parameter for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY
    ]
    if not any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        needed = sum(parameter.default is parameter.empty for parameter in positional)
        assert needed <= operation.inputs[0]
        assert operation.inputs[1] is not None
        assert len(positional) >= operation.inputs[1]


@pytest.mark.parametrize("operation", list(CATALOGUE), ids=lambda operation: operation.title)
def test_defaults_are_allowed_values(operation: Operation) -> None:
    for attribute in operation.attributes:
        if attribute.default is not REQUIRED and attribute.allowed:
            each = (
                attribute.default if isinstance(attribute.default, tuple) else (attribute.default,)
            )
            assert set(each) <= set(attribute.allowed), attribute.name


WITH_SYMBOLS = [operation for operation in CATALOGUE if operation.symbol]


@pytest.mark.parametrize("operation", WITH_SYMBOLS, ids=lambda operation: operation.title)
def test_a_symbol_gives_the_very_result_of_the_kernel(operation: Operation) -> None:
    """On numpy scalars, on arrays, and on both together, for every element type of the row."""
    assert operation.kernel is not None
    compute = eval(
        f"lambda *given: {operation.symbol.format(*(f'given[{index}]' for index in range(operation.inputs[0])))}"
    )
    keywords = {attribute.keyword: attribute.default for attribute in operation.attributes} | dict(
        operation.symbol_when
    )
    for element_type in operation.types[0]:
        if element_type.dtype.names or element_type is ElementType.STRING:
            assert operation.identity
            continue
        left, right = (
            np.array(numbers, np.float32).astype(element_type.dtype)
            for numbers in ([1, 0, 3, 2], [1, 2, 1, 0])
        )
        for given in (
            (left, right),
            (left[0], right[1]),
            (left[2], right),
            (left.reshape(4, 1), right),
        ):
            with np.errstate(all="ignore"):
                expected, got = (
                    function(*given[: operation.inputs[0]])
                    for function in (partial(operation.kernel, **keywords), compute)
                )
            assert (got.dtype, got.shape, got.tobytes()) == (
                expected.dtype,
                expected.shape,
                expected.tobytes(),
            ), element_type


def test_what_gives_its_input_is_written_as_its_input() -> None:
    of_onnx = [(row.name, row.identity, row.symbol) for row in ONNX_ROWS[""]]
    rows = [
        (operation.title, operation.identity, operation.symbol) for operation in CATALOGUE
    ] + of_onnx
    assert [name for name, identity, _ in rows if identity] == ["Identity-16", "Identity"]
    assert [name for name, identity, symbol in rows if identity is not (symbol == "{0}")] == []


def test_what_an_attribute_allows_is_said_in_the_same_order_in_every_process() -> None:
    command = "from loopscope.ops.catalogue import CATALOGUE; print([[a.allowed for a in one.attributes] for one in CATALOGUE])"
    printed = {
        subprocess.run(
            [sys.executable, "-c", command],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1


def test_categories_are_the_folders_of_the_spec() -> None:
    """Each row's page begins with its category, but for text, whose pages lie in the folder
    ``type``.
    """
    for operation in (one for one in CATALOGUE if not one.opset):
        folder = operation.page.partition("/")[0]
        category = CATALOGUE.category_of(operation)
        assert category == ("string" if operation.name.startswith("StringTensor") else folder), (
            operation.title
        )
