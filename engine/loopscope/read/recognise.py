"""Recognition of a model file's format by its first bytes, also inside zip archives."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import IO, cast

from loopscope.errors import MOST_OF_A_SENTENCE, EngineError, elided, shorten
from loopscope.tracing import MAGIC


class Format(Enum):
    """A file format; the value names it in messages."""

    OPENVINO = "XML (OpenVINO IR)"
    ONNX = "an ONNX model"
    TFLITE = "a TensorFlow Lite model"
    FROZEN = "a frozen TensorFlow graph"
    GRAPH_TEXT = "a TensorFlow graph as text"
    META_GRAPH = "a TensorFlow meta graph"
    META_GRAPH_TEXT = "a TensorFlow meta graph as text"
    SAVED_MODEL = "a TensorFlow SavedModel"
    SAVED_MODEL_TEXT = "a TensorFlow SavedModel as text"
    PADDLE = "a PaddlePaddle model"
    PADDLE_JSON = "a PaddlePaddle program in JSON"
    EXPORTED_PROGRAM = "a PyTorch exported program"
    TORCHSCRIPT = "a TorchScript model"
    STATE_DICT = "a PyTorch checkpoint"
    EXECUTORCH = "an ExecuTorch program (.pte)"
    GGUF = "a GGUF file"
    STABLEHLO = "a StableHLO module"
    MLIR = "an MLIR module"
    HLO = "an HLO module of XLA"
    COREML = "a Core ML package (.mlpackage)"
    RUN = "a run that Loopscope saved"
    TRACE = "a trace that Loopscope recorded"
    ZIP = "a zip archive"
    HDF5 = "an HDF5 file"
    GZIP = "a gzip file"
    NPY = "a numpy array"
    PICKLE = "a Python pickle"
    GIT_LFS = "a pointer of Git LFS"
    WEB_PAGE = "a web page"
    EMPTY = "an empty file"
    TEXT = "text that is not XML"
    UNKNOWN = "binary data of an unknown kind"


HEAD_BYTES = 512
"""Number of bytes from the beginning of a file that ``recognise`` reads."""

_MAGIC_BYTES = (
    (0, MAGIC, Format.TRACE),
    (0, b"PK\x03\x04", Format.ZIP),
    (0, b"PK\x05\x06", Format.ZIP),
    (4, b"TFL3", Format.TFLITE),
    (4, b"ET12", Format.EXECUTORCH),
    (0, b"GGUF", Format.GGUF),
    (0, b"\x89HDF\r\n\x1a\n", Format.HDF5),
    (0, b"\x1f\x8b", Format.GZIP),
    (0, b"\x93NUMPY", Format.NPY),
    (0, b"\x80\x02", Format.PICKLE),
    (0, b"\x80\x04", Format.PICKLE),
    (0, b"\x80\x05", Format.PICKLE),
    (0, b"version https://git-lfs.github.com/", Format.GIT_LFS),
)
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
# Beginnings of protobuf text messages: one of the message's fields after optional comments.
_TEXT_PATTERNS = tuple(
    (re.compile(rb"(?:\s|#[^\n]*\n)*(?:" + fields + rb")"), kind)
    for fields, kind in (
        (rb"(?:node|library|versions)\s*:?\s*\{", Format.GRAPH_TEXT),
        (
            rb"(?:meta_info_def|graph_def|saver_def|collection_def|signature_def)\s*:?\s*\{",
            Format.META_GRAPH_TEXT,
        ),
        (
            rb"(?:saved_model_schema_version\s*:\s*\d|meta_graphs\s*:?\s*\{)",
            Format.SAVED_MODEL_TEXT,
        ),
    )
)
_MLIR_BYTECODE = b"ML\xefR"
_MLIR_ALIAS = rb"#\w+\s*=\s*(?:loc|affine_map|affine_set)\b|!\w+\s*=\s*!"
_MLIR_TEXT = re.compile(
    rb"(?:\s|//[^\n]*\n)*(?:(?:builtin\.)?module\s*(?:[@{]|attributes\b)|"
    rb"\"builtin\.module\"|func\.func\s|" + _MLIR_ALIAS + rb")"
)
_STABLEHLO_DIALECTS = re.compile(rb"StableHLO|\b(?:stablehlo|mhlo|vhlo|chlo)\.")
_HLO_TEXT = re.compile(rb"\s*HloModule\s")
# Tags of ONNX's ModelProto fields that may follow ir_version: producer name, producer version,
# domain, model version, doc string, graph, opset import, metadata.
_ONNX_FIELDS = frozenset({0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72})


def recognise(head: bytes) -> Format:
    """Return the format of a file that begins with these bytes.

    >>> recognise(b"<?xml version='1.0'?><net/>"), recognise(b"")
    (<Format.OPENVINO: 'XML (OpenVINO IR)'>, <Format.EMPTY: 'an empty file'>)
    >>> recognise(b"hello")
    <Format.TEXT: 'text that is not XML'>
    """
    head = head[:HEAD_BYTES]
    if not head:
        return Format.EMPTY
    text = _without_order_mark(head).lstrip()
    if text.startswith("<"):
        is_page = text.lower().startswith(("<!doctype html", "<html"))
        return Format.WEB_PAGE if is_page else Format.OPENVINO
    for offset, mark, format in _MAGIC_BYTES:
        if head[offset : offset + len(mark)] == mark:
            return format
    if _is_saved_model(head):
        return Format.SAVED_MODEL
    if len(head) > 2 and head[0] == 0x08 and 0 < head[1] < 0x20 and head[2] in _ONNX_FIELDS:
        return Format.ONNX
    if len(head) > 3 and head[0] == 0x0A:
        return _first_message(head)
    if head.startswith(b'{"base_code"') and b'"magic":"pir"' in head:
        return Format.PADDLE_JSON
    if head.startswith(_MLIR_BYTECODE) or _MLIR_TEXT.match(head):
        return Format.STABLEHLO if _STABLEHLO_DIALECTS.search(head) else Format.MLIR
    if _HLO_TEXT.match(head):
        return Format.HLO
    for pattern, format in _TEXT_PATTERNS:
        if pattern.match(head):
            return format
    return (
        Format.TEXT
        if all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in head)
        else Format.UNKNOWN
    )


def _is_saved_model(head: bytes) -> bool:
    """Return True if the file begins like a SavedModel: schema version 1, then a meta graph.

    A meta graph begins with a message; in an ONNX model of IR version 1 a name would follow
    instead.
    """
    return head[:3] == b"\x08\x01\x12" and _after_varint(head, 3) == 0x0A


def _first_message(head: bytes) -> Format:
    """Return the format of a protobuf file by the first field of its first message.

    A TensorFlow node begins with its name, a meta graph with a list of operations, and a
    PaddlePaddle block with a number.
    """
    match _after_varint(head, 1):
        case 0x0A:
            return Format.FROZEN
        case 0x12:
            return Format.META_GRAPH
        case 0x08:
            return Format.PADDLE
        case _:
            return Format.UNKNOWN


def _after_varint(head: bytes, offset: int) -> int | None:
    while offset < len(head) and head[offset] & 128:
        offset += 1
    return head[offset + 1] if offset + 1 < len(head) else None


def _without_order_mark(head: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return head[len(mark) :].decode(encoding, errors="replace")
    return head.decode("utf-16-le" if head[1:2] == b"\0" else "latin-1", errors="replace")


_MAX_FILES = 20_000
_MAX_READ_BYTES = 1 << 23
"""Largest read from an archive in bytes. zipfile reads only the archive's directory in one piece.
"""
_CHUNK = 1 << 20
_SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt")


@contextmanager
def open_archive(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """Open an archive with a directory of bounded size.

    ``ValueError`` for any fault of the archive, also while its files are read.
    """
    try:
        with zipfile.ZipFile(cast(IO[bytes], _BoundedReads(file))) as archive:
            if len(archive.infolist()) > _MAX_FILES:
                raise ValueError(f"it holds more than {_MAX_FILES:,} files")
            yield archive
    except (ValueError, EngineError):
        raise
    except Exception as error:  # zipfile's, zlib's, lzma's own and many others, for damaged data
        raise ValueError(
            f"it cannot be read: {elided(str(error), MOST_OF_A_SENTENCE) or type(error).__name__}"
        ) from error


@dataclass(frozen=True, slots=True)
class _BoundedReads:
    """A file whose single reads are limited, because a parsed directory entry takes many times its
    size.
    """

    file: IO[bytes]

    def read(self, size: int = -1) -> bytes:
        content = self.file.read(size if 0 <= size <= _MAX_READ_BYTES else _MAX_READ_BYTES + 1)
        if len(content) > _MAX_READ_BYTES:
            raise ValueError(f"its directory has more than {_MAX_READ_BYTES:,} bytes")
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Leave the file open, because it belongs to the caller."""


def format_of(archive: IO[bytes]) -> Format:
    """Return RUN, SAVED_MODEL, EXPORTED_PROGRAM, TORCHSCRIPT or STATE_DICT by the file names, else
    ZIP.

    ``ValueError`` if ``archive`` is not a readable archive.
    """
    with open_archive(archive) as files:
        names = [info.filename for info in files.infolist() if not info.is_dir()]
    if "run.json" in names and any(name.startswith("model/model.") for name in names):
        return Format.RUN
    basenames = {PurePosixPath(name).name for name in names}
    if not basenames.isdisjoint(_SAVED_MODELS):
        return Format.SAVED_MODEL
    if "serialized_exported_program.json" in basenames or (
        "archive_format" in basenames and any("/models/" in f"/{name}" for name in names)
    ):
        return Format.EXPORTED_PROGRAM
    if "data.pkl" in basenames:
        # torch.jit.save writes the code of the modules too; torch.save of a dictionary of weights,
        # or of a pickled module, does not.
        return (
            Format.TORCHSCRIPT
            if "constants.pkl" in basenames or any("/code/" in f"/{name}" for name in names)
            else Format.STATE_DICT
        )
    return Format.ZIP


def unpack(archive: IO[bytes], target: Path, max_bytes: int) -> Path:
    """Unpack the archive below ``target`` and return the folder of its SavedModel.

    ``ValueError`` if a name leads out of ``target``, or if the unpacked files have more than
    ``max_bytes`` bytes, whatever sizes the archive declares.
    """
    remaining = max_bytes
    with open_archive(archive) as files:
        for info in files.infolist():
            if info.is_dir():
                continue
            path = _path_inside(target, info.filename)
            path.parent.mkdir(parents=True, exist_ok=True)
            # A link in an archive is a file that contains a path: it is written as a regular file,
            # so it leads nowhere.
            with files.open(info) as packed, path.open("wb") as unpacked:
                while chunk := packed.read(_CHUNK):
                    remaining -= len(chunk)
                    if remaining < 0:
                        raise ValueError(f"it unpacks to more than {max_bytes:,} bytes")
                    unpacked.write(chunk)
    folders = sorted(
        path.parent for name in _SAVED_MODELS for path in target.rglob(name) if path.is_file()
    )
    if not folders:
        raise ValueError(f"there is no file {' or '.join(_SAVED_MODELS)} in it")
    return folders[0]


def _path_inside(target: Path, name: str) -> Path:
    place = PurePosixPath(name.replace("\\", "/"))
    if (
        place.is_absolute()
        or ".." in place.parts
        or ":" in name
        or "\0" in name
        or len(name) > 1000
    ):
        raise ValueError(
            f"a file in it is called {shorten(name)!r}, which leads out of the archive"
        )
    return target / place
