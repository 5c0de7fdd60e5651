"""Each input, output and attribute of a built-in operation has a line in the table of meanings,
and the table has no other lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from loopscope.ops import onnx_catalogue, standard_operations
from loopscope.ops.catalogue import CATEGORIES
from loopscope.ops.declare import Operation
from loopscope.ops.microsoft import MEANINGS, MICROSOFT
from loopscope.ops.port_meanings import EVERY, Meanings, input_names, table

OPENVINO = [operation for operations in CATEGORIES.values() for operation in operations]
OPERATIONS = [*OPENVINO, *MICROSOFT.values()]
ONNX = [
    operation for operation, domain in standard_operations() if domain in ("ai.onnx", "ai.onnx.ml")
]
TABLES = [(table(), OPENVINO), (table(MEANINGS), list(MICROSOFT.values()))]
"""Each table with the operations that it describes."""


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.title)
def test_each_port_and_attribute_has_a_line(operation: Operation) -> None:
    advice = f"add the lines of {operation.name} to port_meanings.txt of its dialect"
    assert list(operation.input_docs) == list(input_names(operation)), advice
    if operation.outputs is None:
        assert operation.output_docs, advice
    else:
        assert len(operation.output_docs) == operation.outputs, advice
    assert [entry.name for entry in operation.attributes if not entry.doc] == [], advice


@pytest.mark.parametrize(("lines", "operations"), TABLES, ids=["OpenVINO", "com.microsoft"])
def test_the_table_has_no_line_that_no_operation_shows(
    lines: Mapping[tuple[str, str], Meanings], operations: Sequence[Operation]
) -> None:
    shown = {
        (operation.name, "in", name, text)
        for operation in operations
        for name, text in operation.input_docs.items()
    }
    shown |= {
        (operation.name, "out", name, text)
        for operation in operations
        for name, text in operation.output_docs.items()
    }
    shown |= {
        (operation.name, "attr", entry.name, entry.doc)
        for operation in operations
        for entry in operation.attributes
    }
    texts = {row[1:] for row in shown}
    for (operation, kind), entries in lines.items():
        for name, text in entries.items():
            used = (
                (kind, name, text) in texts
                if operation == EVERY
                else (operation, kind, name, text) in shown
            )
            assert used, f"{operation} {kind} {name}"


def test_a_line_is_a_short_sentence() -> None:
    tables = (table(), table(MEANINGS), table(onnx_catalogue.TEXTS))
    for (operation, _), entries in (row for texts in tables for row in texts.items()):
        for name, text in entries.items():
            assert re.fullmatch(r"\S.{3,130}\.", text), f"{operation} {name}: {text}"
            assert len(text.split()) <= 25, f"{operation} {name}: {text}"


def test_each_version_of_onnx_has_all_texts() -> None:
    without = {
        (operation.title, name)
        for operation in ONNX
        for name, text in (
            ("", operation.doc),
            *((name, operation.input_docs.get(name)) for name in operation.spec_inputs),
            *operation.output_docs.items(),
            *((entry.name, entry.doc) for entry in operation.attributes),
        )
        if not text
    }
    assert without == set()


def test_the_table_of_onnx_has_no_line_that_no_version_shows() -> None:
    shown = {
        (operation.name, kind, name)
        for operation in ONNX
        for kind, names in (
            ("doc", ["-"]),
            ("in", operation.input_docs),
            ("out", operation.output_docs),
            ("attr", [entry.name for entry in operation.attributes]),
        )
        for name in names
    }
    lines = {
        (operation, kind, name)
        for (operation, kind), entries in table(onnx_catalogue.TEXTS).items()
        for name in entries
    }
    assert lines - shown == set()
