"""Check of the types and shapes of recorded values against shape inference of the model."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from loopscope.errors import shorten
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import LoopRegion, Plan
from loopscope.ir.element_type import ElementType, type_name
from loopscope.ir.model import Form, LayerId, Node
from loopscope.ir.shape import DYNAMIC
from loopscope.ir.walk import graphs
from loopscope.ops.declare import Known
from loopscope.ops.values import NOT_KEPT, is_tensor

_ONE_ELEMENT = "one element"


class RecordedTypes:
    """Expected types and shapes of the values of a plan, by slot."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def expect(self, slot: Slot, value: Any) -> None:
        """Raise ``ValueError`` if the slot cannot have this value."""
        if value is None or value is NOT_KEPT:
            return
        known, form = self._known(slot)
        is_text = isinstance(value, str) and known.element_type in (None, ElementType.STRING)
        if form == "tensor" and not isinstance(value, (np.ndarray, np.generic)) and not is_text:
            raise ValueError(f"its recording has no tensor as {self._label(slot)}")
        for leaf in _leaves(value):
            self._expect_array(slot, leaf.dtype, leaf.shape, known)
        if slot in self._single and is_tensor(value) and np.size(value) != 1:
            self._refuse(slot, np.asarray(value).dtype, np.shape(value), _ONE_ELEMENT)

    def expect_hidden(self, slot: Slot, value: Any) -> None:
        """Raise ``ValueError`` if this cannot be a random operation's state or a variable's
        value.
        """
        if slot in self._plan.states and not isinstance(value, (int, tuple)):
            raise ValueError("its recording has no number as the state of a random operation")
        for reader in self._readers.get(slot, ()):
            self.expect(reader, value)
        self.expect(slot, value)

    def expect_rows(self, slot: Slot, values: Any) -> None:
        """Raise ``ValueError`` if the slot cannot have these values of several rows.

        The values are a list or one stacked array.
        """
        if isinstance(values, np.ndarray):
            known, _ = self._known(slot)
            self._expect_array(slot, values.dtype, values.shape[1:], known)
            return
        for value in values:
            self.expect(slot, value)

    def _expect_array(
        self, slot: Slot, dtype: np.dtype, shape: tuple[int, ...], known: Known
    ) -> None:
        expected = known.element_type
        if expected is None:
            try:
                ElementType.of_dtype(dtype)
            except KeyError:
                self._refuse(slot, dtype, shape, "a type that models have")
        elif dtype != expected.dtype:
            self._refuse(slot, dtype, shape, str(expected))
        if not known.shape.contains(shape):
            self._refuse(slot, dtype, shape, f"the shape {known.shape}")

    def _refuse(self, slot: Slot, dtype: np.dtype, shape: tuple[int, ...], expected: str) -> None:
        actual = f"{type_name(dtype)} {list(shape)}"
        raise ValueError(f"its recording has {actual} as {self._label(slot)}, expected {expected}")

    def _label(self, slot: Slot) -> str:
        address, layer, _ = self._places.get(slot, ("main", LayerId(-1), 0))
        node = self._nodes.get((address, layer))
        return shorten(f"{address}/{node.name}" if node is not None else f"value {slot}")

    def _known(self, slot: Slot) -> tuple[Known, Form]:
        place = self._places.get(slot)
        if place is None:
            return Known(), "optional"
        address, layer, output = place
        node = self._nodes.get((address, layer))
        form: Form = "tensor"
        if node is not None and output < len(node.outputs):
            form = node.outputs[output].form
        known = self._plan.propagated.output(address, layer, output)
        if form != "tensor":
            return Known(known.element_type, DYNAMIC), form
        return known, form

    @cached_property
    def _places(self) -> dict[Slot, tuple[str, LayerId, int]]:
        """Graph address, layer and output of each slot.

        Results are skipped, because they share the slots of their inputs.
        """
        places: dict[Slot, tuple[str, LayerId, int]] = {}
        for program in self._plan.programs:
            for (layer, output), slot in program.slots.items():
                if layer not in program.results:
                    places.setdefault(slot, (program.address, layer, output))
        return places

    @cached_property
    def _nodes(self) -> dict[tuple[str, LayerId], Node]:
        return {
            (place.address, node.id): node
            for place in graphs(self._plan.model)
            for node in place.graph.nodes
        }

    @cached_property
    def _readers(self) -> dict[Slot, list[Slot]]:
        """The outputs of the operations that read each variable."""
        readers: dict[Slot, list[Slot]] = {}
        for program in self._plan.programs:
            for instruction in program.instructions:
                if instruction.variable is not None and instruction.outputs:
                    readers.setdefault(instruction.variable, []).append(instruction.outputs[0])
        return readers

    @cached_property
    def _single(self) -> frozenset[Slot]:
        """Slots of trip counts and of conditions of loops."""
        slots: set[Slot] = set()
        for _, instruction in self._plan.regions:
            if isinstance(instruction.region, LoopRegion):
                region = instruction.region
                slots |= {
                    slot
                    for slot in (region.trip_count, region.condition, region.condition_result)
                    if slot is not None
                }
        return frozenset(slots)


def _leaves(value: Any) -> Iterable[np.ndarray | np.generic]:
    """Yield the arrays of a tensor or of a sequence."""
    if isinstance(value, tuple):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, (np.ndarray, np.generic)):
        yield value
