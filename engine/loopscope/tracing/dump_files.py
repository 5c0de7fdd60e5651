"""Reading of dumped arrays: .npy, .npz, .safetensors and .pt files, all untrusted."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from loopscope.errors import InputError, shorten
from loopscope.ir.element_type import ElementType
from loopscope.native.run_once import run_alone

FILE_ENDINGS = (".npy", ".npz", ".safetensors", ".pt", ".pth")
_MAX_BYTES = 1 << 34
"""Maximum size of a file."""
_MAX_HEADER = 1 << 26
_SAFETENSORS_TYPES: Mapping[str, ElementType] = {
    "F64": ElementType.F64,
    "F32": ElementType.F32,
    "F16": ElementType.F16,
    "BF16": ElementType.BF16,
    "F8_E4M3": ElementType.F8E4M3,
    "F8_E5M2": ElementType.F8E5M2,
    "I64": ElementType.I64,
    "I32": ElementType.I32,
    "I16": ElementType.I16,
    "I8": ElementType.I8,
    "U64": ElementType.U64,
    "U32": ElementType.U32,
    "U16": ElementType.U16,
    "U8": ElementType.U8,
    "BOOL": ElementType.BOOLEAN,
}
_TORCH_ENDINGS = (".pt", ".pth")
_TORCH_SECONDS, _SECONDS_PER_FILE = 120.0, 1.0
"""Time limit of the process of torch, and what each file adds to it."""


def dumped_arrays(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of a file with their names; the array of an .npy file has an empty name.

    No object is unpickled. ``InputError`` for a file that is damaged or too large.
    """
    try:
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise ValueError(f"it has {size:,} bytes, at most {_MAX_BYTES:,} are read")
        match path.suffix.lower():
            case ".npy":
                yield "", _known_type(np.load(path, allow_pickle=False))
            case ".npz":
                yield from _npz(path)
            case ".safetensors":
                yield from _safetensors(path)
            case _:
                raise ValueError(f"expected a file that ends with {', '.join(FILE_ENDINGS)}")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, EOFError, MemoryError) as error:
        raise InputError(f"{path} cannot be read: {shorten(str(error), 300)}") from None
    except Exception as error:  # zipfile raises many kinds of errors for a broken file
        raise InputError(f"{path} cannot be read: {type(error).__name__}") from None


def _npz(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    with np.load(path, allow_pickle=False) as archive:
        remaining = _MAX_BYTES
        for name in archive.files:
            array = archive[name]
            if not isinstance(array, np.ndarray):
                raise ValueError(f"its entry {shorten(repr(name))} is not an array")
            remaining -= array.nbytes
            if remaining < 0:
                raise ValueError(f"it unpacks to more than {_MAX_BYTES:,} bytes")
            yield name, _known_type(array)


def _known_type(array: np.ndarray) -> np.ndarray:
    """Return an array whose type numpy's format does not name with that type.

    numpy stores bf16 as two bytes without a meaning.
    """
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == 2:
        return array.view(ml_dtypes.bfloat16)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"it has the type {shorten(str(array.dtype), 40)}, expected numbers")
    return array


def _safetensors(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    data = np.memmap(path, np.uint8, "r")
    if data.size < 8 or (length := int(data[:8].view("<u8")[0])) > min(_MAX_HEADER, data.size - 8):
        raise ValueError("it does not begin like a .safetensors file")
    try:
        header = json.loads(data[8 : 8 + length].tobytes())
    except (ValueError, RecursionError):
        raise ValueError("its header is not JSON") from None
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    body = data[8 + length :]
    for name, entry in header.items():
        if name != "__metadata__":
            yield name, _safetensor(name, entry, body)


def _safetensor(name: str, entry: Any, body: np.ndarray) -> np.ndarray:
    match entry:
        case {"dtype": str(kind), "shape": list(shape), "data_offsets": [int(begin), int(end)]}:
            element_type = _SAFETENSORS_TYPES.get(kind)
            lengths = all(type(item) is int and 0 <= item < 2**48 for item in shape)
            if element_type is None or not lengths or len(shape) > 32:
                raise ValueError(f"its tensor {shorten(repr(name))} has the type {shorten(kind)}")
            size = math.prod(shape) * element_type.dtype.itemsize
            if not 0 <= begin <= end <= len(body) or end - begin != size:
                raise ValueError(f"its tensor {shorten(repr(name))} is outside of the file")
            raw = body[begin:end].tobytes()
            return np.frombuffer(raw, element_type.dtype).reshape(shape)
    raise ValueError(f"its tensor {shorten(repr(name))} is not described")


@contextmanager
def without_torch(paths: Sequence[Path]) -> Iterator[Mapping[Path, Path]]:
    """Yield a temporary .safetensors file for each file of torch among ``paths``.

    torch reads them with ``weights_only`` in one process of its own. ``InputError`` for a file that
    it does not read.
    """
    files = [path for path in paths if path.suffix.lower() in _TORCH_ENDINGS]
    if not files:
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        targets = {
            path: Path(folder) / f"{number}.safetensors" for number, path in enumerate(files)
        }
        pairs = Path(folder) / "pairs.json"
        pairs.write_text(
            json.dumps([[str(path.resolve()), str(target)] for path, target in targets.items()])
        )
        script = Path(__file__).with_name("torch_dump.py")
        seconds = _TORCH_SECONDS + _SECONDS_PER_FILE * len(files)
        try:
            ended = run_alone(script, str(pairs), seconds=seconds)
        except TimeoutError:
            raise InputError(
                f"torch did not read {len(files):,} files within {seconds:g} seconds"
            ) from None
        unread = next((path for path, target in targets.items() if not target.exists()), None)
        if ended.code or unread is not None:
            raise InputError(
                f"{unread or files[-1]} cannot be read: torch does not read it: "
                f"{ended.reason or 'it crashed'}"
            )
        yield targets
