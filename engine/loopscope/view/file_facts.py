"""Facts that a file states about a model and its nodes.

They are format, producer, opsets, documentation and metadata of the model, and the source lines of
a node, where its exporter stored them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from loopscope.errors import neutral
from loopscope.ir.model import Model, Node

_WORDS = {
    "producer_name": "producer",
    "producer_version": "producer version",
    "model_version": "model version",
    "opset_import": "opsets",
    "doc_string": "documentation",
}
"""Readable names of ONNX's fields."""
_GRAPH_WORDS = {"graph/doc_string": "documentation of the graph"}
_MAX_FACTS = 200
_MAX_NAME = 120
_MAX_TEXT = 2_000
_MAX_DEPTH = 8


def model_facts(model: Model) -> tuple[tuple[str, str], ...]:
    """Return the facts that the file states about the model, as names and texts in its order.

    Nested entries of OpenVINO's ``rt_info`` have their sections in their names. Those of an ONNX
    graph, which are not those of the model, begin with ``graph/``.
    """
    kind = "ONNX IR" if model.dialect == "onnx" else "OpenVINO IR"
    facts = [("format", f"{kind} {model.version}")]
    if model.converted_from:
        facts.append(("converted from", neutral(model.converted_from, _MAX_TEXT)))
    if model.name:
        facts.append(("name", neutral(model.name, _MAX_TEXT)))
    for content in (model.meta_data, model.rt_info):
        for name, text in flat_entries(content):
            facts.append((_WORDS.get(name, name), text))
    if model.dialect == "onnx":
        facts += [
            (_GRAPH_WORDS.get(name, name), text)
            for name, text in flat_entries(model.graph.rt_info, "graph/")
        ]
    return tuple(facts[:_MAX_FACTS])


def flat_entries(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of nested metadata with their names joined by slashes.

    >>> list(flat_entries({"a": "1", "b": {"c": {"value": "2"}}}))
    [('a', '1'), ('b/c', '2')]
    """
    waiting: list[tuple[str, object, int]] = [
        (prefix + name, entry, 0) for name, entry in reversed([*content.items()])
    ]
    while waiting:
        name, entry, depth = waiting.pop()
        if not isinstance(entry, Mapping):
            yield neutral(name, _MAX_NAME), neutral(str(entry), _MAX_TEXT)
        elif depth < _MAX_DEPTH:
            waiting += [
                (name if inner == "value" else f"{name}/{inner}", value, depth + 1)
                for inner, value in reversed([*entry.items()])
            ]


_TRACES = ("pkg.torch.onnx.stack_trace", "pkg.onnxscript.stack_trace", "stack_trace", "doc_string")
"""Metadata of a node that may contain a Python traceback, in order of preference."""
_FRAME = re.compile(
    r'File "(?P<file>[^"\n]{1,400})", line (?P<line>\d{1,9})(?:, in (?P<function>[^\n]{1,200}))?'
    r"(?:\n[ \t]+(?!File )(?P<code>[^\n]{1,400}))?"
)
"""A frame of a Python traceback."""
_SHORT_FRAME = re.compile(
    r"(?m)^(?P<file>[^\s:()][^:()\n]{0,400}\.py)\((?P<line>\d{1,9})\): (?P<function>[^\n]{1,200})$"
)
"""A frame as the TorchScript exporter writes it: ``model.py(12): forward``."""
_LIBRARIES = ("/site-packages/", "/dist-packages/", "\\site-packages\\", "/lib/python")
_MAX_LINES = 64


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the program from which a node was exported."""

    file: str
    line: int
    function: str = ""
    code: str = ""
    """Text of the line, if the exporter stored it."""

    @property
    def is_library(self) -> bool:
        """True for a line of an installed package, or of code without a file, such as
        ``<eval_with_key>.24``.
        """
        return self.file.startswith("<") or any(part in self.file for part in _LIBRARIES)


def source_lines(node: Node) -> tuple[SourceLine, ...]:
    """Return the stack of a node, outermost call first; empty if the file has none."""
    for key in _TRACES:
        text = node.rt_info.get(key)
        if not isinstance(text, str):
            continue
        matches = [*_FRAME.finditer(text)] or [*_SHORT_FRAME.finditer(text)][::-1]
        if matches:
            return tuple(_line(match.groupdict()) for match in matches[:_MAX_LINES])
    return ()


def own_source_line(node: Node) -> SourceLine | None:
    """Return the innermost line outside installed packages, else the innermost line."""
    lines = source_lines(node)
    return next(
        (line for line in reversed(lines) if not line.is_library), lines[-1] if lines else None
    )


def fused_names(node: Node) -> tuple[str, ...]:
    """Return the names of the original operations that OpenVINO merged into a node."""
    entry = node.rt_info.get("fused_names")
    text = entry.get("value", "") if isinstance(entry, Mapping) else entry
    names = str(text or "").split(",")
    return tuple(neutral(name.strip()) for name in names if name.strip() not in ("", node.name))


def _line(parts: dict[str, str | None]) -> SourceLine:
    return SourceLine(
        neutral(parts["file"] or "", 400),
        int(parts["line"] or 0),
        neutral(parts.get("function") or "", 200),
        neutral((parts.get("code") or "").strip(), 400),
    )
