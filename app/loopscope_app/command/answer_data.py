"""Values, and explanations of a run's loops and branches, as strict JSON for all commands.

A short value is whole, else a summary. Explanations have everything that the screen shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

import loopscope
from loopscope.errors import EngineError
from loopscope.explain import ExecutionHistory, Fact, Margin, Verdict, deciding, executions, verdict
from loopscope.ir import is_whole, type_name
from loopscope.ops import NO_VALUE, NOT_KEPT, shortest

SHORT = 64
"""Number of elements up to which a value is whole."""


def value_data(value: Any, limit: int = SHORT) -> dict[str, Any]:
    """Return a value as JSON: whole up to ``limit`` elements, else a summary.

    A tensor has ``type`` and ``shape``. Any other value of ONNX has a ``kind``: a sequence, a map,
    an empty optional, or a value that was not stored.
    """
    if value is None or value is NO_VALUE:
        return {"kind": "nothing"}
    if value is NOT_KEPT:
        return {"kind": "not kept"}
    if isinstance(value, tuple):
        return {
            "kind": "sequence",
            **_elements(value, limit, lambda element: value_data(element, limit)),
        }
    if isinstance(value, Mapping):
        pairs = [
            (getattr(key, "item", lambda key=key: key)(), element) for key, element in value.items()
        ]
        return {
            "kind": "map",
            **_elements(pairs, limit, lambda pair: [pair[0], value_data(pair[1], limit)]),
        }
    array = np.asarray(value)
    data: dict[str, Any] = {"type": type_name(array.dtype), "shape": list(array.shape)}
    if array.size <= limit and max(array.shape, default=0) <= limit:
        return {**data, "value": numbers(array)}
    flat = array.reshape(-1)
    return {
        **data,
        "summary": _summary(flat),
        "first": numbers(flat[:8]),
        "last": numbers(flat[-8:]),
    }


def _elements(elements: Sequence[Any], limit: int, to_data: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the elements of a sequence or a map: all up to ``limit``, else the first and the
    last.
    """
    if len(elements) <= limit:
        return {"length": len(elements), "value": [to_data(element) for element in elements]}
    return {
        "length": len(elements),
        "first": [to_data(element) for element in elements[:8]],
        "last": [to_data(element) for element in elements[-8:]],
    }


def numbers(array: np.ndarray) -> Any:
    """Return the elements as JSON; a float becomes the shortest number that its type reads as
    equal.
    """
    return strict(values(shortest(array)).tolist())


def _summary(flat: np.ndarray) -> dict[str, Any]:
    if flat.dtype.kind in "Oc":
        return {"elements": flat.size}
    floats = values(flat).astype(np.float64)
    finite = floats[np.isfinite(floats)]
    counts = {
        "elements": flat.size,
        "nan": int(np.isnan(floats).sum()),
        "infinite": int(np.isinf(floats).sum()),
    }
    if not finite.size:
        return counts
    return {
        **counts,
        "min": strict(float(finite.min())),
        "max": strict(float(finite.max())),
        "mean": strict(float(finite.mean())),
    }


def values(array: np.ndarray) -> np.ndarray:
    """Return an array whose ``tolist`` returns Python numbers or texts.

    Narrow types are widened, and packed types become their codes.
    """
    if array.dtype.names:
        return array[array.dtype.names[0]]
    if array.dtype.kind == "O" or array.dtype.isbuiltin:
        return array
    return array.astype(np.int64 if is_whole(array.dtype) else np.float64)


def strict(value: Any) -> Any:
    """Return a value with NaN and infinities as strings and complex numbers as pairs, as JSON
    requires.

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


_FIRST_EXECUTIONS, _LAST_EXECUTIONS = 4, 4
"""Number of executions of each loop and If that are explained; `loopscope why` explains any."""


def explain_regions(debugger: loopscope.Debugger, limit: int | None = None) -> list[dict[str, Any]]:
    """Return an entry for each loop and If, outer ones first, including those that never ran.

    ``limit`` bounds the number of entries.
    """
    return [_region(debugger, region) for region in islice(executions(debugger), limit)]


def _region(debugger: loopscope.Debugger, region: ExecutionHistory) -> dict[str, Any]:
    chosen = sorted(
        {
            *range(min(_FIRST_EXECUTIONS, region.count)),
            *range(max(0, region.count - _LAST_EXECUTIONS), region.count),
        }
    )
    entry: dict[str, Any] = {
        "address": region.static,
        "kind": region.kind,
        "executions": region.count,
    }
    if region.kind == "If":
        entry["tape"] = [list(run) for run in region.tape()]
    verdicts = [_verdict_or_reason(debugger, region.address(number)) for number in chosen]
    return {**entry, "verdicts": verdicts, "verdicts_left_out": region.count - len(chosen)}


def _verdict_or_reason(debugger: loopscope.Debugger, address: str) -> dict[str, Any]:
    """Return the verdict of one execution, or the reason why there is none, such as values not
    stored.
    """
    try:
        return verdict_data(debugger, verdict(debugger, address))
    except EngineError as error:
        return {"address": address, "sentence": str(error), "decided_by": [], "proof": []}


def verdict_data(debugger: loopscope.Debugger, result: Verdict) -> dict[str, Any]:
    """Return a verdict: its sentence, the deciding facts, and the whole proof with operand
    values.
    """
    record = result.record
    data: dict[str, Any] = {
        "address": result.address,
        "kind": record.kind,
        "sentence": result.sentence,
    }
    if record.kind == "If":
        data["branch"] = record.branch
    else:
        data |= {
            "iterations": record.iterations,
            "ended_by": record.ended_by,
            "endless": record.endless,
            "declared": result.declared,
        }
    if result.pattern is not None:
        data["pattern"] = result.pattern.sentence
    data["margin"] = _margin(result.margin)
    return {
        **data,
        "decided_by": _facts(debugger, deciding(result.proof)),
        "proof": _facts(debugger, result.proof),
    }


def _margin(margin: Margin | None) -> dict[str, Any] | None:
    """Return how narrowly floats were compared, and the types in which the comparison would
    flip.
    """
    return (
        None
        if margin is None
        else {"distance": strict(margin.distance), "otherwise": list(margin.otherwise)}
    )


def _facts(debugger: loopscope.Debugger, facts: Iterable[Fact]) -> list[dict[str, Any]]:
    return [
        {
            "address": fact.address,
            "operation": fact.operation,
            "text": fact.text,
            "depth": fact.depth,
            "by_hand": fact.by_hand,
            "margin": _margin(fact.margin),
            "operands": [
                {"address": address, **value_or_reason(debugger, address)}
                for address in fact.operands
            ],
        }
        for fact in facts
    ]


def value_or_reason(debugger: loopscope.Debugger, address: str) -> dict[str, Any]:
    """Return the value at an address, or the reason why there is none."""
    try:
        return value_data(debugger.value(address))
    except EngineError as error:
        return {"kind": "nothing", "sentence": str(error)}
