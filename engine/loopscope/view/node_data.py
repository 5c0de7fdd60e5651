"""What others say of nodes, a number or a text each, as colours of a picture; read from and written
as Model Explorer's node data.

Its JSON is ``{"results": {key: {"value": 0.5}}}``, for one graph or by graph (``{"main":
{"results": ...}}``); here also ``{key: 0.5}``. A key is an address, in which iterations may be
named (``main/loop[2]/body/add`` holds in that one only), or the name of a node or of its output.
Colours in a file are not taken over: ours can be read in light and in dark.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from loopscope.debug.run import Run
from loopscope.errors import ReadError, listed, neutral, shorten
from loopscope.ir.address import ROOT, labels
from loopscope.ir.model import Model
from loopscope.ir.walk import graphs
from loopscope.view.graph import GraphView, ViewNode, without_iterations
from loopscope.view.preview import number_text

MOST_BYTES = 32 * 2**20
MOST_ENTRIES = 200_000
LONGEST_TEXT = 80
LEVELS = 8
OTHERS = "others"
_GRADIENT = [{"stop": 0, "bgColor": "white"}, {"stop": 1, "bgColor": "orange"}]
_ADDRESSES = "addresses in Loopscope"
"""What no graph is called: Model Explorer does not look there, and here nothing else of such a
file is read.
"""
_ATTRIBUTES = {"then": "then_branch", "else": "else_branch"}
"""Of ONNX, by our names of bodies."""
_NAMED = 3
"""Keys that name nothing, and that are told."""
Datum = float | str
_places: WeakKeyDictionary[GraphView, tuple[NodeData, Mapping[str, list[str]]]] = (
    WeakKeyDictionary()
)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class NodeData:
    """A number for each of some places, or a text for each."""

    title: str
    everywhere: Mapping[str, Datum]
    """By static address."""
    by_iteration: Mapping[str, Datum]
    """By concrete address."""
    kinds: tuple[str, ...]
    """Of texts the frequent ones, ``OTHERS`` last where there are more than ``LEVELS``; empty
    for numbers.
    """
    low: float
    high: float
    unmatched: tuple[str, ...]
    """Keys that name nothing in the model."""

    def unmatched_words(self, of: str) -> str:
        """Which keys of a file name nothing, in a sentence; empty where all of them name
        something.
        """
        if not self.unmatched:
            return ""
        named = listed([shorten(one) for one in self.unmatched[:_NAMED]], _NAMED)
        keys = (
            "1 key of {} names"
            if len(self.unmatched) == 1
            else f"{len(self.unmatched):,} keys of {{}} name"
        )
        return f"{keys.format(shorten(of))} nothing in this model, such as {named}"

    @property
    def scale(self) -> list[str]:
        """The legend: title, ``number`` with the ends of the scale, or ``text`` with the texts
        in the order of their colours.
        """
        if self.kinds:
            return [self.title, "text", *self.kinds]
        return [self.title, "number", number_text(self.low), number_text(self.high)]

    def level(self, value: Datum) -> int:
        """The colour of a value, 1 to ``LEVELS``."""
        if isinstance(value, str):
            return 1 + (self.kinds.index(value) if value in self.kinds else len(self.kinds) - 1)
        span = self.high - self.low
        return LEVELS if not span > 0 else 1 + round((LEVELS - 1) * (value - self.low) / span)


Given = str | os.PathLike[str] | Mapping[str, Any]
"""What others say of nodes: a JSON file, or by address or name a number or a text."""


def given_node_data(given: Given, model: Model) -> NodeData:
    """From a file, or from what Python holds; ``ReadError`` as ``read_node_data``, and where a
    file cannot be read.
    """
    if isinstance(given, Mapping):
        return read_node_data(as_json(given), model, "overlay")
    path = Path(given)
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise ReadError(
            f"the overlay {shorten(str(path))} cannot be read: {problem.strerror or problem}"
        ) from None
    return read_node_data(content, model, path.stem)


def as_json(given: Mapping[str, Any]) -> bytes:
    """Numbers and texts by key as a file has them; numbers may be numpy's. ``ReadError`` for any
    other value.
    """
    plain = {
        str(key): value if isinstance(value, str) else _number(key, value)
        for key, value in given.items()
    }
    return json.dumps(plain).encode()


def _number(key: object, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ReadError(
            f"an overlay says a number or a text of each node, and of {shorten(str(key))} a {type(value).__name__}"
        ) from None


def read_node_data(content: bytes, model: Model, title: str) -> NodeData:
    """From a file that is not trusted. ``ReadError`` when it is too large, not such JSON, or
    names nothing of the model.
    """
    if len(content) > MOST_BYTES:
        raise ReadError(
            f"the node data has {len(content) / 2**20:.0f} MB: at most {MOST_BYTES // 2**20} are read"
        )
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ReadError(f"the node data is not JSON: {shorten(str(error))}") from None
    found = dict(_entries(data))
    if len(found) > MOST_ENTRIES:
        raise ReadError(
            f"the node data is of {len(found):,} nodes: at most {MOST_ENTRIES:,} are read"
        )
    if any(isinstance(value, str) for value in found.values()):
        found = {
            key: value if isinstance(value, str) else number_text(value)
            for key, value in found.items()
        }
    addresses, names = _index(model)
    by_address = {
        address: value for key, value in found.items() if (address := _address(key, addresses))
    }
    by_name = {
        address: value
        for key, value in found.items()
        if not _address(key, addresses)
        for address in names.get(key, ())
    }
    placed = {**by_name, **by_address}  # a name may be that of several nodes
    if not placed:
        first = next(iter(found), "")
        raise ReadError(
            f"no key of the node data is an address or a name of a node of this model; the first is {shorten(repr(first))}"
        )
    numbers = [value for value in placed.values() if not isinstance(value, str)]
    return NodeData(
        neutral(title, LONGEST_TEXT),
        {address: value for address, value in placed.items() if "[" not in address},
        {address: value for address, value in placed.items() if "[" in address},
        _kinds(value for value in placed.values() if isinstance(value, str)),
        min(numbers, default=0.0),
        max(numbers, default=0.0),
        tuple(key for key in found if not _address(key, addresses) and key not in names),
    )


def write_node_data(values: Mapping[str, Datum], model: Model) -> str:
    """A file that Model Explorer shows on the same model, with a scale from light to dark;
    ``values`` are by static address.

    Its keys are names of nodes and of outputs, by graph as Model Explorer calls it; beside them
    addresses, which are read here.
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
    """By graph and name, as Model Explorer calls them.

    It draws an ONNX model with its bodies as one graph, in which their nodes have the names of
    those around them in front. Bodies of other models are graphs of their own, and nodes are found
    by their outputs too.
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
    """Of each node of an ONNX model its name with those of the nodes around it in front, and its
    address.
    """
    before = {ROOT: ""}
    for place in graphs(model):
        for node in place.graph.nodes:
            address, name = (
                f"{place.address}/{place.labels[node.id]}",
                f"{before[place.address]}{node.name}",
            )
            yield name, address
            for body in node.bodies:
                before[f"{address}/{body.name}"] = (
                    f"{name}/{_ATTRIBUTES.get(body.name, body.name)}/"
                )


def tints(view: GraphView, run: Run | None, data: NodeData) -> dict[str, list[object]]:
    """Of boxes: ``number`` or ``text``, the colour, the value in words. A folded box has its
    largest number, or the text of all in it.
    """
    found: dict[str, list[object]] = {}
    opened = {frame.static: frame.address for frame in run.frames()} if run is not None else {}
    for id, places in _boxes(view, data).items():
        values = [
            value
            for value in (_value(place, run, opened, data) for place in places)
            if value is not None
        ]
        texts = {value for value in values if isinstance(value, str)}
        if values and len(texts) <= 1:
            value: Datum = (
                texts.pop()
                if texts
                else max(value for value in values if not isinstance(value, str))
            )
            found[id] = [
                "text" if data.kinds else "number",
                data.level(value),
                value if isinstance(value, str) else number_text(value),
            ]
    return found


def _value(place: str, run: Run | None, opened: Mapping[str, str], data: NodeData) -> Datum | None:
    """Of the iteration that is open, also before the operation has run in it; else of the last
    one.
    """
    static = without_iterations(place)
    if run is not None and static in _iterated(data):
        graph, _, label = place.rpartition("/")
        concrete = f"{opened[graph]}/{label}" if graph in opened else run.resolve(place)
        if concrete is not None and concrete in data.by_iteration:
            return data.by_iteration[concrete]
    return data.everywhere.get(static)


@lru_cache(maxsize=8)
def _iterated(data: NodeData) -> frozenset[str]:
    """Static addresses of which there is a value by iteration."""
    return frozenset(map(without_iterations, data.by_iteration))


def _boxes(view: GraphView, data: NodeData) -> Mapping[str, list[str]]:
    """By box, the places that it shows; found once, as long as the view lasts."""
    kept = _places.get(view)
    if kept is None or kept[0] is not data:
        kept = _places[view] = (data, _places_of(view, data))
    return kept[1]


def _places_of(view: GraphView, data: NodeData) -> Mapping[str, list[str]]:
    """Of one place in a copy of an unrolled loop the address with that iteration."""
    copies: dict[str, list[ViewNode]] = {}
    for address, box in view.node_of.items():
        if "[" in address:
            copies.setdefault(without_iterations(address), []).append(box)
    found: dict[str, list[str]] = {}
    for static in dict.fromkeys((*data.everywhere, *_iterated(data))):
        for box in copies.get(static, ()):
            found.setdefault(box.id, []).append(box.address)
        shown = view.showing(static)
        if shown is not None and static not in copies:
            found.setdefault(shown.id, []).append(static)
    return found


def _entries(data: object) -> Iterator[tuple[str, Datum]]:
    """Of one graph or of several, with the values in objects or bare."""
    if not isinstance(data, dict):
        raise ReadError("the node data is not a JSON object of keys and values")
    results = data.get("results")
    if isinstance(data.get(_ADDRESSES), dict):
        data = {_ADDRESSES: data[_ADDRESSES]}
    graphs_of = [
        one
        for one in data.values()
        if isinstance(one, dict) and isinstance(one.get("results"), dict)
    ]
    if isinstance(results, dict):
        graphs_of = [data]
    for one in [one["results"] for one in graphs_of] or [data]:
        for key, given in one.items():
            yield key, _datum(key, given.get("value") if isinstance(given, dict) else given)


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
    """All static addresses, and those that a name may mean: of a node, of an output, or Model
    Explorer's.
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
    """The address that a key is, also without ``main/`` at its beginning; empty for a name."""
    return next(
        (address for address in (key, f"main/{key}") if without_iterations(address) in addresses),
        "",
    )


def _kinds(texts: Iterator[str]) -> tuple[str, ...]:
    frequent = [text for text, _ in Counter(texts).most_common()]
    return tuple(frequent) if len(frequent) <= LEVELS else (*frequent[: LEVELS - 1], OTHERS)
