"""Scopes to graphs: nodes with ports and edges, initializers as Const, captured values as
Parameters that are bound once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, compress, islice, repeat
from operator import add, attrgetter, itemgetter
from typing import cast

import numpy as np
from msgspec import Struct
from onnx import AttributeProto, GraphProto

from loopscope.errors import ReadError, Where, shorten
from loopscope.ir.constant import Constant
from loopscope.ir.model import (
    NO_ATTRIBUTES,
    Body,
    BodyName,
    Edge,
    InputMap,
    LayerId,
    ModelGraph,
    Node,
    Port,
)
from loopscope.ir.shape import PartialShape
from loopscope.read.onnx.attributes import Given, attributes
from loopscope.read.onnx.body_bindings import Bound, bound
from loopscope.read.onnx.scope import Scope, ScopedNode
from loopscope.read.onnx.tensors import ExternalData, constant, dense
from loopscope.read.onnx.types import UNKNOWN_TYPE, ValueType

Output = tuple[LayerId, int]
_EDGE: Callable[[tuple[LayerId, int, LayerId, int]], Edge] = partial(tuple.__new__, Edge)
"""``Edge`` itself calls a function of Python's for this."""
_TENSOR = int(AttributeProto.TENSOR)
_FIRST, _SECOND = itemgetter(0), itemgetter(1)
_ELEMENT_TYPE, _SHAPE, _FORM = map(attrgetter, ("element_type", "shape", "form"))


class Builder(Struct, eq=False):
    """Builds the graph of one scope, column by column, which takes half the time of node by
    node.
    """

    scope: Scope
    external: ExternalData
    file: str
    initializers: list[Node] = []
    replaced: tuple[str, ...] = ()
    """Names of initializers that a later one of the same name replaces."""
    values: list[Mapping[str, object]] = []
    """The attributes of each node."""
    data: dict[int, Constant] = {}
    """Of nodes that are constants, by number."""
    inputs: list[list[str]] = []
    """Of each node, the names; none of a constant: what flows into it flows nowhere."""
    made: dict[str, Output] = {}
    """What makes each name, at the end of the graph."""
    edges: list[tuple[LayerId, int, LayerId, int]] = []
    first: int = 0
    """The number of layers before the nodes."""
    types: Mapping[str, ValueType] = {}
    """Of the names of the scope, and of those that it captures."""

    def prepare(self) -> None:
        """All that needs no types, which another process may still look for; ``ReadError`` when
        a tensor or an attribute cannot be read.
        """
        scope = self.scope
        parameters = (*scope.inputs, *scope.captures)
        self.made = {name: (LayerId(number), 0) for number, name in enumerate(parameters)}
        self._initializers(len(parameters))
        self.first = len(parameters) + len(self.initializers)
        self._attributes()
        self._connect()

    def build(self, built: Mapping[int, Built]) -> Built:
        """``built``: the graphs inside it, by ``id`` of their scope. ``ReadError`` when an
        operation and its bodies do not fit.
        """
        scope = self.scope
        self.types = (
            {**scope.types, **{name: scope.type_of(name) for name in scope.captures}}
            if scope.captures
            else scope.types
        )
        parameters = [*scope.inputs, *scope.captures]
        nodes = [
            Node(LayerId(n), name, "Parameter", outputs=(self._end_of_graph(name),))
            for n, name in enumerate(parameters)
        ]
        nodes += self.initializers
        nodes += self._nodes(built)
        results = [LayerId(number) for number in range(len(nodes), len(nodes) + len(scope.outputs))]
        for layer, name in zip(results, scope.outputs, strict=True):
            nodes.append(Node(layer, name, "Result", inputs=(self._end_of_graph(name),)))
            if name in self.made:
                self.edges.append((*self.made[name], layer, 0))
        captured = {
            name: LayerId(number) for number, name in enumerate(scope.captures, len(scope.inputs))
        }
        entered = [LayerId(number) for number in range(len(scope.inputs))]
        graph = ModelGraph(
            tuple(nodes),
            tuple(map(_EDGE, self.edges)),
            scope.name,
            replaced_initializers=self.replaced,
        )
        return Built(graph, entered, captured, results)

    def _initializers(self, first: int) -> None:
        """Read the last initializer of each name: the data of one that is replaced may not even
        exist.
        """
        graph = self.scope.proto
        if not isinstance(graph, GraphProto):
            return
        held, names = self.scope.held.initializers, self.scope.initializers
        last = {name: number for number, name in enumerate(names)}
        if len(last) < len(names):
            self.replaced = tuple(
                [name for number, name in enumerate(names) if last[name] != number]
            )
        dense_tensors = len(graph.initializer)
        for number, tensor in enumerate(chain(graph.initializer[:], graph.sparse_initializer)):
            name = names[number]
            if last[name] != number:
                continue
            try:
                data = (
                    constant(tensor, self.external, held.get(number))
                    if number < dense_tensors
                    else dense(tensor, self.external)
                )
            except ValueError as error:
                raise self._unreadable(name, error) from error
            self._initializer(LayerId(first + len(self.initializers)), name, data)

    def _unreadable(self, initializer: str, error: ValueError) -> ReadError:
        called = f"initializer {shorten(initializer, 60)!r}"
        if initializer in self.replaced:
            called += (
                " (its name is there several times in one graph, and the last initializer counts)"
            )
        return ReadError(f"{called}: {error}", Where(self.file))

    def _initializer(self, layer: LayerId, name: str, data: Constant | np.ndarray) -> None:
        self.made[name] = layer, 0
        if isinstance(data, Constant):
            port = Port(0, data.element_type, _shape(data.shape), (name,))
            self.initializers.append(
                Node(layer, name, "Const", "", NO_ATTRIBUTES, (), (port,), (), data)
            )
        else:
            # Types that OpenVINO lacks: the operation Constant gives the array.
            port = Port(0, None, _shape(data.shape), (name,))
            self.initializers.append(
                Node(layer, name, "Constant", "ai.onnx 13", {"value": data}, outputs=(port,))
            )

    def _attributes(self) -> None:
        calls = self.scope.calls
        self.values = [NO_ATTRIBUTES] * len(calls.given)
        for number in compress(range(len(calls.given)), calls.given):
            given = calls.given[number]
            try:
                if (
                    calls.types[number] != "Constant"
                    or not calls.opsets[number].startswith("ai.onnx ")
                    or len(given) != 1
                ):
                    self.values[number] = attributes(given, self.external)
                else:
                    self._constant(number, given)
            except ValueError as error:
                raise self._misfit(number, error) from error

    def _constant(self, number: int, given: Given) -> None:
        """Of a Constant the attribute, or the data."""
        held = given.get("value")
        if held is None or held.type != _TENSOR:
            self.values[number], data = _written_out(attributes(given, self.external))
        else:
            found = constant(held.t, self.external, self.scope.held.constants.get(number))
            data = found if isinstance(found, Constant) else None
            self.values[number] = NO_ATTRIBUTES if data is not None else {"value": found}
        if data is not None:
            self.data[number] = data

    def _misfit(self, number: int, error: ValueError) -> ReadError:
        return ReadError(f"node {shorten(self._name(number), 60)!r}: {error}", Where(self.file))

    def _name(self, number: int) -> str:
        calls = self.scope.calls
        return calls.names[number] or f"{calls.types[number]}_{number}"

    def _connect(self) -> None:
        """The edges to the nodes, and what makes each name."""
        calls = self.scope.calls
        self.inputs = [*calls.inputs]
        for number in self.data:
            self.inputs[number] = []
        names = [*chain.from_iterable(calls.outputs)]
        outputs = [*_places(self.first, calls.outputs)]
        makers = dict(zip(names, outputs, strict=True))
        makers.pop("", None)
        if len(makers) == len(names) - names.count("") and makers.keys().isdisjoint(self.made):
            self.made |= makers
            sources = [*map(self.made.get, chain.from_iterable(self.inputs))]
        else:
            sources = [
                *self._made_before(dict(zip(reversed(names), reversed(outputs), strict=True)))
            ]
        self.edges = [
            *map(add, filter(None, sources), compress(_places(self.first, self.inputs), sources))
        ]

    def _made_before(self, firsts: Mapping[str, Output]) -> Iterator[Output | None]:
        """Of each input, where a name is made several times: the last that makes it before, else
        the first that does so later.
        """
        for layer, (inputs, outputs) in enumerate(
            zip(self.inputs, self.scope.calls.outputs, strict=True), self.first
        ):
            for name in inputs:
                yield self.made.get(name) or (firsts.get(name) if name else None)
            self.made |= {
                name: (LayerId(layer), index) for index, name in enumerate(outputs) if name
            }

    def _nodes(self, built: Mapping[int, Built]) -> Iterator[Node]:
        calls = self.scope.calls
        made = [*calls.outputs]
        for number in self.data:
            made[number] = []
        inputs, outputs = self._ports(self.inputs, made)
        for number, data in self.data.items():
            outputs[number] = _of_constant(data, calls.outputs[number])
        bodies: list[tuple[Body, ...]] = [()] * len(made)
        for number, call in calls.within.items():
            try:
                bodies[number] = tuple(
                    [self._body(call, body, built[id(inner)]) for body, inner in call.inner]
                )
            except ValueError as error:
                raise self._misfit(number, error) from error
        names = (
            calls.names if all(calls.names) else [self._name(number) for number in range(len(made))]
        )
        numbers = range(len(made))
        layers = range(self.first, self.first + len(made))
        return map(
            Node,
            layers,
            names,
            calls.types,
            calls.opsets,
            self.values,
            inputs,
            outputs,
            bodies,
            map(self.data.get, numbers),
        )

    def _ports(self, *columns: Sequence[Sequence[str]]) -> list[list[tuple[Port, ...]]]:
        """Of each node, by its names in each column: one and the same wherever a number and a
        name are the same.
        """
        places = [
            [*zip(_numbers(names), chain.from_iterable(names), strict=True)] for names in columns
        ]
        ports = self._new_ports(dict.fromkeys(chain(*places)))
        return [
            _in_parts(map(ports.__getitem__, found), names)
            for found, names in zip(places, columns, strict=True)
        ]

    def _new_ports(self, places: Collection[tuple[int, str]]) -> Mapping[tuple[int, str], Port]:
        """By number and name."""
        names = [*map(_SECOND, places)]
        types = [*map(self.types.get, names, repeat(UNKNOWN_TYPE))]
        elements, shapes, forms = (map(column, types) for column in (_ELEMENT_TYPE, _SHAPE, _FORM))
        made = map(
            Port,
            map(_FIRST, places),
            elements,
            shapes,
            zip(names, strict=True),
            repeat(NO_ATTRIBUTES),
            forms,
        )
        ports = dict(zip(places, made, strict=True))
        if "" in names:
            ports |= {place: Port(place[0]) for place in places if not place[1]}
        return ports

    def _end_of_graph(self, name: str) -> Port:
        """Of a Parameter or a Result, which is there also where its name is empty."""
        type = self.types.get(name, UNKNOWN_TYPE)
        return Port(0, type.element_type, type.shape, (name,), NO_ATTRIBUTES, type.form)

    def _body(self, call: ScopedNode, name: BodyName, built: Built) -> Body:
        kind = "" if call.is_function else call.type
        # Which inputs an unknown operation passes to its graphs is unknown; only their captures are
        # certain.
        port_map = (
            Bound()
            if call.is_foreign
            else bound(kind, call.given, call.captures_from, built.parameters, built.results)
        )
        at = {
            captured: index
            for index, captured in reversed([*enumerate(call.inputs)][call.captures_from :])
        }
        captures = tuple(
            [InputMap(at[captured], layer) for captured, layer in built.captured.items()]
        )
        return Body(
            name, built.graph, (*port_map.inputs, *captures), port_map.outputs, port_map.back_edges
        )


def _numbers(names: Iterable[Sequence[str]]) -> Iterator[int]:
    """Of each name that of its place among those of its node."""
    return chain.from_iterable(map(range, map(len, names)))


def _places(first: int, names: Sequence[Sequence[str]]) -> Iterator[Output]:
    """Of each name the layer and that number; ``first``: the layer of the first node."""
    layers = map(
        repeat, cast("Sequence[LayerId]", range(first, first + len(names))), map(len, names)
    )
    return zip(chain.from_iterable(layers), _numbers(names), strict=True)


def _in_parts(ports: Iterator[Port], names: Iterable[Sequence[str]]) -> list[tuple[Port, ...]]:
    """As many for each node as it has names."""
    return [*map(tuple, map(islice, repeat(ports), map(len, names)))]


def _of_constant(data: Constant, names: Sequence[str]) -> tuple[Port, ...]:
    return tuple(
        [
            Port(0, data.element_type, _shape(data.shape), (name,) if name else (), NO_ATTRIBUTES)
            for name in names[:1]
        ]
    )


@lru_cache(maxsize=1024)
def _shape(lengths: tuple[int, ...]) -> PartialShape:
    """A model has few shapes for many constants."""
    return PartialShape.of(lengths)


class Built(Struct, frozen=True, eq=False):
    """A finished graph, and the layers by which it is bound."""

    graph: ModelGraph
    parameters: Sequence[LayerId]
    captured: Mapping[str, LayerId]
    results: Sequence[LayerId]


def _written_out(values: Mapping[str, object]) -> tuple[Mapping[str, object], Constant | None]:
    """A Constant that says its numbers or texts as attributes."""
    ((name, value),) = values.items()
    dtypes = {
        "value_float": np.float32,
        "value_floats": np.float32,
        "value_int": np.int64,
        "value_ints": np.int64,
    }
    if name in dtypes:
        try:
            return {}, Constant.of(np.array(value, dtypes[name]))
        except (
            TypeError,
            ValueError,
            OverflowError,
        ):  # the file says that the attribute is of another kind
            return values, None
    if name in ("value_string", "value_strings") and _is_text(value):
        return {}, Constant.of(np.array(value, dtype=object))
    if name == "sparse_value" and isinstance(value, np.ndarray):
        try:
            return {}, Constant.of(value)
        except KeyError:
            return {"value": value}, None
    return values, None


def _is_text(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, tuple) and all(isinstance(one, str) for one in value)
    )
