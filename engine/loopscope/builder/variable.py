"""``Variable``: a value that a session keeps from one run to the next; read by ReadValue-6,
written by Assign-6.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from loopscope.builder.frame import GraphFrame
from loopscope.builder.graph_builder import checked_name, current_graph, graph_of
from loopscope.builder.lift import ElementTypeLike, element_type_of
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope.ir.shape import PartialShape


@dataclass(slots=True)
class _Held:
    """What a variable is known to hold at the place that a graph or body has been built up to."""

    current: Tensor | None = None
    """The last read or assigned value; None when another body may have assigned one since."""
    changed_by: LayerId | None = None
    """The first number that the node whose body has assigned a value may have; None when none
    has.
    """


class Variable:
    """``Variable(initial_value, name)``: what it holds before the first run, and what it is called
    in ``session.variables``.

    A read sees what was assigned before it, in the order of the calls. An assignment runs where its
    result is needed: make it an output, fetch it, or let something wait for it with
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
        wanted = [] if dtype is None else [element_type_of(dtype)]
        checked_name(name, "the name of a variable")
        self.initial_value = graph.lift(
            initial_value, wanted, "Variable(): initial_value", f"{name}_initial"
        )
        if self.initial_value.element_type is None or (
            wanted and self.initial_value.element_type is not wanted[0]
        ):
            expected = dtype or "a known element type"
            raise BuildError(
                f"Variable(): initial_value is {self.initial_value!r}, expected {expected}: convert it first"
            )
        self.name = graph.variables.unique(name)
        self._held: weakref.WeakKeyDictionary[GraphFrame, _Held] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<Variable {self.name!r} {self.element_type}{self.shape}>"

    @property
    def element_type(self) -> ElementType:
        """Of all values that it ever holds."""
        assert self.initial_value.element_type is not None
        return self.initial_value.element_type

    @property
    def shape(self) -> PartialShape:
        """Of all values that it ever holds."""
        return self.initial_value.shape

    def read(self) -> Tensor:
        """What it holds after everything that was assigned before this call."""
        frame = self.initial_value.graph.frame
        held = self._held.setdefault(frame, _Held())
        if held.current is None or not frame.holds(held.current):
            held.current = self._read_anew(frame, held)
        return held.current

    read_value = value = read
    """TensorFlow's names for it."""

    def assign(self, value: Any) -> Tensor:
        """Puts a value into it; gives that value. ``BuildError`` for another element type or
        shape.
        """
        graph = self.initial_value.graph
        new = graph.lift(value, [self.element_type], f"{self!r}.assign(): value")
        # After the value that it replaces: so it has been read when it was to be read before.
        return self._written(graph.apply("After", (new, self.read()), {})[0], "assign")

    def assign_add(self, delta: Any) -> Tensor:
        """Adds to what it holds; gives the sum."""
        return self._written(self.read() + delta, "assign_add")

    def assign_sub(self, delta: Any) -> Tensor:
        """Subtracts from what it holds; gives the difference."""
        return self._written(self.read() - delta, "assign_sub")

    def _read_anew(self, frame: GraphFrame, held: _Held) -> Tensor:
        initial = frame.bring(self.initial_value)
        changer = None if held.changed_by is None else frame.first_region(held.changed_by)
        if changer is not None:
            initial = frame.graph.apply("After", (initial, changer), {})[0]
        shape = str(self.shape).removeprefix("[").removesuffix("]")
        kept = {
            "variable_id": self.name,
            "variable_type": str(self.element_type),
            "variable_shape": shape,
        }
        return frame.graph.apply("ReadValue", (initial,), kept, self.name)[0]

    def _written(self, value: Tensor, called: str) -> Tensor:
        if value.element_type is not self.element_type or self.shape.intersect(value.shape) is None:
            raise BuildError(
                f"{self!r}.{called}(): the value would be {value!r}: a variable keeps its element type and shape"
            )
        frame = value.graph.frame
        made: Tensor = value.graph.apply(
            "Assign", (value,), {"variable_id": self.name}, f"{self.name}_{called}"
        )[0]
        self._held[frame].current = made
        outer = frame.parent
        while outer is not None:
            self._held[outer] = _Held(None, LayerId(len(outer.nodes)))
            outer = outer.parent
        return made
