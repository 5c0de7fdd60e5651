"""Ways to damage a file of data: knowing what an array, a JSON document, an archive and a table
are made of, or blindly in its bytes.
"""

from __future__ import annotations

import copy
import io
import json
import random
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from loopscope.ops.stored import check_stored
from loopscope.run_file.run_archive import array_bytes, digest
from tests.fuzz.damage import NUMBERS, WORDS, bytes_changed

_DESCRIPTIONS = (
    *(
        "<f4",
        "<f8",
        ">f8",
        "<f2",
        "<f16",
        "<i8",
        "<u8",
        "|i1",
        "|b1",
        "<c16",
        "|O",
        "|V8",
        "|V0",
        "<U0",
        "<U5",
        "|S3",
        "<M8[ns]",
        "<m8[s]",
    ),
    *([("a", "<f4")], [("a", "|O")], [("a", "<f4", (2, 3))], ("<f4", (2, 3)), "nonsense", ""),
)
_LENGTHS = (0, 1, 2, 3, -1, 40, 10**6, 2**31, 2**62, 2**64, True, 1.5, "3", None)
_WHOLE = (0, 1, 2, -1, 10**6, 2**62, 2**70, -(2**62))
_JSON: tuple[Any, ...] = (
    None,
    True,
    False,
    *_WHOLE,
    3.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "main",
    [],
    {},
    [[]],
    [0, 1],
)
_DEEP = "[" * 100_000
_CELLS = (
    "",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "0x10",
    "true",
    "2020-01-01",
    "2020-01-01T00:00:00Z",
    "é",
    '"',
    "'",
    "\0",
    "NULL",
    *NUMBERS,
)


def damaged(dice: random.Random, data: bytes) -> bytes:
    """The same file with one to three things changed, or whole now and then; equal dice give
    equal files.
    """
    for _ in range(dice.choice((0, 1, 1, 1, 1, 2, 3))):
        data = _within(dice, data)
    return data


def _within(dice: random.Random, data: bytes) -> bytes:
    kind: Callable[[random.Random, bytes], bytes] = bytes_changed
    if dice.random() < 0.85:
        if data.startswith(b"PK\x03\x04"):
            kind = _archive
        elif data.startswith(b"\x93NUMPY"):
            kind = _array
        elif data[:1] in (b"{", b"["):
            kind = _document
        elif b"," in data[:200] and data.isascii():
            kind = _table
    return kind(dice, data)


def _archive(dice: random.Random, data: bytes) -> bytes:
    """An archive with an entry damaged, renamed, left out or doubled; a saved run mostly gets
    the checksums without which none is read.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # it is damaged already
        return bytes_changed(dice, data)
    if not entries:
        return bytes_changed(dice, data)
    name = dice.choice(sorted(entries))
    doubled: tuple[str, bytes] | None = None
    match dice.randrange(12):
        case 0:
            del entries[name]
        case 1:
            entries[dice.choice((*entries, *WORDS))] = entries.pop(name)
        case 2:
            entries[
                dice.choice(
                    (f"{name}.npy", "3.npy", "x.npy", "loopscope.forms.npy", "inputs/9.npy", "y")
                )
            ] = entries[name]
        case 3:
            doubled = name, entries[name]
        case 4:
            other = dice.choice(sorted(entries))
            entries[name], entries[other] = entries[other], entries[name]
        case _:
            entries[name] = _within(dice, entries[name])
    return archived(entries, doubled, rehash=dice.random() < 0.95)


def archived(
    entries: Mapping[str, bytes], doubled: tuple[str, bytes] | None = None, *, rehash: bool = True
) -> bytes:
    entries = dict(entries)
    if rehash and "run.json" in entries:
        try:
            told = json.loads(entries["run.json"])
            told["files"] = {
                name: digest(content) for name, content in entries.items() if name != "run.json"
            }
            entries["run.json"] = json.dumps(told).encode()
        except (ValueError, RecursionError, TypeError, KeyError):
            pass
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # of two entries with one name
        for name, content in (*entries.items(), *((doubled,) if doubled else ())):
            archive.writestr(name or "_", content)
    return buffer.getvalue()


def _array(dice: random.Random, data: bytes) -> bytes:
    """An ``.npy`` file with another header, other numbers, or one of another type and shape."""
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
        check_stored(array, "it")
    except Exception:  # it is damaged already
        return bytes_changed(dice, data)
    if array.size > 1 << 16:  # of texts that take no room there may be any number
        return bytes_changed(dice, data)
    match dice.randrange(6):
        case 0 | 1:
            content = array.tobytes()
            shape: tuple[Any, ...] = tuple(
                dice.choice((length, *_LENGTHS)) for length in array.shape
            )
            shape += tuple(dice.choice(_LENGTHS) for _ in range(dice.choice((0, 0, 1, 2, 40))))
            fields = {
                "descr": dice.choice((array.dtype.str, *_DESCRIPTIONS)),
                "fortran_order": dice.choice((False, True)),
                "shape": shape,
            }
            return _npy(repr(fields), content)
        case 2:
            return array_bytes(np.asarray(_other_numbers(dice, array)))
        case 3:
            text = str(array) if array.dtype.kind == "U" and not array.ndim else ""
            if text[:1] in ("{", "["):
                return array_bytes(
                    np.array(_document(dice, text.encode()).decode("utf-8", "replace"))
                )
            return array_bytes(np.array(dice.choice(WORDS)))
        case 4:
            axes = list(array.shape)
            if axes:
                axes[dice.randrange(len(axes))] = dice.choice((0, 1, 2, 5, 300))
            made = np.resize(array, axes) if array.size else array
            return array_bytes(np.asarray(made[..., None] if dice.random() < 0.3 else made))
        case _:
            return bytes_changed(dice, data)


def _npy(header: str, content: bytes) -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + min(len(text), 65535).to_bytes(2, "little") + text + content


def _other_numbers(dice: random.Random, array: np.ndarray) -> Any:
    flat = np.array(array).reshape(-1)
    if flat.dtype.kind not in "biuf":
        return np.arange(flat.size)
    if dice.random() < 0.5:
        kind = dice.choice(
            ("b1", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c16", "U3", "S2")
        )
        with np.errstate(all="ignore"):
            return flat.astype(kind).reshape(array.shape)
    if flat.size:
        large = (
            np.finfo(flat.dtype).max
            if flat.dtype.kind == "f"
            else True
            if flat.dtype.kind == "b"
            else np.iinfo(flat.dtype).max
        )
        for _ in range(dice.choice((1, 1, 3, flat.size))):
            flat[dice.randrange(flat.size)] = dice.choice(
                (0, 1, 2, large, *((-1, -large) if flat.dtype.kind in "if" else ()))
            )
        if flat.dtype.kind == "f" and dice.random() < 0.5:
            flat[dice.randrange(flat.size)] = dice.choice((np.nan, np.inf, -np.inf, -0.0))
    return flat.reshape(array.shape)


def _document(dice: random.Random, data: bytes) -> bytes:
    """JSON with a value or a key in it replaced, left out, doubled or exchanged."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return bytes_changed(dice, data)
    if dice.random() < 0.02:
        return _DEEP.encode()
    places = list(_places(document))
    for _ in range(dice.choice((1, 1, 2))):
        document = _replaced(dice, document, dice.choice(places))
    return json.dumps(document).encode()


def _places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, inner in (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    ):
        yield from _places(inner, (*path, key))


def _replaced(dice: random.Random, document: Any, path: tuple[Any, ...]) -> Any:
    value = dice.choice((*_JSON, *WORDS))
    if not path:
        return value
    document = at = copy.deepcopy(document)
    try:
        for key in path[:-1]:
            at = at[key]
        there = at[path[-1]]
        if (
            isinstance(there, str) and dice.random() < 0.5
        ):  # an address of the page holds JSON in texts
            at[path[-1]] = _within(dice, there.encode("utf-8", "replace")).decode(
                "utf-8", "replace"
            )
            return document
        match dice.randrange(6):
            case 0:
                del at[path[-1]]
            case 1 if isinstance(at, dict):
                at[dice.choice(WORDS)] = at.pop(path[-1])
            case 2 if isinstance(at, list):
                at.insert(path[-1], copy.deepcopy(there))
            case 3 if type(there) is int:
                at[path[-1]] = there + dice.choice((-1, 1, 2, 100))
            case 4:
                at[path[-1]] = [there] if dice.random() < 0.5 else {"x": there}
            case _:
                at[path[-1]] = value
    except (KeyError, IndexError, TypeError):  # what is replaced before has taken the place away
        return document
    return document


def _table(dice: random.Random, data: bytes) -> bytes:
    """A table of text with another cell, row or column."""
    rows = [line.split(",") for line in data.decode().split("\n")]
    at = dice.randrange(len(rows))
    match dice.randrange(5):
        case 0:
            del rows[at]
        case 1:
            rows[at] = rows[at] + [dice.choice(_CELLS)]
        case 2:
            rows = [[*row, *row] for row in rows]
        case 3:
            rows[0] = [dice.choice((*WORDS, *rows[0], "0", "1")) for _ in rows[0]]
        case _:
            rows[at][dice.randrange(len(rows[at]))] = dice.choice(_CELLS)
    return "\n".join(",".join(row) for row in rows).encode("utf-8", "replace")
