"""A graph under construction: inputs, constants, name scopes, operations, and the Model that
they become.
"""

from __future__ import annotations

import difflib
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from loopscope.builder.emit import inferred, lifted, newest
from loopscope.builder.finish import finished_model
from loopscope.builder.frame import GraphFrame, NameScope
from loopscope.builder.importing import imported
from loopscope.builder.lift import ElementTypeLike, as_array, constant_array, element_type_of
from loopscope.builder.naming import Names, snake_case
from loopscope.builder.operation_handle import GraphOperation
from loopscope.builder.python_attributes import attribute_texts, shape_of
from loopscope.builder.tensor import Tensor
from loopscope.checks.known import MOST_ELEMENTS
from loopscope.errors import BuildError, shorten
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ANY_TYPE, ElementType
from loopscope.ir.model import Model
from loopscope.ir.model import ModelGraph as FinishedGraph
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.declare import Known, Operation

STOPPED = "the graph that is being built was no longer wanted"
_OPEN: ContextVar[tuple[Graph, ...]] = ContextVar("graphs under construction", default=())
_LATEST: ContextVar[weakref.ref[Graph] | None] = ContextVar(
    "the graph that was made last", default=None
)


class Graph:
    """A graph under construction.

        graph = Graph("halve")
        x = graph.parameter("x", "f32", [])
        model = graph.model(x / 2)

    Calls that get no tensor, such as ``ops.range(0, 5, 1, output_type="i64")``, belong to the graph
    of ``with graph:``, or else to the one that was made last.
    """

    def __init__(self, name: str = "model", *, catalogue: Catalogue = CATALOGUE) -> None:
        given: object = name
        if not isinstance(given, str):
            raise BuildError(f"the name of a graph is {shorten(repr(given), 60)}, expected text")
        self.name = name
        self.catalogue = catalogue
        self._frames = [GraphFrame(self, None, f"graph {name!r}")]
        self.calls: dict[FinishedGraph, tuple[NameScope, ...]] = {}
        """Of the bodies that are finished, what their frames' ``calls`` hold."""
        self.variables = Names()
        """Of all graphs and bodies: variables are shared by name."""
        self.going: Callable[[], bool] = lambda: True
        """Asked before each operation; ``BuildError`` as soon as it says False: another thread
        no longer wants the graph.
        """
        _LATEST.set(weakref.ref(self))

    def __repr__(self) -> str:
        return f"<Graph {self.name!r} with {len(self._frames[0].nodes)} nodes>"

    def __iter__(self) -> Iterator[GraphOperation]:
        """The operations of the graph or body that is being built, in the order in which they
        were made.
        """
        return (GraphOperation(self.frame, node.id) for node in tuple(self.frame.nodes))

    def __len__(self) -> int:
        return len(self.frame.nodes)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return any(operation.name == name for operation in self)

    def __getitem__(self, name: str) -> GraphOperation:
        """The operation of that name; ``BuildError`` when there is none."""
        for operation in self:
            if operation.name == name:
                return operation
        near = difflib.get_close_matches(str(name), [operation.name for operation in self], n=3)
        meant = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise BuildError(
            f"there is no operation {shorten(repr(name), 60)} in {self.frame.title}{meant}"
        )

    def __enter__(self) -> Graph:
        _OPEN.set((*_OPEN.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _OPEN.set(_OPEN.get()[:-1])

    @property
    def frame(self) -> GraphFrame:
        """The graph or body that new nodes go to."""
        return self._frames[-1]

    def parameter(self, name: str, element_type: ElementTypeLike, shape: object = None) -> Tensor:
        """An input of the model. ``shape``: lengths, None for one that is unknown;
        ``shape=None``: not even the rank is known.
        """
        if self.frame.parent is not None:
            raise BuildError(
                f"{self.frame.title} gets its inputs from outside: make parameter {name!r} before, and use it inside"
            )
        known_shape = (
            DYNAMIC if shape is None else checked_shape(shape, f"the shape of parameter {name!r}")
        )
        known = Known(
            element_type_of(element_type, f"the element type of parameter {name!r}"), known_shape
        )
        whole = self.frame.names.prefix + checked_name(name, "the name of a parameter")
        if any(node.name == whole for node in self.frame.nodes):
            raise BuildError(
                f"graph {self.name!r} has something called {whole!r} already: give the parameter another name"
            )
        return self.frame.parameter(name, known, (whole,))

    def constant(
        self, value: object, element_type: ElementTypeLike | None = None, name: str = ""
    ) -> Tensor:
        """A Const. Its type is the array's own; of a Python int i64, of a float f32."""
        wanted = None if element_type is None else element_type_of(element_type)
        return self._const(constant_array(value, wanted, "the constant"), name)

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
        """Names made inside begin with ``name/``; a second scope of that name becomes ``name_1/``.
        Gives the name it got.

        A view draws what is in it as a frame that can be folded.
        """
        with self.within(name) as whole:
            self.frame.calls.append(NameScope(whole))
            yield whole

    @contextmanager
    def within(self, name: str) -> Iterator[str]:
        """A scope of names alone, which no view shows."""
        frame = self.frame
        whole = frame.names.enter(checked_name(name, "the name of a scope").strip("/"))
        try:
            yield whole
        finally:
            frame.names.leave()

    @contextmanager
    def unscoped(self, frame: GraphFrame) -> Iterator[None]:
        """While inputs of a body are named, its scopes do not count."""
        kept, frame.names.scopes = frame.names.scopes, []
        try:
            yield
        finally:
            frame.names.scopes = kept

    @contextmanager
    def inside(self, frame: GraphFrame) -> Iterator[GraphFrame]:
        """What is built meanwhile goes to a body."""
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
        """A tensor as it is seen here, or a Const of that name, in the first of the types that
        holds the value.
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
        """A node of an operation: its type (the newest version) or declaration, inputs, and
        attributes by keyword.

        ``BuildError`` when the operation is not made for them; says which input or attribute, what
        was found, what is expected.
        """
        if not self.going():
            raise BuildError(STOPPED)
        operation = newest(self.catalogue, type) if isinstance(type, str) else type
        called = snake_case(operation.name)
        texts = attribute_texts(operation, attributes, called)
        if name:
            checked_name(name, f"{called}(): name")
        with self.frame.all_or_nothing():
            tensors = lifted(self, operation, inputs, called)
            outputs = inferred(operation, self.catalogue, tensors, texts, called)
        opset = operation.opset or f"opset{operation.opsets[0]}"
        return self.frame.add(operation.name, opset, texts, tensors, outputs, name=name)

    def import_model(
        self, model: Model, inputs: Mapping[str | int, Any] | Sequence[Any] = (), name: str = ""
    ) -> tuple[Tensor, ...]:
        """Puts a model into this graph; gives its outputs, in its order. ``inputs``: tensors or
        values by name, by position, or in order.

        ``name``: the scope of its nodes (default: the model's name). Types and shapes are inferred
        anew. ``BuildError`` for a model that is not of OpenVINO's operations, for inputs that are
        missing or unknown, and for some that contradict an operation.
        """
        with self.frame.all_or_nothing():
            return imported(self, model, inputs, name)

    def model(self, outputs: object) -> Model:
        """The finished model. ``outputs``: a tensor, several, or a mapping from names to tensors.

        ``BuildError`` when there are none, when one lives inside a body, or when the checks find an
        error.
        """
        if self.frame.parent is not None:
            raise BuildError(
                f"{self.frame.title} is still being built: make the model outside of it"
            )
        return finished_model(self, outputs)


def checked_name(given: object, what: str) -> str:
    """Text that can name something; ``BuildError`` when it is none, or cannot be written."""
    if not isinstance(given, str) or not given.strip("/ ") or not given.isprintable():
        raise BuildError(
            f"{what} is {shorten(repr(given), 60)}, expected text, without control characters and invisible ones"
        )
    return given


def checked_shape(given: object, what: str) -> PartialShape:
    """A shape; ``BuildError`` when what was given is none."""
    shape = shape_of(given)
    if shape is None:
        raise BuildError(
            f"{what} is {shorten(repr(given), 60)}, expected lengths, with None for one that is unknown"
        )
    return shape


def current_graph() -> Graph:
    """The innermost open body's or ``with graph:``, or the one made last; a new one, which is
    kept, when there is none.
    """
    opened, latest = _OPEN.get(), _LATEST.get()
    graph = opened[-1] if opened else latest() if latest is not None else None
    if graph is None:
        graph = Graph()
        _OPEN.set((graph,))
    return graph


def graph_of(values: Iterable[object], called: str) -> Graph:
    """The graph that a call belongs to: that of its tensors, of the innermost open body or
    ``with graph:``, or the one made last.
    """
    tensors = [value for value in values if isinstance(value, Tensor)]
    if tensors:
        return tensors[0].graph
    opened, latest = _OPEN.get(), _LATEST.get()
    graph = opened[-1] if opened else latest() if latest is not None else None
    if graph is None:
        raise BuildError(f"{called}() belongs to no graph: make one with builder.Graph() first")
    return graph
