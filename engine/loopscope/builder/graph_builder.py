"""A graph under construction: inputs, constants, name scopes, operations, and the finished
Model.
"""

from __future__ import annotations

import difflib
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from loopscope.builder.emit import infer_outputs, lift_inputs, newest
from loopscope.builder.finished_graphs import build_model, insert_model, values_for_import
from loopscope.builder.frame import GraphFrame
from loopscope.builder.indexing import index_tensor
from loopscope.builder.naming import Names, NameScope, snake_case
from loopscope.builder.python_values import (
    ElementTypeLike,
    as_array,
    attribute_texts,
    constant_array,
    element_type_of,
    shape_of,
)
from loopscope.builder.tensor import GraphOperation, Tensor
from loopscope.checks.known import MOST_ELEMENTS
from loopscope.errors import BuildError, shorten
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ANY_TYPE, ElementType
from loopscope.ir.model import Model
from loopscope.ir.model import ModelGraph as FinishedGraph
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.declare import Known, Operation

STOPPED = "the graph under construction is no longer needed"
_OPEN: ContextVar[tuple[Graph, ...]] = ContextVar("graphs under construction", default=())
_LATEST: ContextVar[weakref.ref[Graph] | None] = ContextVar("the most recent graph", default=None)


class Graph:
    """A graph under construction.

            graph = Graph("halve")
            x = graph.parameter("x", "f32", [])
            model = graph.model(x / 2)

    Calls without a tensor argument, such as ``ops.range(0, 5, 1, output_type="i64")``, belong to
    the graph of the enclosing ``with graph:``, or else to the most recently created graph.
    """

    def __init__(self, name: str = "model", *, catalogue: Catalogue = CATALOGUE) -> None:
        checked: object = name
        if not isinstance(checked, str):
            raise BuildError(f"the name of a graph is {shorten(repr(checked), 60)}, expected text")
        self.name = name
        self.catalogue = catalogue
        self._frames = [GraphFrame(self, None, f"graph {name!r}")]
        self.calls: dict[FinishedGraph, tuple[NameScope, ...]] = {}
        """Scopes of the finished bodies, from the ``calls`` of their frames."""
        self.variables = Names()
        """Names of variables in all graphs and bodies; variables are shared by name."""
        self.going: Callable[[], bool] = lambda: True
        """Function called before each operation. If it returns False, ``BuildError`` is raised,
        because another thread no longer needs the graph.
        """
        _LATEST.set(weakref.ref(self))

    def __repr__(self) -> str:
        return f"<Graph {self.name!r} with {len(self._frames[0].nodes)} nodes>"

    def __iter__(self) -> Iterator[GraphOperation]:
        """Iterate over the operations of the current graph or body, in creation order."""
        return (GraphOperation(self.frame, node.id) for node in tuple(self.frame.nodes))

    def __len__(self) -> int:
        return len(self.frame.nodes)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return any(operation.name == name for operation in self)

    def __getitem__(self, name: str) -> GraphOperation:
        """Return the operation of that name, or raise ``BuildError`` if it does not exist."""
        for operation in self:
            if operation.name == name:
                return operation
        close_names = difflib.get_close_matches(
            str(name), [operation.name for operation in self], n=3
        )
        suggestion = f": did you mean {' or '.join(map(repr, close_names))}?" if close_names else ""
        raise BuildError(
            f"{self.frame.title} does not have an operation {shorten(repr(name), 60)}{suggestion}"
        )

    def __enter__(self) -> Graph:
        _OPEN.set((*_OPEN.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _OPEN.set(_OPEN.get()[:-1])

    @property
    def frame(self) -> GraphFrame:
        """Graph or body that new nodes are added to."""
        return self._frames[-1]

    def parameter(self, name: str, element_type: ElementTypeLike, shape: object = None) -> Tensor:
        """Add an input of the model.

        ``shape``: lengths, with None for an unknown length. ``shape=None`` means that the rank is
        unknown too.
        """
        if self.frame.parent is not None:
            raise BuildError(
                f"{self.frame.title} cannot have parameters: create parameter {name!r} outside, "
                "and use it inside"
            )
        known_shape = (
            DYNAMIC if shape is None else check_shape(shape, f"the shape of parameter {name!r}")
        )
        known = Known(
            element_type_of(element_type, f"the element type of parameter {name!r}"), known_shape
        )
        full_name = self.frame.names.prefix + check_name(name, "the name of a parameter")
        if any(node.name == full_name for node in self.frame.nodes):
            raise BuildError(
                f"graph {self.name!r} already has a node {full_name!r}: use another name for the "
                "parameter"
            )
        return self.frame.parameter(name, known, (full_name,))

    def constant(
        self, value: object, element_type: ElementTypeLike | None = None, name: str = ""
    ) -> Tensor:
        """Add a Const. The default type is that of the array; i64 for a Python int, f32 for a
        float.
        """
        target_type = None if element_type is None else element_type_of(element_type)
        return self._const(constant_array(value, target_type, "the constant"), name)

    def _const(self, array: np.ndarray, name: str = "") -> Tensor:
        constant = Constant.of(array)
        attributes = {
            "element_type": str(constant.element_type),
            "shape": ",".join(map(str, constant.shape)),
        }
        known = (
            Known.of(constant.array())
            if constant.elements <= MOST_ELEMENTS
            else Known(constant.element_type, PartialShape.of(constant.shape))
        )
        return self.frame.add(
            "Const", "opset1", attributes, (), (known,), name=name, constant=constant
        )[0]

    @contextmanager
    def scope(self, name: str) -> Iterator[str]:
        """Open a name scope: names created inside start with ``name/``. A second scope of that name
        becomes ``name_1/``. Yield the actual name.

        A view draws its contents as a frame that can be folded.
        """
        with self.within(name) as scope_name:
            self.frame.calls.append(NameScope(scope_name))
            yield scope_name

    @contextmanager
    def within(self, name: str) -> Iterator[str]:
        """Open a scope that only affects names and is not drawn."""
        frame = self.frame
        scope_name = frame.names.enter(check_name(name, "the name of a scope").strip("/"))
        try:
            yield scope_name
        finally:
            frame.names.leave()

    @contextmanager
    def inside(self, frame: GraphFrame) -> Iterator[GraphFrame]:
        """Add everything that is built inside to a body."""
        self._frames.append(frame)
        try:
            with self:
                yield frame
        finally:
            self._frames.pop()

    def lift(
        self,
        value: object,
        like: Sequence[ElementType] = (),
        what: str = "the value",
        name: str = "",
    ) -> Tensor:
        """Return a tensor as visible in the current frame.

        A value becomes a Const of that name, in the first of the types ``like`` that can represent
        it.
        """
        if isinstance(value, Tensor):
            return self.frame.bring(value)
        return self._const(as_array(value, like, ANY_TYPE, what), name)

    def apply(
        self,
        type: str | Operation,
        inputs: Sequence[Any],
        attributes: Mapping[str, object],
        name: str = "",
    ) -> tuple[Tensor, ...]:
        """Add a node of an operation and return its outputs.

        ``type``: name of the operation (the newest version is used) or its declaration.
        ``BuildError`` if the operation does not support the inputs or attributes; the message
        contains the input or attribute, the value found and the value expected.
        """
        if not self.going():
            raise BuildError(STOPPED)
        operation = newest(self.catalogue, type) if isinstance(type, str) else type
        caller = snake_case(operation.name)
        texts = attribute_texts(operation, attributes, caller)
        if name:
            check_name(name, f"{caller}(): name")
        with self.frame.all_or_nothing():
            tensors = lift_inputs(self.frame, operation, inputs, caller)
            outputs = infer_outputs(operation, self.catalogue, tensors, texts, caller)
        opset = operation.opset or f"opset{operation.opsets[0]}"
        return self.frame.add(operation.name, opset, texts, tensors, outputs, name=name)

    def index(self, tensor: Tensor, index: Any) -> Tensor:
        """Return ``tensor[index]`` with the meaning of numpy."""
        return index_tensor(tensor, index)

    def import_model(
        self, model: Model, inputs: Mapping[str | int, Any] | Sequence[Any] = (), name: str = ""
    ) -> tuple[Tensor, ...]:
        """Insert a model into this graph and return its outputs in order.

        ``inputs``: tensors or values by name, by position, or in order. ``name``: scope of the
        nodes (default: the model's name). Types and shapes are inferred again. ``BuildError`` for a
        model of another dialect than OpenVINO, for missing or unknown inputs, and for inputs that
        contradict an operation.
        """
        values = values_for_import(model, inputs)
        printable = "".join(letter for letter in name or model.name if letter.isprintable())
        with self.frame.all_or_nothing(), self.scope(printable.strip("/ ") or "imported"):
            return insert_model(self.frame, model, values)

    def model(self, outputs: object) -> Model:
        """Return the finished model. ``outputs``: a tensor, several, or a mapping from names to
        tensors.

        ``BuildError`` without outputs, for an output inside a body, or if the checks find an error.
        """
        if self.frame.parent is not None:
            raise BuildError(f"{self.frame.title} is not finished: call model() outside of it")
        return build_model(self.frame, outputs)


def check_name(name: object, what: str) -> str:
    """Return the text if it can be a name, or raise ``BuildError``."""
    if not isinstance(name, str) or not name.strip("/ ") or not name.isprintable():
        raise BuildError(f"{what} is {shorten(repr(name), 60)}, expected printable text")
    return name


def check_shape(lengths: object, what: str) -> PartialShape:
    """Return a shape, or raise ``BuildError`` if the value is not one."""
    shape = shape_of(lengths)
    if shape is None:
        raise BuildError(
            f"{what} is {shorten(repr(lengths), 60)}, expected lengths, with None for unknown "
            "lengths"
        )
    return shape


def current_graph() -> Graph:
    """Return the graph of the innermost open body or ``with graph:``, or the most recent graph.
    Without any graph, a new one is created and stored.
    """
    opened, latest = _OPEN.get(), _LATEST.get()
    graph = opened[-1] if opened else latest() if latest is not None else None
    if graph is None:
        graph = Graph()
        _OPEN.set((graph,))
    return graph


def graph_of(values: Iterable[object], caller: str) -> Graph:
    """Return the graph that a call belongs to: that of its tensors, of the innermost open body or
    ``with graph:``, or the most recent graph.
    """
    tensors = [value for value in values if isinstance(value, Tensor)]
    if tensors:
        graph = tensors[0].graph
        assert isinstance(graph, Graph)
        return graph
    opened, latest = _OPEN.get(), _LATEST.get()
    current = opened[-1] if opened else latest() if latest is not None else None
    if current is None:
        raise BuildError(f"{caller}() needs a graph: create one with builder.Graph() first")
    return current
