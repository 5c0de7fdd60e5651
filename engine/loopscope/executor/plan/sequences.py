"""Detection of models with values other than tensors: sequences, maps and optionals."""

from __future__ import annotations

from loopscope.ir.model import SEQUENCE_MAP, Model
from loopscope.ir.recorded_rows import is_trace
from loopscope.ir.walk import graphs
from loopscope.ops.catalogue import Catalogue


def holds_sequences(model: Model, catalogue: Catalogue) -> bool:
    """Return True if an operation of a model takes or returns values other than tensors.

    Operations that create such values have a ``prepare`` function; Identity passes them on.
    """
    nodes = (node for place in graphs(model) for node in place.graph.nodes)
    if is_trace(model):
        return any(port.form != "tensor" for node in nodes for port in node.outputs)
    for node in nodes if model.dialect == "onnx" else ():
        operation = catalogue.find(node.type, node.opset)
        if node.type == SEQUENCE_MAP or any(port.form != "tensor" for port in node.outputs):
            return True
        if operation is not None and not operation.only_tensors and operation.prepare is not None:
            return True
    return False
