"""Types and shapes of a changed or translated ONNX model, inferred by the onnx package."""

from __future__ import annotations

from loopscope.ir.model import Model
from loopscope.ir.replace import replace
from loopscope.read import ReadLimits
from loopscope.read.onnx import read_onnx
from loopscope.write.onnx.model_writer import is_external, model_proto
from loopscope.write.onnx.tensor_protos import ExternalTensors


def with_inferred_types(model: Model) -> Model:
    """Return the model as it is read from its own file.

    Its ports have the types that ONNX infers for the changed graph. ``WriteError`` if ONNX cannot
    express the model.
    """
    data: list[bytes | memoryview] = []
    external = ExternalTensors(data.append, "weights") if is_external(model) else None
    document = model_proto(model, external).SerializeToString()
    limits = ReadLimits(onnx_bytes=len(document) + 1)
    weights = b"".join(data) if external is not None else None
    return replace(read_onnx(document, weights, "", limits), file=model.file, notes=model.notes)
