"""Encoding of a recording as few file entries, a digest of its plan, and checks of its values.

Types and shapes of recorded values are checked against shape inference of the model. Values of one
shape become one array, values that differ in lengths two arrays, others one entry each. The digest
is of the plan's slots and instructions.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from loopscope.errors import shorten
from loopscope.executor.plan.plan import LoopRegion, Plan, Program
from loopscope.executor.plan.slots import Slot, settle
from loopscope.ir.address import graphs
from loopscope.ir.element_type import ElementType, type_name
from loopscope.ir.model import Form, LayerId, Node
from loopscope.ir.shape import DYNAMIC
from loopscope.ops.declare import Known
from loopscope.ops.values import NOT_KEPT, is_tensor

_MAX_MAGNITUDE = 2**128
_MAX_DEPTH = 4


def encode_values(name: str, values: Sequence[Any], into: dict[str, Any]) -> dict[str, Any]:
    """Store the values in ``into`` under ``name``, and return their form in JSON.

    ``decode_values`` decodes them by this form.
    """
    items = list(values)
    if all(map(_is_plain, items)):
        return {"plain": items}
    stacked = _stack(items)
    if stacked is not None:
        into[name] = stacked
        return {"together": len(items)}
    first = items[0]
    if (
        all(
            isinstance(item, np.ndarray) and item.dtype == first.dtype and item.ndim == first.ndim
            for item in items
        )
        and first.ndim
    ):
        into[f"{name}.shapes"] = np.array([item.shape for item in items], np.int64)
        into[name] = np.concatenate([item.reshape(-1) for item in items])
        return {"ragged": len(items)}
    for number, item in enumerate(items):
        if not _is_plain(item):
            into[f"{name}.{number}"] = item
    return {"each": [item if _is_plain(item) else True for item in items]}


def decode_values(name: str, form: object, entries: Mapping[str, Any]) -> Any:
    """Decode the values of a form, as an array if they are stacked.

    ``ValueError`` when the entries do not match the form.
    """
    match form:
        case {"plain": list(values)}:
            return [_parse_plain(item, 0) for item in values]
        case {"together": int(count)}:
            array = _array(name, entries)
            if array.ndim and len(array) == count:
                return array
        case {"ragged": int(count)}:
            shapes, flat = _array(f"{name}.shapes", entries), _array(name, entries)
            if (
                shapes.ndim == 2
                and shapes.dtype == np.int64
                and len(shapes) == count
                and flat.ndim == 1
            ):
                return _split(flat, shapes)
        case {"each": list(marks)}:
            return [
                settle(_value(f"{name}.{number}", entries))
                if item is True
                else _parse_plain(item, 0)
                for number, item in enumerate(marks)
            ]
    raise ValueError(f"its recording has {name} in another form than declared")


def value_bytes(value: Any) -> int:
    """Return the approximate size of a value in bytes."""
    if isinstance(value, tuple):
        return 64 + sum(map(value_bytes, value))
    return int(getattr(value, "nbytes", 64))


def _value(name: str, entries: Mapping[str, Any]) -> Any:
    if name not in entries:
        raise ValueError(f"its recording lacks {name}")
    return entries[name]


def _array(name: str, entries: Mapping[str, Any]) -> np.ndarray:
    value = _value(name, entries)
    if not isinstance(value, np.ndarray):
        raise ValueError(f"its recording does not have an array as {name}")
    return value


def _stack(values: Sequence[Any]) -> np.ndarray | None:
    first = values[0]
    same = isinstance(first, (np.ndarray, np.generic)) and all(
        isinstance(value, (np.ndarray, np.generic))
        and value.dtype == first.dtype
        and value.shape == first.shape
        for value in values
    )
    if not same or first.dtype == object:
        return None
    return np.stack([np.asarray(value) for value in values])


def _split(flat: np.ndarray, shapes: np.ndarray) -> list[Any]:
    sizes = [math.prod(shape) for shape in shapes.tolist()]
    if (len(shapes) and shapes.min(initial=0) < 0) or sum(sizes) != len(flat):
        raise ValueError("its recording has values of other sizes than declared")
    ends = np.cumsum([0, *sizes]).tolist()
    return [
        flat[begin:end].reshape(shape)
        for begin, end, shape in zip(ends, ends[1:], shapes.tolist(), strict=False)
    ]


def _is_plain(value: Any) -> bool:
    """Return True for None, a number, or a tuple of these.

    None is a variable without a value; numbers and tuples are states of random operations.
    """
    if isinstance(value, tuple):
        return bool(value) and all(map(_is_plain, value))
    return value is None or type(value) is int


def _parse_plain(value: object, depth: int) -> Any:
    if isinstance(value, list) and value and depth < _MAX_DEPTH:
        return tuple(_parse_plain(item, depth + 1) for item in value)
    if value is None or (type(value) is int and abs(value) <= _MAX_MAGNITUDE):
        return value
    raise ValueError("its recording has another value where a number or null is expected")


def layout_of(plan: Plan) -> str:
    """Return a digest of the order of operations and the slots of their values.

    A recording with another digest cannot be restored, because its numbers mean other values.
    """
    digest = hashlib.sha256()
    for program in plan.programs:
        digest.update(json.dumps(_description(program)).encode())
    digest.update(
        json.dumps(
            [plan.slot_count, [slot for slot, _ in plan.constant_slots], list(plan.states)]
        ).encode()
    )
    return digest.hexdigest()


def _description(program: Program) -> list[object]:
    instructions = [
        [
            instruction.label,
            instruction.inputs,
            instruction.outputs,
            instruction.state,
            instruction.variable,
            instruction.region.table if instruction.region else None,
        ]
        for instruction in program.instructions
    ]
    carried = (
        [instruction.parameter for instruction in program.loop.carried] if program.loop else []
    )
    return [
        program.address,
        list(program.parameters.values()),
        list(program.results.values()),
        instructions,
        carried,
        program.hidden,
    ]


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
