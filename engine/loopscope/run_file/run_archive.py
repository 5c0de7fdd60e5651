"""The container of a saved run: a zip archive with a fixed set of names.

Reading is bounded, whatever sizes the archive declares.
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
from loopscope.read import is_trace_content, open_archive

ENDING = ".loopscope"
DESCRIPTION = "run.json"
MOST_ENTRIES = 10_000
MOST_OF_A_DESCRIPTION = 32 * 2**20
"""Maximum number of bytes of ``run.json`` and of ``recording.json``."""
RECORDING = "recording.json"
_NAMES = re.compile(
    r"recording\.json|model/model\.(xml|bin|onnx)|"
    r"(inputs|changes|outputs|recording)/[\w.'/]{1,100}\.npy",
    re.ASCII,
)
_CHUNK = 1 << 20
_MAX_HEADER = 10_000
_LARGE_BYTES, _SAMPLES, _SAMPLE_BYTES, _WORTHWHILE_RATIO = 1 << 20, 16, 1 << 14, 0.7
_FREE_BYTES, _MAX_RATIO = 256 * 2**20, 200
"""Bytes to which any file may unpack, and the largest ratio to its own size beyond them."""
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)
"""Constant timestamp of all entries, so that the same run gives the same bytes."""


def is_run_file(path: str, content: bytes | None = None) -> bool:
    """Return True if a file has the ending of a saved run and does not contain a trace.

    ``content`` is that of an uploaded file; without it, the file at ``path`` is read.
    """
    return path.lower().endswith(ENDING) and not is_trace_content(
        path if content is None else content
    )


def write_archive(
    target: Path | BinaryIO, description: bytes, entries: Mapping[str, bytes]
) -> None:
    minimum_ratio = 2 / _MAX_RATIO if sum(map(len, entries.values())) > _FREE_BYTES else 0.0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {DESCRIPTION: description, **entries}.items():
            entry = zipfile.ZipInfo(name, _FIXED_TIME)
            entry.compress_type = (
                zipfile.ZIP_DEFLATED
                if _is_worth_compressing(data, minimum_ratio)
                else zipfile.ZIP_STORED
            )
            archive.writestr(entry, data)


def read_archive(file: IO[bytes], most_bytes: int) -> tuple[bytes, dict[str, bytes]]:
    """Return the description and the other entries by name.

    ``ValueError`` when a name or a size is not allowed in a saved run.
    """
    with open_archive(file) as archive:
        infos = archive.infolist()
        names = [info.filename for info in infos]
        if DESCRIPTION not in names:
            raise ValueError(f"{DESCRIPTION} is missing in it")
        if len(names) > MOST_ENTRIES:
            raise ValueError(f"it has {len(names):,} files, expected at most {MOST_ENTRIES:,}")
        unexpected = next(
            (name for name in names if name != DESCRIPTION and not _NAMES.fullmatch(name)), None
        )
        if unexpected is not None:
            raise ValueError(
                f"a file in it is called {shorten(repr(unexpected))}, "
                "which does not belong to a run"
            )
        if len(set(names)) < len(names):
            raise ValueError("two files in it have the same name")
        remaining = min(most_bytes, max(_FREE_BYTES, _MAX_RATIO * file.seek(0, io.SEEK_END)))
        contents: dict[str, bytes] = {}
        for info in infos:
            limit = (
                min(remaining, MOST_OF_A_DESCRIPTION)
                if info.filename in (DESCRIPTION, RECORDING)
                else remaining
            )
            contents[info.filename] = _content(archive, info, limit)
            remaining -= len(contents[info.filename])
        return contents.pop(DESCRIPTION), contents


def _is_worth_compressing(data: bytes, minimum_ratio: float) -> bool:
    """Return True if compressing the data is worthwhile, judged by a sample of large data.

    Weights usually compress too little. Data with a smaller ratio than ``minimum_ratio`` would be
    refused as a zip bomb when read.
    """
    if len(data) < _LARGE_BYTES:
        return True
    sample = b"".join(
        data[begin : begin + _SAMPLE_BYTES]
        for begin in range(0, len(data), -(-len(data) // _SAMPLES))
    )
    return minimum_ratio <= len(zlib.compress(sample, 1)) / len(sample) < _WORTHWHILE_RATIO


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def array_bytes(array: np.ndarray) -> bytes:
    """Return an array as the content of an ``.npy`` file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def array_of(data: bytes) -> np.ndarray:
    """Return the array of an ``.npy`` file.

    ``ValueError`` when the header does not match the data or the type is not allowed.
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
            f"an array in it has the type {shorten(str(dtype))}, "
            "and plain numbers or texts are expected"
        )
    count = 1
    for length in shape:
        count *= length
    available = len(data) - buffer.tell()
    if (
        len(shape) > 32
        or count * dtype.itemsize != available
        or (not dtype.itemsize and count > MOST_TEXTS)
    ):
        raise ValueError(
            f"an array in it has {available:,} bytes, "
            f"expected those of shape {shorten(str(shape))} and type {dtype}"
        )
    flat = np.frombuffer(data, dtype, count, buffer.tell()) if available else np.zeros(count, dtype)
    check_stored(flat, "an array in it")
    return flat.reshape(shape, order=order)


def _header(buffer: io.BytesIO) -> tuple[tuple[int, ...], Any, np.dtype]:
    try:
        major, _ = np.lib.format.read_magic(buffer)
        read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}[
            major
        ]
        shape, fortran, dtype = read(buffer, max_header_size=_MAX_HEADER)
    except Exception:  # numpy raises various errors for a damaged header
        raise ValueError("an array in it is not an .npy file as numpy writes it") from None
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"an array in it has the invalid shape {shorten(str(shape))}")
    return shape, "F" if fortran else "C", dtype


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    """Return the unpacked content of an entry, counting its bytes.

    An archive may misstate sizes.
    """
    content = io.BytesIO()  # returns its bytes without a copy
    with archive.open(info) as stream:
        while chunk := stream.read(_CHUNK):
            if max(info.file_size, content.tell() + len(chunk)) > limit:
                raise ValueError(
                    "it unpacks to more than is allowed: "
                    f"{shorten(info.filename)} exceeds {limit:,} bytes"
                )
            content.write(chunk)
    return content.getvalue()
