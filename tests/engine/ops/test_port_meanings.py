"""Each input, output and attribute of a built-in operation has a line in the table of meanings,
and the table has no other lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from loopscope.ops.catalogue import CATEGORIES
from loopscope.ops.declare import Operation
from loopscope.ops.input_names import input_names
from loopscope.ops.microsoft import MICROSOFT
from loopscope.ops.microsoft.catalogue import MEANINGS
from loopscope.ops.port_meanings import EVERY, Meanings, table

OPENVINO = [operation for operations in CATEGORIES.values() for operation in operations]
OPERATIONS = [*OPENVINO, *MICROSOFT.values()]
TABLES = [(table(), OPENVINO), (table(MEANINGS), list(MICROSOFT.values()))]
"""Each table with the operations that it describes."""


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.title)
def test_each_port_and_attribute_has_a_line(operation: Operation) -> None:
    assert list(operation.input_docs) == list(input_names(operation))
    if operation.outputs is None:
        assert operation.output_docs
    else:
        assert len(operation.output_docs) == operation.outputs
    assert [entry.name for entry in operation.attributes if not entry.doc] == []


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
    for (operation, _), entries in (*table().items(), *table(MEANINGS).items()):
        for name, text in entries.items():
            assert re.fullmatch(r"\S.{3,130}\.", text), f"{operation} {name}: {text}"
            assert len(text.split()) <= 25, f"{operation} {name}: {text}"
