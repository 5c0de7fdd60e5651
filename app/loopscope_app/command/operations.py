"""``loopscope ops``: the table of the operations that Loopscope can run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from loopscope.errors import EngineError, counted
from loopscope.ir import (
    ANY_TYPE,
    FLOATS,
    INDEX_TYPES,
    INTEGERS,
    NUMERIC,
    REAL_FLOATS,
    SIGNED,
    UNSIGNED,
    ElementType,
)
from loopscope.ops import CATALOGUE, Operation, operation_data, standard_operations
from loopscope.ops.microsoft import DOMAIN, MICROSOFT
from loopscope_app.command.command_line import add_json, command_parser

_GROUPS = (
    (ANY_TYPE, "any"),
    (NUMERIC, "numeric"),
    (FLOATS, "float"),
    (REAL_FLOATS, "f64 f32 f16 bf16"),
    (INTEGERS, "integer"),
    (SIGNED, "signed"),
    (UNSIGNED, "unsigned"),
    (INDEX_TYPES, "i64 i32"),
)


def main(words: Sequence[str]) -> int:
    """Print the operations whose name or category contains a word. Raise ``EngineError`` if none
    does.

    The table has the operations of OpenVINO, of ONNX, and those that ONNX Runtime adds to ONNX.
    """
    parser = command_parser(
        "ops",
        "List the operations that can be run: versions, category, types of the first input. If "
        "WORD is the name of an operation, also explain what it computes, and the meaning of its "
        "inputs, outputs and attributes.",
    )
    parser.add_argument(
        "word", nargs="?", default="", metavar="WORD", help="part of a name or category"
    )
    add_json(parser, "print the declarations as JSON, with the meaning of each part")
    options = parser.parse_args(words)
    word = options.word.lower()
    entries = [
        *((operation, CATALOGUE.category_of(operation)) for operation in CATALOGUE),
        *standard_operations(),
        *((operation, DOMAIN) for operation in MICROSOFT.values()),
    ]
    rows = [row for row in table(entries) if word in row[0].lower() or word in row[2]]
    if not rows:
        raise EngineError(f"no operation that can be run has {word!r} in its name or category")
    if options.json:
        selected = {(row[0], row[2]) for row in rows}
        texts = [
            json.dumps(operation_data(operation, category))
            for operation, category in entries
            if (operation.name, category) in selected
        ]
        print("[" + ",\n ".join(texts) + "]")
        return 0
    widths = [max(len(row[column]) for row in [*rows, HEADER]) for column in range(3)]
    for row in (HEADER, *rows):
        print(
            "  ".join(
                [*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3]]
            )
        )
    if len(rows) == 1 or any(row[0].lower() == word for row in rows):
        name = next((row[0] for row in rows if row[0].lower() == word), rows[0][0])
        for category in (row[2] for row in rows if row[0] == name):
            same = [each for each, other in entries if (each.name, other) == (name, category)]
            print(*meaning_lines(same, category), sep="\n")
    versions = sum(row[1].count(",") + 1 for row in rows)
    print(f"{counted(versions, 'version')} of {counted(len(rows), 'operation')}")
    return 0


HEADER = ("operation", "versions", "category", "types")


def table(entries: Iterable[tuple[Operation, str]]) -> list[tuple[str, str, str, str]]:
    """Return a row per operation type and category: name, versions, category, element types of the
    first input.
    """
    versions: dict[tuple[str, str], list[Operation]] = {}
    for operation, category in entries:
        versions.setdefault((operation.name, category), []).append(operation)
    return [
        (
            name,
            ", ".join(str(operation.version) for operation in rows),
            category,
            type_words(rows[-1].types[0] if rows[-1].types else ANY_TYPE),
        )
        for (name, category), rows in sorted(versions.items(), key=lambda item: item[0][0].lower())
    ]


def meaning_lines(versions: Sequence[Operation], category: str) -> list[str]:
    """Return what an operation computes and the meaning of its inputs, outputs and attributes.

    Versions with different meanings get separate blocks. A block names the domain, if the category
    is one.
    """
    domain = f" of {category}" if "." in category else ""
    blocks: dict[tuple[str, ...], list[int]] = {}
    for operation in versions:
        data = operation_data(operation, "")
        parts = (
            ("inputs", data["inputs"]["each"]),
            ("outputs", data["outputs"]["each"]),
            ("attributes", data["attributes"]),
        )
        summary = operation.summary.replace("``", "")
        block = [f"  {summary}"] if summary else []
        for title, entries in parts:
            block += [f"  {title}:"] if entries else []
            block += [
                f"    {entry['name']}: {entry['doc']}" if entry["doc"] else f"    {entry['name']}"
                for entry in entries
            ]
        blocks.setdefault(tuple(block), []).append(operation.version)
    return [
        line
        for block, numbers in blocks.items()
        for line in ("", f"{versions[0].name}-{', '.join(map(str, numbers))}{domain}", *block)
    ] + [""]


def type_words(types: frozenset[ElementType]) -> str:
    """Return a short description of a set of element types.

    >>> type_words(ANY_TYPE), type_words(INTEGERS | {ElementType.BOOLEAN})
    ('any', 'integer boolean')
    """
    plain = " ".join(element_type.value for element_type in ElementType if element_type in types)
    described = [plain]
    for group, words in _GROUPS:
        if types >= group:
            rest = " ".join(
                element_type.value for element_type in ElementType if element_type in types - group
            )
            described.append(f"{words} {rest}".strip())
        elif types < group:
            missing = " ".join(
                element_type.value for element_type in ElementType if element_type in group - types
            )
            described.append(f"{words} without {missing}")
    return min(described, key=len)
