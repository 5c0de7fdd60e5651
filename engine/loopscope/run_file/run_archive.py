"""The container of a saved run: a zip archive with a fixed set of names, read within bounds,
whatever it claims.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from loopscope.errors import shorten
from loopscope.ops.stored import MOST_TEXTS, check_stored
from loopscope.read import open_archive

ENDING = ".loopscope"
DESCRIPTION = "run.json"
MOST_ENTRIES = 10_000
MOST_OF_A_DESCRIPTION = 32 * 2**20
"""Bytes of ``run.json``, and of ``recording.json``."""
RECORDING = "recording.json"
_NAMES = re.compile(
    r"recording\.json|model/model\.(xml|bin|onnx)|(inputs|changes|outputs|recording)/[\w.'/]{1,100}\.npy",
    re.ASCII,
)
_CHUNK = 1 << 20
_LONGEST_HEADER = 10_000
_LARGE, _SAMPLES, _SAMPLED, _WORTH = 1 << 20, 16, 1 << 14, 0.7
_FREELY, _TIMES = 256 * 2**20, 200
"""Bytes that any file may unpack to, and how many times its own size beyond them."""
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The same run gives the same bytes."""


def is_run_file(name: str) -> bool:
    """Whether a file's name says that it is a saved run."""
    return name.lower().endswith(ENDING)


def write_archive(
    target: Path | BinaryIO, description: bytes, entries: Mapping[str, bytes]
) -> None:
    least = 2 / _TIMES if sum(map(len, entries.values())) > _FREELY else 0.0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {DESCRIPTION: description, **entries}.items():
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.compress_type = (
                zipfile.ZIP_DEFLATED if _is_worth_packing(data, least) else zipfile.ZIP_STORED
            )
            archive.writestr(entry, data)


def read_archive(file: IO[bytes], most_bytes: int) -> tuple[bytes, dict[str, bytes]]:
    """The description and the other entries by name; ``ValueError`` when a name or an amount is
    not one of a saved run.
    """
    with open_archive(file) as archive:
        infos = archive.infolist()
        names = [info.filename for info in infos]
        if DESCRIPTION not in names:
            raise ValueError(f"there is no {DESCRIPTION} in it")
        if len(names) > MOST_ENTRIES:
            raise ValueError(
                f"it holds {len(names):,} files, and a run has at most {MOST_ENTRIES:,}"
            )
        odd = next(
            (name for name in names if name != DESCRIPTION and not _NAMES.fullmatch(name)), None
        )
        if odd is not None:
            raise ValueError(
                f"a file in it is called {shorten(repr(odd))}, which is no part of a run"
            )
        if len(set(names)) < len(names):
            raise ValueError("two files in it have the same name")
        left = min(most_bytes, max(_FREELY, _TIMES * file.seek(0, io.SEEK_END)))
        found: dict[str, bytes] = {}
        for info in infos:
            most = (
                min(left, MOST_OF_A_DESCRIPTION)
                if info.filename in (DESCRIPTION, RECORDING)
                else left
            )
            found[info.filename] = _content(archive, info, most)
            left -= len(found[info.filename])
        return found.pop(DESCRIPTION), found


def _is_worth_packing(data: bytes, least: float) -> bool:
    """Not weights: a sample of a large entry says how small packing makes it; less than
    ``least`` of it is taken for a bomb when read.
    """
    if len(data) < _LARGE:
        return True
    sample = b"".join(
        data[begin : begin + _SAMPLED] for begin in range(0, len(data), -(-len(data) // _SAMPLES))
    )
    return least <= len(zlib.compress(sample, 1)) / len(sample) < _WORTH


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def array_bytes(array: np.ndarray) -> bytes:
    """An array as the content of an ``.npy`` file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def array_of(data: bytes) -> np.ndarray:
    """The array again; ``ValueError`` when its header promises more, or something else, than
    there is.
    """
    buffer = io.BytesIO(data)
    shape, order, dtype = _header(buffer)
    if (
        dtype.hasobject
        or dtype.names is not None
        or dtype.subdtype is not None
        or (not dtype.itemsize and dtype.kind != "U")
    ):
        raise ValueError(
            f"an array in it has the type {shorten(str(dtype))}, and plain numbers or texts are expected"
        )
    count = 1
    for length in shape:
        count *= length
    there = len(data) - buffer.tell()
    if (
        len(shape) > 32
        or count * dtype.itemsize != there
        or (not dtype.itemsize and count > MOST_TEXTS)
    ):
        raise ValueError(
            f"an array in it has {there:,} bytes, which its shape {shorten(str(shape))} and type {dtype} do not take"
        )
    flat = np.frombuffer(data, dtype, count, buffer.tell()) if there else np.zeros(count, dtype)
    check_stored(flat, "an array in it")
    return flat.reshape(shape, order=order)


def _header(buffer: io.BytesIO) -> tuple[tuple[int, ...], Any, np.dtype]:
    try:
        major, _ = np.lib.format.read_magic(buffer)
        read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}[
            major
        ]
        shape, fortran, dtype = read(buffer, max_header_size=_LONGEST_HEADER)
    except Exception:  # numpy raises whatever a damaged header makes it stumble over
        raise ValueError("an array in it is not an .npy file as numpy writes it") from None
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"an array in it has the shape {shorten(str(shape))}, which is none")
    return shape, "F" if fortran else "C", dtype


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    """Unpacked; an archive may lie about its sizes, so what comes out is counted."""
    content = io.BytesIO()  # gives its bytes without a copy
    with archive.open(info) as packed:
        while chunk := packed.read(_CHUNK):
            if max(info.file_size, content.tell() + len(chunk)) > most:
                raise ValueError(
                    f"it unpacks to more than is allowed: {shorten(info.filename)} goes beyond {most:,} bytes"
                )
            content.write(chunk)
    return content.getvalue()
