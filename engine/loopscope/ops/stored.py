"""Values of every kind as the entries of an ``.npz`` file: plain arrays, and a description in JSON
of what numpy has no type for.

A tensor of one of numpy's own types is an array under its name, and texts are an array of numpy's
texts. Everything else is described in the entry ``loopscope.forms``, a JSON object by name, whose
values are one of

- ``{"array": ENTRY, "type": "bf16"}``: a tensor of a type that numpy lacks; the entry is an array
  of the next wider type of numpy, and the types that are codes only (u1, u3, u6, nf4) are their
  codes as uint8;
- ``{"texts": [...], "shape": [...]}``: texts of which numpy would lose the end, or take far too
  much memory for;
- ``{"sequence": [FORM, ...]}`` and ``{"map": [[KEY, FORM], ...]}``, with ``{"array": ENTRY}`` for
  the tensors in them;
- ``{"nothing": true}``: an optional that holds nothing.

Nothing is pickled, and what a file says is bounded by what it holds.
"""

from __future__ import annotations

import json
import math
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import ml_dtypes
import numpy as np
from numpy.lib.npyio import NpzFile

from loopscope.errors import InputError, shorten
from loopscope.ir.element_type import ElementType, type_name
from loopscope.ops.values import NO_VALUE

FORMS = "loopscope.forms"
"""The entry that describes what numpy has no type for; there is none where there is no such
value.
"""
_DEEPEST = 16
"""Sequences and maps within each other: ONNX's own go three deep."""
_MOST_OF_TEXTS = 1 << 26
"""Bytes that an array of numpy's texts may take, all of which take as much as the longest."""
MOST_TEXTS = 1 << 22
"""Texts of an array in a file."""


def packed(values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The entries of a file that holds these values by name; the machine's values, and None for
    an optional that holds nothing.
    """
    names = {name: entry_name(name) for name in values}
    packing = _Packing(set(names.values()))
    forms = {
        names[name]: form
        for name, value in values.items()
        if (form := packing.form(names[name], value)) != {"array": names[name]}
    }
    return {**packing.entries, **({FORMS: np.array(json.dumps(forms))} if forms else {})}


def stored_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """The entries of an ``.npz`` file; ``InputError`` where it cannot be opened, or holds
    anything but plain arrays with names.
    """
    try:
        # Opened here: numpy leaves a file open that it finds to be damaged.
        with Path(path).open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, NpzFile):
                with stored:
                    return arrays_in(stored)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except Exception:  # numpy and zipfile raise whatever a broken file makes them stumble over
        raise InputError(
            f"{path} is not an .npz file of plain arrays: one that numpy.savez wrote is expected, without Python objects"
        ) from None
    raise InputError(
        f"{path} holds one array without a name: an .npz file with an array for each name is expected"
    )


def arrays_in(stored: NpzFile) -> dict[str, np.ndarray]:
    """The entries of an ``.npz`` file that is open; ``ValueError`` for one that is no array,
    which numpy gives as its bytes.
    """
    entries = {key: stored[key] for key in stored.files}
    odd = next((key for key, value in entries.items() if not isinstance(value, np.ndarray)), None)
    if odd is not None:
        raise ValueError(f"its entry {shorten(repr(odd))} is no array")
    for key, value in entries.items():
        check_stored(value, f"its entry {shorten(repr(key))}")
    return entries


def check_stored(array: np.ndarray, what: str) -> None:
    """``ValueError`` for an array that numpy reads, and nobody can work with: billions of elements
    without a size, or texts of what is no character, at which Python itself fails.
    """
    if not array.itemsize and array.size > MOST_TEXTS:
        raise ValueError(f"{what} claims {array.size:,} elements that take no room in it")
    if array.dtype.kind == "U" and array.itemsize and array.size:
        codes = (
            np.ascontiguousarray(array)
            .reshape(-1)
            .view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        )
        if codes.max() > sys.maxunicode:
            raise ValueError(
                f"{what} holds texts with the character {codes.max():,}: the last one is {sys.maxunicode:,}"
            )


def unpacked(entries: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The values in the entries of a file; ``ValueError`` says what is wrong with their
    description.
    """
    forms = _forms(entries)
    used = {FORMS}
    described = {name: _made(form, entries, used, 0) for name, form in forms.items()}
    return {
        name: _as_texts(array)
        for name, array in entries.items()
        if name not in used and name not in described
    } | described


def write(
    target: Path | BinaryIO,
    entries: Mapping[str, np.ndarray],
    compression: int = zipfile.ZIP_STORED,
) -> None:
    """Writes an ``.npz`` file of plain arrays, as ``np.savez`` would, which takes names only as
    keywords and so refuses some.
    """
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, array in entries.items():
            with archive.open(f"{entry_name(name)}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def entry_name(text: str) -> str:
    """A name as zip and UTF-8 can hold it: a half of a surrogate pair as Python writes it, and
    no NUL, where zip ends a name.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "%00")


def plain(array: np.ndarray) -> np.ndarray:
    """An array of a type that every numpy can read: narrow floats as float32, narrow integers as
    8 bits, strings as text.
    """
    array = np.asarray(array)
    if array.dtype.names:
        return np.asarray(array[array.dtype.names[0]])
    if array.dtype.kind == "O":
        return array.astype(np.str_)
    if array.dtype.isbuiltin == 1:  # 2 are the narrow types that numpy itself lacks
        return array
    return array.astype(next(wider for wider in _WIDER if np.can_cast(array.dtype, wider, "safe")))


class _Packing:
    """Gives every tensor an entry of its own: the value's name, or that and the tensor's number
    within the value.
    """

    def __init__(self, taken: set[str]) -> None:
        self.entries: dict[str, np.ndarray] = {}
        self._taken = taken | {FORMS}

    def form(self, name: str, value: Any) -> dict[str, Any]:
        if value is NO_VALUE or value is None:
            return {"nothing": True}
        if isinstance(value, tuple):
            return {
                "sequence": [self._within(name, number, one) for number, one in enumerate(value)]
            }
        if isinstance(value, Mapping):
            return {
                "map": [
                    [_key(key), self._within(name, number, one)]
                    for number, (key, one) in enumerate(value.items())
                ]
            }
        array = np.asarray(value)
        if array.dtype == object and not _numpy_holds(array):
            return {"texts": array.reshape(-1).tolist(), "shape": list(array.shape)}
        self.entries[name] = plain(array)
        lacks = array.dtype.names or array.dtype.isbuiltin == 2
        return {"array": name, "type": type_name(array.dtype)} if lacks else {"array": name}

    def _within(self, name: str, number: int, value: Any) -> dict[str, Any]:
        entry = f"{name}/{number}"
        while entry in self._taken:
            entry += "'"
        self._taken.add(entry)
        return self.form(entry, value)


def _key(key: Any) -> Any:
    return key.item() if isinstance(key, np.generic) else key


def _numpy_holds(texts: np.ndarray) -> bool:
    """Whether numpy's own arrays of texts keep these whole: they drop NULs at the end, and take
    the longest's memory for each.
    """
    listed = texts.reshape(-1).tolist()
    return (
        not any(text.endswith("\0") for text in listed)
        and 4 * len(listed) * max(map(len, listed), default=0) <= _MOST_OF_TEXTS
    )


def _forms(entries: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
    if FORMS not in entries:
        return {}
    text = entries[FORMS]
    check_stored(text, f"its entry {FORMS!r}")
    try:
        forms = json.loads(str(text)) if text.ndim == 0 and text.dtype.kind == "U" else None
    except (ValueError, RecursionError):
        forms = None
    if not isinstance(forms, dict):
        raise ValueError(
            f"its entry {FORMS!r} is expected to be a JSON object with a form for each name, and is none"
        )
    return forms


def _made(form: Any, entries: Mapping[str, np.ndarray], used: set[str], depth: int) -> Any:
    match form:
        case {"nothing": True}:
            return NO_VALUE
        case {"array": str(name), **more} if name in entries and name != FORMS:
            used.add(name)
            return _of_type(entries[name], more.get("type"))
        case {"texts": list(texts), "shape": list(shape)}:
            return _of_texts(texts, shape)
        case {"sequence": list(elements)} if depth < _DEEPEST:
            return tuple(_made(one, entries, used, depth + 1) for one in elements)
        case {"map": list(pairs)} if depth < _DEEPEST and all(map(_is_pair, pairs)):
            return MappingProxyType(
                {key: _made(one, entries, used, depth + 1) for key, one in pairs}
            )
    raise ValueError(
        f"its entry {FORMS!r} describes a value as {shorten(json.dumps(form))}, which is no form, or names no entry"
    )


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], (str, int, float))


def _of_type(array: np.ndarray, name: Any) -> np.ndarray:
    if name is None:
        return _as_texts(array)
    dtype = _LACKED.get(name) if isinstance(name, str) else None
    if dtype is None or array.dtype != plain(np.zeros(0, dtype)).dtype:
        raise ValueError(
            f"its entry {FORMS!r} names the type {shorten(repr(name))} for an array of {array.dtype}, which is not stored so"
        )
    if dtype.names:
        return np.ascontiguousarray(array).view(dtype).reshape(array.shape)
    with np.errstate(
        all="ignore"
    ):  # a file may hold numbers that are too large for the type, and they become what it makes of them
        return array.astype(dtype)


def _of_texts(texts: list[Any], shape: list[Any]) -> np.ndarray:
    lengths = all(type(length) is int and length >= 0 for length in shape)
    if (
        not lengths
        or math.prod(shape) != len(texts)
        or not all(isinstance(text, str) for text in texts)
    ):
        raise ValueError(
            f"its entry {FORMS!r} has {len(texts):,} texts for the shape {shorten(str(shape))}, which do not go together"
        )
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array.reshape(shape)


def _as_texts(array: np.ndarray) -> np.ndarray:
    """An array of numpy's texts as objects, each of which takes some 60 bytes though it may have
    taken none in the file.
    """
    if array.dtype.kind != "U":
        return array
    if array.size > MOST_TEXTS:
        raise ValueError(
            f"it holds an array of {array.size:,} texts: at most {MOST_TEXTS:,} are read"
        )
    check_stored(array, "an array in it")
    return array.astype(object)


_WIDER = (np.uint8, np.int8, np.float32)
_ONLY_ONNX_HAS = ("int2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e2m3fn", "float6_e3m2fn")
_LACKED: dict[str, np.dtype] = {
    type_name(dtype): dtype
    for dtype in (
        *(one.dtype for one in ElementType),
        *(np.dtype(getattr(ml_dtypes, name)) for name in _ONLY_ONNX_HAS),
    )
    if dtype.names or dtype.isbuiltin == 2
}
"""The types that numpy lacks, by their names."""
