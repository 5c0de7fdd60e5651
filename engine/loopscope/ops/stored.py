"""Conversion of values of every kind to and from the entries of an ``.npz`` file.

A tensor of one of numpy's own types is an array under its name, and texts are an array of numpy's
texts. Everything else is described in the entry ``loopscope.forms``, a JSON object by name, whose
values are one of

- ``{"array": ENTRY, "type": "bf16"}``: a tensor of a type that numpy lacks; the entry is an array
  of the next wider type of numpy, and the types that are codes only (u1, u3, u6, nf4) are their
  codes as uint8;
- ``{"texts": [...], "shape": [...]}``: texts whose trailing NULs numpy would drop, or whose array
  would take far too much memory;
- ``{"sequence": [FORM, ...]}`` and ``{"map": [[KEY, FORM], ...]}``, with ``{"array": ENTRY}`` for
  the tensors in them;
- ``{"nothing": true}``: an empty optional.

Nothing is pickled, and the sizes that a file declares are limited.
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
"""Entry that describes the values that numpy has no type for; absent if every value is a plain
array.
"""
_MAX_DEPTH = 16
"""Maximum nesting of sequences and maps; ONNX's own types nest three deep."""
_MAX_TEXT_BYTES = 1 << 26
"""Maximum bytes of a numpy array of texts, where each text takes the space of the longest."""
MOST_TEXTS = 1 << 22
"""Maximum number of texts in an array of a file."""


def packed(values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the entries of a file for values by name: values of the machine, and None for an empty
    optional.
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
    """Return the entries of an ``.npz`` file.

    Raise ``InputError`` if the file cannot be opened or contains anything but plain arrays with
    names.
    """
    try:
        # Opened here, because numpy leaves a damaged file open.
        with Path(path).open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, NpzFile):
                with stored:
                    return arrays_in(stored)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except Exception:  # numpy and zipfile raise many kinds of errors for a broken file.
        raise InputError(
            f"{path} is not an .npz file of plain arrays: one that numpy.savez wrote "
            "is expected, without Python objects"
        ) from None
    raise InputError(
        f"{path} holds one array without a name: an .npz file with an array for each "
        "name is expected"
    )


def arrays_in(stored: NpzFile) -> dict[str, np.ndarray]:
    """Return the entries of an open ``.npz`` file.

    Raise ``ValueError`` for an entry that is not an array, which numpy returns as bytes.
    """
    entries = {key: stored[key] for key in stored.files}
    other = next((key for key, value in entries.items() if not isinstance(value, np.ndarray)), None)
    if other is not None:
        raise ValueError(f"its entry {shorten(repr(other))} is not an array")
    for key, value in entries.items():
        check_stored(value, f"its entry {shorten(repr(key))}")
    return entries


def check_stored(array: np.ndarray, what: str) -> None:
    """Raise ``ValueError`` for an array that numpy reads but that cannot be used.

    Such an array claims billions of elements of size zero, or texts with invalid code points, at
    which Python fails.
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
                f"{what} holds texts with the character {codes.max():,}: the last one "
                f"is {sys.maxunicode:,}"
            )


def unpacked(entries: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the values in the entries of a file; raise ``ValueError`` if their description is
    wrong.
    """
    forms = _forms(entries)
    used = {FORMS}
    described = {name: _value_of_form(form, entries, used, 0) for name, form in forms.items()}
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
    """Write an ``.npz`` file of plain arrays.

    Every name is accepted. numpy's own function takes names as keywords, which excludes some.
    """
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, array in entries.items():
            with archive.open(f"{entry_name(name)}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def entry_name(text: str) -> str:
    """Return a name that zip and UTF-8 can store: lone surrogates are escaped, and NUL, which ends
    a zip name, becomes ``%00``.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "%00")


def plain(array: np.ndarray) -> np.ndarray:
    """Return an array of a type that every numpy can read: narrow floats as float32, narrow
    integers as 8 bits, strings as text.
    """
    array = np.asarray(array)
    if array.dtype.names:
        return np.asarray(array[array.dtype.names[0]])
    if array.dtype.kind == "O":
        return array.astype(np.str_)
    if array.dtype.isbuiltin == 1:  # The narrow types that numpy lacks have 2.
        return array
    return array.astype(
        next(wider for wider in _PLAIN_TYPES if np.can_cast(array.dtype, wider, "safe"))
    )


class _Packing:
    """Collector of entries: each tensor gets its own entry, named after the value, with a number
    for nested tensors.
    """

    def __init__(self, names: set[str]) -> None:
        self.entries: dict[str, np.ndarray] = {}
        self._taken = names | {FORMS}

    def form(self, name: str, value: Any) -> dict[str, Any]:
        if value is NO_VALUE or value is None:
            return {"nothing": True}
        if isinstance(value, tuple):
            return {
                "sequence": [
                    self._within(name, number, element) for number, element in enumerate(value)
                ]
            }
        if isinstance(value, Mapping):
            return {
                "map": [
                    [_key(key), self._within(name, number, element)]
                    for number, (key, element) in enumerate(value.items())
                ]
            }
        array = np.asarray(value)
        if array.dtype == object and not _fits_numpy_texts(array):
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


def _fits_numpy_texts(texts: np.ndarray) -> bool:
    """Return True if a numpy array of texts stores these texts whole and within the memory limit.

    Such arrays drop trailing NULs and take the longest text's memory for each.
    """
    items = texts.reshape(-1).tolist()
    return (
        not any(text.endswith("\0") for text in items)
        and 4 * len(items) * max(map(len, items), default=0) <= _MAX_TEXT_BYTES
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
            f"its entry {FORMS!r} is expected to be a JSON object with a form for "
            "each name, and is none"
        )
    return forms


def _value_of_form(form: Any, entries: Mapping[str, np.ndarray], used: set[str], depth: int) -> Any:
    match form:
        case {"nothing": True}:
            return NO_VALUE
        case {"array": str(name), **more} if name in entries and name != FORMS:
            used.add(name)
            return _array_of_type(entries[name], more.get("type"))
        case {"texts": list(texts), "shape": list(shape)}:
            return _array_of_texts(texts, shape)
        case {"sequence": list(elements)} if depth < _MAX_DEPTH:
            return tuple(_value_of_form(item, entries, used, depth + 1) for item in elements)
        case {"map": list(pairs)} if depth < _MAX_DEPTH and all(map(_is_pair, pairs)):
            return MappingProxyType(
                {key: _value_of_form(item, entries, used, depth + 1) for key, item in pairs}
            )
    raise ValueError(
        f"its entry {FORMS!r} describes a value as {shorten(json.dumps(form))}, which "
        "is not a form, or names a missing entry"
    )


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], (str, int, float))


def _array_of_type(array: np.ndarray, name: Any) -> np.ndarray:
    if name is None:
        return _as_texts(array)
    dtype = _NARROW_TYPES.get(name) if isinstance(name, str) else None
    if dtype is None or array.dtype != plain(np.zeros(0, dtype)).dtype:
        raise ValueError(
            f"its entry {FORMS!r} names the type {shorten(repr(name))} for an array "
            f"of {array.dtype}, which is not stored so"
        )
    if dtype.names:
        return np.ascontiguousarray(array).view(dtype).reshape(array.shape)
    # Numbers of a file that are too large for the type are converted as the type does it.
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def _array_of_texts(texts: list[Any], shape: list[Any]) -> np.ndarray:
    lengths = all(type(length) is int and length >= 0 for length in shape)
    if (
        not lengths
        or math.prod(shape) != len(texts)
        or not all(isinstance(text, str) for text in texts)
    ):
        raise ValueError(
            f"its entry {FORMS!r} has {len(texts):,} texts for the shape "
            f"{shorten(str(shape))}, which do not go together"
        )
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array.reshape(shape)


def _as_texts(array: np.ndarray) -> np.ndarray:
    """Return an array of numpy's texts as objects, each of which takes about 60 bytes even if it
    took none in the file.
    """
    if array.dtype.kind != "U":
        return array
    if array.size > MOST_TEXTS:
        raise ValueError(
            f"it holds an array of {array.size:,} texts: at most {MOST_TEXTS:,} are read"
        )
    check_stored(array, "an array in it")
    return array.astype(object)


_PLAIN_TYPES = (np.uint8, np.int8, np.float32)
_ONNX_ONLY_TYPES = ("int2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e2m3fn", "float6_e3m2fn")
_NARROW_TYPES: dict[str, np.dtype] = {
    type_name(dtype): dtype
    for dtype in (
        *(item.dtype for item in ElementType),
        *(np.dtype(getattr(ml_dtypes, name)) for name in _ONNX_ONLY_TYPES),
    )
    if dtype.names or dtype.isbuiltin == 2
}
"""Types that numpy lacks, by name."""
