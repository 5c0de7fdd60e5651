"""Node data: a number or text per node, drawn as colours of boxes.

Files are in the format of Model Explorer's node data: ``{"results": {key: {"value": 0.5}}}`` for
one graph, or by graph (``{"main": {"results": ...}}``). The short form ``{key: 0.5}`` is read too.
A key is an address, or the name of a node or of its output. An address may name an iteration
(``main/loop[2]/body/add``), and is then valid in that iteration only. Colours in a file are
ignored, because Loopscope's colours are readable in light and dark themes.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from loopscope.debug.run import Run
from loopscope.errors import ReadError, listed, neutral, shorten
from loopscope.ir.address import ROOT, graphs, labels
from loopscope.ir.model import Model
from loopscope.object_cache import cache_by_object
from loopscope.view.graph import GraphView, ViewNode, without_iterations
from loopscope.view.preview import number_text

MOST_BYTES = 32 * 2**20
MOST_ENTRIES = 200_000
LONGEST_TEXT = 80
LEVELS = 8
OTHERS = "others"
_GRADIENT = [{"stop": 0, "bgColor": "white"}, {"stop": 1, "bgColor": "orange"}]
_ADDRESSES = "addresses in Loopscope"
"""Key of the results by address, which is not a graph name.

Model Explorer ignores it. If it is present, Loopscope reads only these results.
"""
_BODY_ATTRIBUTES = {"then": "then_branch", "else": "else_branch"}
"""ONNX attribute names of bodies, by Loopscope's names."""
_MAX_NAMED = 3
"""Largest number of unmatched keys in a message."""
Datum = float | str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class NodeData:
    """A number or a text for each of some places."""

    title: str
    everywhere: Mapping[str, Datum]
    """Values by static address."""
    by_iteration: Mapping[str, Datum]
    """Values by concrete address."""
    kinds: tuple[str, ...]
    """Most frequent texts, with ``OTHERS`` as the last if there are more than ``LEVELS``; empty for
    numbers.
    """
    low: float
    high: float
    unmatched: tuple[str, ...]
    """Keys that do not match any node of the model."""
    palette: Literal["text", "change"] = "text"
    """Colours of the texts; ``change`` has green, red and amber."""
    mixed: str = ""
    """Text of a folded box whose nodes have different texts; empty leaves it without colour."""

    def unmatched_words(self, source: str) -> str:
        """Return a sentence about the keys that match no node; empty if all keys match. ``of``
        names the file.
        """
        if not self.unmatched:
            return ""
        examples = listed([shorten(key) for key in self.unmatched[:_MAX_NAMED]], _MAX_NAMED)
        keys = (
            "1 key of {} names"
            if len(self.unmatched) == 1
            else f"{len(self.unmatched):,} keys of {{}} name"
        )
        return f"{keys.format(shorten(source))} nothing in this model, such as {examples}"

    @property
    def scale(self) -> list[str]:
        """Legend: title, ``number`` with the ends of the scale, or the palette with the texts in
        colour order.
        """
        if self.kinds:
            return [self.title, self.palette, *self.kinds]
        return [self.title, "number", number_text(self.low), number_text(self.high)]

    def level(self, value: Datum) -> int:
        """Return the colour level of a value, 1 to ``LEVELS``."""
        if isinstance(value, str):
            return 1 + (self.kinds.index(value) if value in self.kinds else len(self.kinds) - 1)
        span = self.high - self.low
        return LEVELS if not span > 0 else 1 + round((LEVELS - 1) * (value - self.low) / span)


Given = str | os.PathLike[str] | Mapping[str, Any]
"""Source of node data: a JSON file, or a mapping from address or name to number or text."""


def given_node_data(source: Given, model: Model) -> NodeData:
    """Read node data from a file or a mapping.

    ``ReadError`` as for ``read_node_data``, and if the file cannot be read.
    """
    if isinstance(source, Mapping):
        return read_node_data(as_json(source), model, "overlay")
    path = Path(source)
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise ReadError(
            f"the overlay {shorten(str(path))} cannot be read: {problem.strerror or problem}"
        ) from None
    return read_node_data(content, model, path.stem)


def as_json(values: Mapping[str, Any]) -> bytes:
    """Return a mapping of numbers (also numpy's) and texts as JSON. ``ReadError`` for other
    values.
    """
    entries = {
        str(key): value if isinstance(value, str) else _number(key, value)
        for key, value in values.items()
    }
    return json.dumps(entries).encode()


def _number(key: object, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ReadError(
            f"an overlay has a number or a text for each node, but for {shorten(str(key))}"
            f" a {type(value).__name__}"
        ) from None


def read_node_data(content: bytes, model: Model, title: str) -> NodeData:
    """Parse node data from an untrusted file.

    ``ReadError`` if it is too large, is not node data, or matches no node of the model.
    """
    if len(content) > MOST_BYTES:
        raise ReadError(
            f"the node data has {len(content) / 2**20:.0f} MB:"
            f" at most {MOST_BYTES // 2**20} are read"
        )
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ReadError(f"the node data is not JSON: {shorten(str(error))}") from None
    entries = dict(_entries(data))
    if len(entries) > MOST_ENTRIES:
        raise ReadError(
            f"the node data is of {len(entries):,} nodes: at most {MOST_ENTRIES:,} are read"
        )
    if any(isinstance(value, str) for value in entries.values()):
        entries = {
            key: value if isinstance(value, str) else number_text(value)
            for key, value in entries.items()
        }
    addresses, names = _index(model)
    by_address = {
        address: value for key, value in entries.items() if (address := _address(key, addresses))
    }
    by_name = {
        address: value
        for key, value in entries.items()
        if not _address(key, addresses)
        for address in names.get(key, ())
    }
    placed = {**by_name, **by_address}  # several nodes may have the same name
    if not placed:
        first = next(iter(entries), "")
        raise ReadError(
            "no key of the node data is an address or a name of a node of this model;"
            f" the first is {shorten(repr(first))}"
        )
    numbers = [value for value in placed.values() if not isinstance(value, str)]
    return NodeData(
        neutral(title, LONGEST_TEXT),
        {address: value for address, value in placed.items() if "[" not in address},
        {address: value for address, value in placed.items() if "[" in address},
        _kinds(value for value in placed.values() if isinstance(value, str)),
        min(numbers, default=0.0),
        max(numbers, default=0.0),
        tuple(key for key in entries if not _address(key, addresses) and key not in names),
    )


def write_node_data(values: Mapping[str, Datum], model: Model) -> str:
    """Return a node data file for Model Explorer, with a scale from light to dark.

    ``values`` are by static address. The keys are names of nodes and outputs by graph, as in Model
    Explorer, and addresses for ``read_node_data``.
    """
    results = {_ADDRESSES: dict(values), **_named_results(values, model)}
    scale = (
        {} if any(isinstance(value, str) for value in values.values()) else {"gradient": _GRADIENT}
    )
    data = {
        name: {"results": {key: {"value": value} for key, value in graph.items()}, **scale}
        for name, graph in results.items()
        if graph
    }
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)


def _named_results(values: Mapping[str, Datum], model: Model) -> Mapping[str, Mapping[str, Datum]]:
    """Return the values by graph and name, as Model Explorer names them.

    It draws an ONNX model with its bodies as one graph, in which a node's name follows the names of
    the nodes around it. Bodies of other models are separate graphs, whose nodes it also finds by
    outputs.
    """
    if model.dialect == "onnx":
        return {
            model.name: {
                name: values[address]
                for name, address in _names_through(model)
                if address in values
            }
        }
    results: dict[str, dict[str, Datum]] = {}
    for place in graphs(model):
        for node in place.graph.nodes:
            value = values.get(f"{place.address}/{place.labels[node.id]}")
            if value is not None:
                names = (node.name, *(name for port in node.outputs for name in port.names))
                results.setdefault(place.address, {}).update(dict.fromkeys(names, value))
    return results


def _names_through(model: Model) -> Iterator[tuple[str, str]]:
    """Yield name and address of each ONNX node; the name follows the names of the nodes around
    it.
    """
    before = {ROOT: ""}
    for place in graphs(model):
        for node in place.graph.nodes:
            address = f"{place.address}/{place.labels[node.id]}"
            name = f"{before[place.address]}{node.name}"
            yield name, address
            for body in node.bodies:
                before[f"{address}/{body.name}"] = (
                    f"{name}/{_BODY_ATTRIBUTES.get(body.name, body.name)}/"
                )


def node_colours(view: GraphView, run: Run | None, data: NodeData) -> dict[str, list[object]]:
    """Return for each box ``number`` or ``text``, the colour level, and the value as text.

    A folded box has the largest number inside it, or the text that all nodes inside share.
    """
    colours_by_box: dict[str, list[object]] = {}
    opened = {frame.static: frame.address for frame in run.frames()} if run is not None else {}
    for id, places in _boxes(view, data).items():
        values = [
            value
            for value in (_value(place, run, opened, data) for place in places)
            if value is not None
        ]
        texts = {value for value in values if isinstance(value, str)}
        if values and (len(texts) <= 1 or data.mixed):
            value: Datum = (
                max(value for value in values if not isinstance(value, str))
                if not texts
                else texts.pop()
                if len(texts) == 1
                else data.mixed
            )
            colours_by_box[id] = [
                data.palette if data.kinds else "number",
                data.level(value),
                value if isinstance(value, str) else number_text(value),
            ]
    return colours_by_box


def _value(place: str, run: Run | None, opened: Mapping[str, str], data: NodeData) -> Datum | None:
    """Return the value for the open iteration, also before the operation ran in it, else for the
    last one.
    """
    static = without_iterations(place)
    if run is not None and static in _addresses_by_iteration(data):
        graph, _, label = place.rpartition("/")
        concrete = f"{opened[graph]}/{label}" if graph in opened else run.resolve(place)
        if concrete is not None and concrete in data.by_iteration:
            return data.by_iteration[concrete]
    return data.everywhere.get(static)


@cache_by_object
def _addresses_by_iteration(data: NodeData) -> frozenset[str]:
    """Return the static addresses that have values by iteration."""
    return frozenset(map(without_iterations, data.by_iteration))


@cache_by_object(newest_only=True)
def _boxes(view: GraphView, data: NodeData) -> Mapping[str, list[str]]:
    """Return the places that each box shows; in copies of unrolled loops, addresses with
    iterations.
    """
    copies: dict[str, list[ViewNode]] = {}
    for address, box in view.node_of.items():
        if "[" in address:
            copies.setdefault(without_iterations(address), []).append(box)
    places: dict[str, list[str]] = {}
    for static in dict.fromkeys((*data.everywhere, *_addresses_by_iteration(data))):
        for box in copies.get(static, ()):
            places.setdefault(box.id, []).append(box.address)
        box_shown = view.showing(static)
        if box_shown is not None and static not in copies:
            places.setdefault(box_shown.id, []).append(static)
    return places


def _entries(data: object) -> Iterator[tuple[str, Datum]]:
    """Yield key and value of the entries of one or several graphs; values may be in objects."""
    if not isinstance(data, dict):
        raise ReadError("the node data is not a JSON object of keys and values")
    results = data.get("results")
    if isinstance(data.get(_ADDRESSES), dict):
        data = {_ADDRESSES: data[_ADDRESSES]}
    graphs_of = [
        graph_data
        for graph_data in data.values()
        if isinstance(graph_data, dict) and isinstance(graph_data.get("results"), dict)
    ]
    if isinstance(results, dict):
        graphs_of = [data]
    for graph_data in [graph_data["results"] for graph_data in graphs_of] or [data]:
        for key, entry in graph_data.items():
            yield key, _datum(key, entry.get("value") if isinstance(entry, dict) else entry)


def _datum(key: str, value: object) -> Datum:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float() if abs(value) <= 1e300 and math.isfinite(value):
            return float(value)
        case str():
            return neutral(value, LONGEST_TEXT)
    raise ReadError(f"the node data of {shorten(repr(key))} is neither a finite number nor a text")


def _index(model: Model) -> tuple[frozenset[str], Mapping[str, list[str]]]:
    """Return all static addresses, and the addresses that each name may refer to.

    A name is that of a node, of an output, or Model Explorer's.
    """
    addresses: set[str] = set()
    names: dict[str, list[str]] = {}
    for place in graphs(model):
        label = labels(place.graph)
        for node in place.graph.nodes:
            address = f"{place.address}/{label[node.id]}"
            addresses.add(address)
            for name in dict.fromkeys(
                (node.name, *(name for port in node.outputs for name in port.names))
            ):
                names.setdefault(name, []).append(address)
    if model.dialect == "onnx":
        for name, address in _names_through(model):
            names.setdefault(name, [address])
    return frozenset(addresses), names


def _address(key: str, addresses: frozenset[str]) -> str:
    """Return the address that a key denotes, with or without ``main/``; empty for a name."""
    return next(
        (address for address in (key, f"main/{key}") if without_iterations(address) in addresses),
        "",
    )


def _kinds(texts: Iterator[str]) -> tuple[str, ...]:
    frequent = [text for text, _ in Counter(texts).most_common()]
    return tuple(frequent) if len(frequent) <= LEVELS else (*frequent[: LEVELS - 1], OTHERS)
