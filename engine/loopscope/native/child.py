"""Child process that runs third-party native code on untrusted bytes until its input ends.

It is started as a file and imports nothing of Loopscope. A request and an answer are lists of byte
parts, each preceded by its length. A request begins with its limits in seconds (wall clock and CPU
time) and the name of the work. An answer begins with ``made``, or with ``refused`` and the reason.
Argument: the memory limit of the process in bytes.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

_COUNT, _LENGTH = struct.Struct(">I"), struct.Struct(">Q")
MADE, REFUSED = b"made", b"refused"
_MAX_REASON = 600


def send(stream: IO[bytes], parts: Sequence[bytes]) -> None:
    stream.write(_COUNT.pack(len(parts)))
    for part in parts:
        stream.write(_LENGTH.pack(len(part)))
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes]) -> list[bytes]:
    """Return the parts of one message; ``EOFError`` when the stream ends."""
    (count,) = _COUNT.unpack(_read_exactly(stream, _COUNT.size))
    return [
        _read_exactly(stream, _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))[0])
        for _ in range(count)
    ]


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


@cache
def _onnx() -> Any:
    """Return the compiled module of the onnx package.

    It loads ten times faster than the package.
    """
    package = importlib.util.find_spec("onnx")
    for folder in (package.submodule_search_locations or ()) if package else ():
        for file in Path(folder).glob("onnx_cpp2py_export.*"):
            spec = importlib.util.spec_from_file_location("onnx_cpp2py_export", file)
            if spec is not None and spec.loader is not None:
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    raise ImportError("the onnx package has no compiled part")


def _onnx_types(model: bytes) -> list[bytes]:
    """Return a ModelProto with the types and shapes that ONNX's shape inference adds."""
    return [_onnx().shape_inference.infer_shapes(model, False, False, False)]


def _onnx_function(operation: bytes, node: bytes, *types: bytes) -> list[bytes]:
    """Return the FunctionProto that defines a NodeProto for inputs of these TypeProtos.

    Return nothing if ONNX does not define one.
    """
    identity = json.loads(operation)
    schema = _onnx().defs.get_schema(identity["type"], identity["version"], identity["domain"])
    return (
        [schema.get_context_dependent_function(node, list(types))]
        if schema.has_context_dependent_function
        else []
    )


def _image_size(encoded: bytes) -> list[bytes]:
    """Return the height and width that an image file declares."""
    from PIL import Image

    with Image.open(io.BytesIO(encoded)) as image:
        return [b"%d" % image.height, b"%d" % image.width]


def _image(colours: bytes, encoded: bytes) -> list[bytes]:
    """Return the pixels of an image file, row by row, in Pillow's mode ``L`` or ``RGB``."""
    from PIL import Image

    with Image.open(io.BytesIO(encoded)) as image:
        return [image.convert(colours.decode()).tobytes()]


def _table(kind: bytes, file: bytes) -> list[bytes]:
    """Return name and ``.npy`` content of each column of a Parquet or CSV file."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    pa.set_memory_pool(pa.system_memory_pool())
    source = pa.BufferReader(file)
    table = (
        parquet.read_table(source, use_threads=False)
        if kind == b"parquet"
        else csv.read_csv(source)
    )
    parts: list[bytes] = []
    for name in table.column_names:
        column = table[name].to_numpy()
        stored = io.BytesIO()
        np.save(
            stored, column.astype(str) if column.dtype == object else column, allow_pickle=False
        )
        parts += [name.encode(), stored.getvalue()]
    return parts


WORK: Mapping[bytes, Callable[..., list[bytes]]] = {
    b"image": _image,
    b"image size": _image_size,
    b"onnx function": _onnx_function,
    b"onnx types": _onnx_types,
    b"table": _table,
}


def _set_timers(seconds: float, cpu_seconds: float) -> None:
    """Set timers after which the system ends this process; 0 cancels them.

    The default action of the signals is used: hanging native code lets no Python thread run, and
    the parent may have died.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def main(max_bytes: str) -> int:
    """Answer requests until the input ends, then return 0."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (int(max_bytes), int(max_bytes)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a library must not mix with answers
    while True:
        try:
            seconds, cpu_seconds, work, *parts = receive(requests)
        except EOFError:
            return 0
        _set_timers(float(seconds), float(cpu_seconds))
        try:
            answer = [MADE, *WORK[work](*parts)]
        except Exception as error:
            reason = " ".join(str(error).split())[:_MAX_REASON] or type(error).__name__
            answer = [REFUSED, reason.encode("utf-8", "replace")]
        _set_timers(0, 0)
        send(answers, answer)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
