"""Operations with a state or an effect: ``Variable``, ``Print``, ``control_dependencies``.

A session preserves a variable between runs; ReadValue-6 and Assign-6 read and write it. Control
dependencies run operations after given tensors without using their values.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from loopscope.builder.frame import GraphFrame
from loopscope.builder.graph_builder import check_name, current_graph, graph_of
from loopscope.builder.python_values import ElementTypeLike, element_type_of
from loopscope.builder.structure import leaves
from loopscope.builder.tensor import GraphOperation, Tensor
from loopscope.errors import BuildError, shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope.ir.shape import PartialShape


@dataclass(slots=True)
class _VariableState:
    """State of a variable at the current position in a graph or body."""

    current: Tensor | None = None
    """Last read or assigned value; None if another body may have assigned a value since."""
    changed_by: LayerId | None = None
    """Smallest possible id of the node whose body assigned a value; None without such a node."""


class Variable:
    """``Variable(initial_value, name)``: a variable with its value before the first run, and its
    name in ``session.variables``.

    A read returns the latest value assigned before it, in call order. An assignment runs only if
    its result is needed: make it an output, fetch it, or let an operation wait for it with
    ``control_dependencies``. ``initial_value``: an array, a number, or a tensor.
    """

    def __init__(
        self, initial_value: Any, name: str = "Variable", dtype: ElementTypeLike | None = None
    ) -> None:
        graph = (
            graph_of([initial_value], "Variable")
            if isinstance(initial_value, Tensor)
            else current_graph()
        )
        candidates = [] if dtype is None else [element_type_of(dtype)]
        check_name(name, "the name of a variable")
        self.initial_value = graph.lift(
            initial_value, candidates, "Variable(): initial_value", f"{name}_initial"
        )
        if self.initial_value.element_type is None or (
            candidates and self.initial_value.element_type is not candidates[0]
        ):
            expected = dtype or "a known element type"
            raise BuildError(
                f"Variable(): initial_value is {self.initial_value!r}, expected {expected}: "
                "convert it first"
            )
        self.name = graph.variables.unique(name)
        self._held: weakref.WeakKeyDictionary[GraphFrame, _VariableState] = (
            weakref.WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"<Variable {self.name!r} {self.element_type}{self.shape}>"

    @property
    def element_type(self) -> ElementType:
        """Element type of all values of the variable."""
        assert self.initial_value.element_type is not None
        return self.initial_value.element_type

    @property
    def shape(self) -> PartialShape:
        """Shape of all values of the variable."""
        return self.initial_value.shape

    def read(self) -> Tensor:
        """Return the value after all assignments before this call."""
        frame = graph_of((self.initial_value,), "Variable.read").frame
        state = self._held.setdefault(frame, _VariableState())
        if state.current is None or not frame.holds(state.current):
            state.current = self._read_anew(frame, state)
        return state.current

    read_value = value = read
    """Names of ``read`` in TensorFlow."""

    def assign(self, value: Any) -> Tensor:
        """Assign a value and return it.

        ``BuildError`` for another element type or shape.
        """
        graph = self.initial_value.graph
        new = graph.lift(value, [self.element_type], f"{self!r}.assign(): value")
        # The assignment waits for the value that it replaces, so that earlier reads are done.
        return self._assign(graph.apply("After", (new, self.read()), {})[0], "assign")

    def assign_add(self, delta: Any) -> Tensor:
        """Add to the value and return the sum."""
        return self._assign(self.read() + delta, "assign_add")

    def assign_sub(self, delta: Any) -> Tensor:
        """Subtract from the value and return the difference."""
        return self._assign(self.read() - delta, "assign_sub")

    def _read_anew(self, frame: GraphFrame, state: _VariableState) -> Tensor:
        initial = frame.bring(self.initial_value)
        changer = None if state.changed_by is None else frame.first_region(state.changed_by)
        if changer is not None:
            initial = frame.graph.apply("After", (initial, changer), {})[0]
        shape = str(self.shape).removeprefix("[").removesuffix("]")
        attributes = {
            "variable_id": self.name,
            "variable_type": str(self.element_type),
            "variable_shape": shape,
        }
        return frame.graph.apply("ReadValue", (initial,), attributes, self.name)[0]

    def _assign(self, value: Tensor, caller: str) -> Tensor:
        if value.element_type is not self.element_type or self.shape.intersect(value.shape) is None:
            raise BuildError(
                f"{self!r}.{caller}(): the value would be {value!r}, but a variable's element "
                "type and shape must not change"
            )
        frame = graph_of((value,), caller).frame
        assigned: Tensor = value.graph.apply(
            "Assign", (value,), {"variable_id": self.name}, f"{self.name}_{caller}"
        )[0]
        self._held[frame].current = assigned
        outer = frame.parent
        while outer is not None:
            self._held[outer] = _VariableState(None, LayerId(len(outer.nodes)))
            outer = outer.parent
        return assigned


@contextmanager
def control_dependencies(
    control_inputs: Iterable[Tensor | GraphOperation] | None,
) -> Iterator[None]:
    """Make operations that are built inside wait for ``control_inputs``, and make those run.

            with builder.control_dependencies([counter.assign_add(1)]):
                y = x * 2  # fetching y also counts

    ``control_inputs``: tensors, or operations of the graph. ``builder.constant`` waits too;
    parameters and numbers in an expression do not wait. A nested call adds its inputs to those of
    the outer call; None removes the inputs of the outer calls.
    """
    inputs = [] if control_inputs is None else list(control_inputs)
    awaited: list[Tensor] = []
    for control_input in inputs:
        outputs = (
            control_input.outputs[:1]
            if isinstance(control_input, GraphOperation)
            else (control_input,)
        )
        if not outputs or not isinstance(outputs[0], Tensor):
            raise BuildError(
                "control_dependencies(): expected tensors or operations with an output, got "
                f"{shorten(repr(control_input), 60)}"
            )
        awaited += outputs
    frame = graph_of(awaited, "control_dependencies").frame
    with frame.waiting_for(
        [frame.bring(control_input) for control_input in awaited], reset=control_inputs is None
    ):
        yield


def Print(  # TensorFlow's name
    input_: Any,
    data: Any = None,
    message: str = "",
    first_n: int = -1,
    summarize: int = 3,
    name: str | None = None,
) -> Tensor:
    """Return ``input_`` unchanged. Whenever it is computed, a line with ``message`` and the values
    of ``data`` (default: ``input_``) is printed.

    ``first_n``: maximum number of lines (-1: all). ``summarize``: maximum number of elements per
    value (-1: all). The app shows the lines up to the current moment; ``loopscope run`` and a
    ``compat.v1.Session`` show all lines, and ``loopscope.run(...).printed`` contains them. A Print
    with an unused result prints nothing. Only Loopscope runs this operation; other runtimes do not
    support it.
    """
    values = [] if data is None else [leaf.value for leaf in leaves(data)]
    graph = graph_of([input_, *values], "Print")
    attributes = {"message": message or "", "first_n": first_n, "summarize": summarize}
    return graph.apply(
        "Print",
        (graph.lift(input_, what="Print(): input_"), *map(graph.lift, values)),
        attributes,
        name or "",
    )[0]
