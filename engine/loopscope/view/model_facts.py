"""Facts about a model that its file states: format, producer, opsets, documentation, metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from loopscope.errors import neutral
from loopscope.ir.model import Model

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
