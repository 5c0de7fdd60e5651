"""Runs native code of other people on untrusted bytes, request by request, until its input ends.

Started as a file, in a process of its own, so it imports nothing of ours. A request and an answer
are parts of bytes, each with its length before it. A request begins with the seconds that it may
take, by the clock and of the processor, and the name of the work; an answer with ``made``, or with
``refused`` and the reason. Argument: the bytes of memory that the process may take.
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
_LONGEST_REASON = 600


def send(stream: IO[bytes], parts: Sequence[bytes]) -> None:
    stream.write(_COUNT.pack(len(parts)))
    for part in parts:
        stream.write(_LENGTH.pack(len(part)))
        stream.write(part)
    stream.flush()


def received(stream: IO[bytes]) -> list[bytes]:
    """The parts of one message; ``EOFError`` when the stream ends."""
    (count,) = _COUNT.unpack(_exactly(stream, _COUNT.size))
    return [
        _exactly(stream, _LENGTH.unpack(_exactly(stream, _LENGTH.size))[0]) for _ in range(count)
    ]


def _exactly(stream: IO[bytes], length: int) -> bytes:
    found = stream.read(length)
    if len(found) < length:
        raise EOFError
    return found


@cache
def _onnx() -> Any:
    """The compiled part of the onnx package alone, which is there in a tenth of the time that
    the package takes.
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
    """A ModelProto with the types and shapes that ONNX's shape inference adds."""
    return [_onnx().shape_inference.infer_shapes(model, False, False, False)]


def _onnx_function(operation: bytes, node: bytes, *types: bytes) -> list[bytes]:
    """The FunctionProto that defines a NodeProto whose inputs have these TypeProtos; nothing
    where ONNX has none.
    """
    named = json.loads(operation)
    schema = _onnx().defs.get_schema(named["type"], named["version"], named["domain"])
    return (
        [schema.get_context_dependent_function(node, list(types))]
        if schema.has_context_dependent_function
        else []
    )


def _image_size(encoded: bytes) -> list[bytes]:
    """Height and width that an image file says it has."""
    from PIL import Image

    with Image.open(io.BytesIO(encoded)) as opened:
        return [b"%d" % opened.height, b"%d" % opened.width]


def _image(colours: bytes, encoded: bytes) -> list[bytes]:
    """The pixels of an image file, row by row, in the colours that Pillow calls ``L`` or
    ``RGB``.
    """
    from PIL import Image

    with Image.open(io.BytesIO(encoded)) as opened:
        return [opened.convert(colours.decode()).tobytes()]


def _table(kind: bytes, file: bytes) -> list[bytes]:
    """The columns of a Parquet or CSV file, for each its name and its numbers as numpy stores
    them.
    """
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


def _end_after(seconds: float, of_processor: float) -> None:
    """Lets the system end this process so many seconds from now; 0 calls that off.

    Native code that hangs lets no thread of ours run, and the waiting process may have died: so the
    signals' own effect is used.
    """
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)
        signal.setitimer(signal.ITIMER_PROF, of_processor)


def main(most_bytes: str) -> int:
    """0 when the input has ended."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (int(most_bytes), int(most_bytes)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    given, back = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    while True:
        try:
            seconds, of_processor, work, *parts = received(given)
        except EOFError:
            return 0
        _end_after(float(seconds), float(of_processor))
        try:
            answer = [MADE, *WORK[work](*parts)]
        except Exception as error:
            reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
            answer = [REFUSED, reason.encode("utf-8", "replace")]
        _end_after(0, 0)
        send(back, answer)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
