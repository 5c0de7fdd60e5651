"""Model to file: OpenVINO IR 11, an XML document with its weights beside it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from engine.errors import WriteError
from engine.ir.model import Model, expect_model
from engine.write.weights_file import WeightsWriter
from engine.write.xml_document import write_document

__all__ = ["write_model"]


def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Writes ``m.xml`` and ``m.bin``; what was there is replaced only when all is written.

    ``WriteError`` when the model cannot be an IR (ONNX models, names that XML cannot hold, edges to nothing), or the files not written.
    """
    expect_model(model, "engine.write_model")
    target = Path(path)
    if target.suffix != ".xml":
        raise WriteError(f"the path is {str(target)!r}, expected one that ends with .xml: the weights go beside it, to a .bin file")
    if model.dialect != "openvino":
        raise WriteError("an ONNX model cannot be written as OpenVINO IR: its operations are other ones; convert it with OpenVINO first")
    # The model may read its constants from the very file that is replaced: that one lives on, unnamed, until its last reader closes it.
    try:
        with _replaced(target) as document, _replaced(target.with_suffix(".bin")) as weights:
            write_document(model, WeightsWriter(weights), document)
    except OSError as error:
        raise WriteError(f"{str(target)!r} cannot be written: {error.strerror}") from error


@contextmanager
def _replaced(target: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``target`` in the end, unless something went wrong."""
    handle, name = tempfile.mkstemp(prefix=f".{target.stem[:40]}-", suffix=target.suffix, dir=target.parent)
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        new.chmod(0o644)
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
