"""``Variable``: a value that a session preserves between runs; read by ReadValue-6, written by
Assign-6.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from loopscope.builder.frame import GraphFrame
from loopscope.builder.graph_builder import check_name, current_graph, graph_of
from loopscope.builder.lift import ElementTypeLike, element_type_of
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
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
        frame = self.initial_value.graph.frame
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
        frame = value.graph.frame
        assigned: Tensor = value.graph.apply(
            "Assign", (value,), {"variable_id": self.name}, f"{self.name}_{caller}"
        )[0]
        self._held[frame].current = assigned
        outer = frame.parent
        while outer is not None:
            self._held[outer] = _VariableState(None, LayerId(len(outer.nodes)))
            outer = outer.parent
        return assigned
