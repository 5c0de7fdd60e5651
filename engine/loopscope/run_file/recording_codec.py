"""Encoding of a recording: lists of values as few file entries, and a digest of its plan.

Values of one shape become one array, values that differ in lengths two arrays, others one entry
each. The digest is of the plan's slots and instructions.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.executor.plan.plan import Plan, Program, settle

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
