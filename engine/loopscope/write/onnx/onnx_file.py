"""An ONNX file, with a data file beside it where the weights need one."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from loopscope.errors import WriteError
from loopscope.ir.model import Model
from loopscope.replaced_file import replaced_files
from loopscope.write.onnx.model_writer import external_locations, is_external, model_proto
from loopscope.write.onnx.openvino.translation import to_onnx
from loopscope.write.onnx.protos import ExternalTensors


def write_onnx(model: Model, target: Path) -> None:
    """Write ``m.onnx``, and ``m.onnx.data`` if the source had such a file or is too large.

    ``WriteError`` for what ONNX cannot express, ``OSError`` if a file cannot be written.
    """
    if model.dialect != "onnx":
        model = to_onnx(model)
    beside = target.with_name(f"{target.name}.data")
    _refuse_opened(model, target, beside)
    with ExitStack() as stack:
        external = None
        if is_external(model):
            # The data file is replaced before the model, so that the model never lacks it.
            data, document = stack.enter_context(replaced_files(beside, target))
            external = ExternalTensors(data.write, beside.name)
        else:
            (document,) = stack.enter_context(replaced_files(target))
        try:
            document.write(model_proto(model, external).SerializeToString())
        except ValueError as error:  # protobuf raises it for a message above its limit
            raise WriteError(
                f"{str(target)!r} cannot be written: the model has more than 2 GB, the limit of "
                "an ONNX file"
            ) from error


def _refuse_opened(model: Model, *targets: Path) -> None:
    """Raise ``WriteError`` if a target is a file that the model was read from."""
    if not model.file:
        return
    file = Path(model.file)
    opened = [file, *(file.parent / location for location in external_locations(model))]
    for target in targets:
        if any(target.exists() and path.exists() and target.samefile(path) for path in opened):
            raise WriteError(
                f"{str(target)!r} was opened as the model: expected another path to write to"
            )
