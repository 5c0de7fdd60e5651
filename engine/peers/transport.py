"""Values of every kind as arrays and a description in JSON, for files between processes; nothing is pickled.

The other end is ``onnxruntime_process.py``, which imports nothing of ours and says the same with lists, dictionaries and None.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.ops.values import NO_VALUE


@dataclass(frozen=True, slots=True)
class Unread:
    """A value of a kind that cannot be sent."""

    kind: str


def write(path: Path, values: Sequence[object]) -> None:
    """Values of the machine, by position, as an npz file: ``forms`` describes them, the other entries are their tensors."""
    arrays: dict[str, np.ndarray] = {}
    forms = [_described(value, arrays) for value in values]
    np.savez(path, allow_pickle=False, forms=np.array(json.dumps(forms)), **arrays)


def read(path: Path) -> dict[str, Any]:
    """What a runtime wrote: outputs by name, in their order. ``ValueError`` when it is no such file."""
    with np.load(path, allow_pickle=False) as stored:
        names = [str(name) for name in stored["names"]]
        if "forms" not in stored.files:  # OpenVINO gives tensors only
            return {name: stored[str(number)] for number, name in enumerate(names)}
        forms = json.loads(str(stored["forms"]))
        return {name: _made(form, stored) for name, form in zip(names, forms, strict=True)}


def _described(value: object, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if value is NO_VALUE:
        return {"nothing": True}
    if isinstance(value, tuple):
        return {"sequence": [_described(one, arrays) for one in value]}
    if isinstance(value, Mapping):
        return {"map": [[key, _described(one, arrays)] for key, one in value.items()]}
    array = np.asarray(value)
    if array.dtype == object:
        return {"texts": array.reshape(-1).tolist(), "shape": list(array.shape)}
    name = str(len(arrays))
    arrays[name] = array
    return {"array": name}


def _made(form: Mapping[str, Any], stored: Mapping[str, np.ndarray]) -> Any:
    if "array" in form:
        return stored[form["array"]]
    if "texts" in form:
        texts = np.empty(form["shape"], dtype=object)
        texts.reshape(-1)[:] = form["texts"]
        return texts
    if "sequence" in form:
        return tuple(_made(one, stored) for one in form["sequence"])
    if "map" in form:
        return MappingProxyType({key: _made(one, stored) for key, one in form["map"]})
    return NO_VALUE if "nothing" in form else Unread(form["unread"])
