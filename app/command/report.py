"""What ``loopscope run`` says about a run: for people, and as strict JSON."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.describe.wording import record_sentence
from engine.debug import Line, Result
from engine.explain import NotFinite
from engine.ir import Model, Signature, is_whole, type_name
from engine.ops import NO_VALUE, is_tensor, shortest
from engine.view import neutral, value_preview

SHORT = 64
"""Elements up to which a value is written out."""
_RECORDS_SHOWN = 40
_LINES_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run went: ``finished``, ``failed``, ``limit``, ``stopped`` by Ctrl+C, or ``refused`` before it began."""

    state: str
    message: str = ""
    address: str = ""
    result: Result | None = None
    odd: NotFinite | None = None
    """The first NaN or infinity; None when it was not searched for."""


def as_json(outcome: Outcome, model: Model | None) -> Iterator[str]:
    """One JSON object in pieces: the records of a run may be millions, and only their text is kept. What cannot be told raises before
    anything is printed, since the pieces are joined first."""
    yield '{"state": ' + json.dumps(outcome.state)
    if outcome.message:
        yield ', "message": ' + json.dumps(outcome.message) + ', "address": ' + json.dumps(outcome.address)
    if outcome.result is not None:
        outputs = outcome.result.outputs if outcome.state == "finished" and model is not None else ()
        pairs = zip(outcome.result.signatures if outputs else (), outputs, strict=True)
        described = [describe(signature, value) for signature, value in pairs]
        yield ', "outputs": ' + json.dumps(described, allow_nan=False) + ', "control_flow": ['
        for position, record in enumerate(outcome.result.control_flow):
            fields = {name: getattr(record, name) for name in ("address", "kind", "iterations", "ended_by", "branch")}
            yield (", " if position else "") + json.dumps(fields)
        yield "]"
        left = outcome.result.left_out
        yield ', "optimised": ' + json.dumps({name: getattr(left, name) for name in ("removed", "folded", "computed_once")})
    if outcome.result is not None and outcome.result.printed:
        yield ', "printed": ' + json.dumps([{"address": line.address, "text": line.text} for line in outcome.result.printed])
    if outcome.odd is not None:
        odd = outcome.odd
        found = {
            "address": odd.address or None,
            "step": odd.step,
            "source": odd.source or None,
            "certain": odd.is_certain,
            "sentence": odd.sentence,
        }
        yield ', "first_nan": ' + json.dumps(found)
    yield "}"


def as_text(outcome: Outcome, model: Model | None) -> Iterator[str]:
    """Lines for a terminal: how it went, the control flow, the outputs."""
    yield outcome.state if not outcome.message else f"{outcome.state}: {neutral(outcome.message, len(outcome.message))}"
    if outcome.result is None or model is None:
        return
    records = outcome.result.control_flow
    for record in itertools.islice(records, _RECORDS_SHOWN):
        depth = sum(mark == "[" for mark in record.address) + record.address.count("/then/") + record.address.count("/else/")
        yield f"{'  ' * (depth + 1)}{neutral(record.address)}: {record_sentence(record)}"
    more = len(records) - _RECORDS_SHOWN
    if more > 0:
        yield f"  ... and {more:,} more (all of them with --json)"
    yield from (f"  {neutral(sentence, len(sentence))}" for sentence in outcome.result.left_out.sentences())
    yield from _printed(outcome.result.printed)
    if outcome.odd is not None:
        yield neutral(outcome.odd.sentence, len(outcome.odd.sentence))
    if outcome.state != "finished":
        return
    yield "outputs"
    for signature, value in zip(outcome.result.signatures, outcome.result.outputs, strict=True):
        yield f"  {neutral(next(iter(signature.names), signature.name))}  {_line(value)}"


def _printed(lines: Sequence[Line]) -> Iterator[str]:
    """The last lines of the model's Prints."""
    if lines:
        yield "printed"
    if len(lines) > _LINES_SHOWN:
        yield f"  {len(lines) - _LINES_SHOWN:,} lines (all of them with --json) ..."
    for line in lines[-_LINES_SHOWN:]:
        yield f"  {neutral(line.text, len(line.text))}"


def _line(value: Any) -> str:
    """A value in one line of the terminal."""
    if value is None or not is_tensor(value):
        return neutral(value_preview(NO_VALUE if value is None else value))
    array = np.asarray(value)
    shown = np.array2string(array, threshold=12, edgeitems=3, precision=6).replace("\n", "")
    return f"{type_name(array.dtype)} {list(array.shape)}  {neutral(shown)}"


def describe(signature: Signature, value: Any) -> dict[str, Any]:
    """An output as JSON: its value when it is short, what is in it when it is long."""
    return {"name": signature.name, "names": list(signature.names), **_described(value)}


def _described(value: Any) -> dict[str, Any]:
    """A tensor has ``type`` and ``shape``; what else ONNX has is a ``kind``: a sequence, a map, an optional that holds nothing."""
    if value is None or value is NO_VALUE:
        return {"kind": "nothing"}
    if isinstance(value, tuple):
        return {"kind": "sequence", **_elements(value, _described)}
    if isinstance(value, Mapping):
        pairs = [(getattr(key, "item", lambda key=key: key)(), one) for key, one in value.items()]
        return {"kind": "map", **_elements(pairs, lambda pair: [pair[0], _described(pair[1])])}
    array = np.asarray(value)
    told: dict[str, Any] = {"type": type_name(array.dtype), "shape": list(array.shape)}
    if array.size <= SHORT and max(array.shape, default=0) <= SHORT:
        return {**told, "value": _numbers(array)}
    flat = array.reshape(-1)
    return {**told, "summary": _summary(flat), "first": _numbers(flat[:8]), "last": _numbers(flat[-8:])}


def _elements(elements: Sequence[Any], told: Callable[[Any], Any]) -> dict[str, Any]:
    """Those of a sequence or a map: all of them when they are few, the first and the last when they are many."""
    if len(elements) <= SHORT:
        return {"length": len(elements), "value": [told(one) for one in elements]}
    return {"length": len(elements), "first": [told(one) for one in elements[:8]], "last": [told(one) for one in elements[-8:]]}


def _numbers(array: np.ndarray) -> Any:
    """The elements as JSON has them, floats with the shortest texts that their type reads as the same values."""
    return strict(values(shortest(array)).tolist())


def _summary(flat: np.ndarray) -> dict[str, Any]:
    if flat.dtype.kind in "Oc":
        return {"elements": flat.size}
    numbers = values(flat).astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    counts = {"elements": flat.size, "nan": int(np.isnan(numbers).sum()), "infinite": int(np.isinf(numbers).sum())}
    if not finite.size:
        return counts
    return {**counts, "min": strict(float(finite.min())), "max": strict(float(finite.max())), "mean": strict(float(finite.mean()))}


def values(array: np.ndarray) -> np.ndarray:
    """An array whose ``tolist`` gives Python numbers or texts: narrow types widened, codes of packed types as numbers."""
    if array.dtype.names:
        return array[array.dtype.names[0]]
    if array.dtype.kind == "O" or array.dtype.isbuiltin:
        return array
    return array.astype(np.int64 if is_whole(array.dtype) else np.float64)


def strict(value: Any) -> Any:
    """NaN and infinities as the strings that JSON needs, complex numbers as pairs, everything else as it is.

    >>> strict([1.5, [float("nan"), float("-inf")], "x"])
    [1.5, ['NaN', '-Infinity'], 'x']
    """
    if isinstance(value, list):
        return [strict(item) for item in value]
    if isinstance(value, complex):
        return [strict(value.real), strict(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
