"""Function bodies that define some ONNX operations, computed for a node in a child process."""

from __future__ import annotations

import json
from collections.abc import Sequence

from onnx import FunctionProto, NodeProto, TypeProto

from loopscope.native.workers import WORKERS, Crashed, Refused


def function_of(node: NodeProto, version: int, types: Sequence[TypeProto]) -> FunctionProto | None:
    """Return the function that defines a node for inputs of these types.

    Return None if ONNX does not define one, refuses the node or crashes.
    """
    operation = json.dumps(
        {"type": node.op_type, "domain": node.domain, "version": version}
    ).encode()
    try:
        answer = WORKERS.ask(
            "onnx function",
            operation,
            node.SerializeToString(),
            *(value_type.SerializeToString() for value_type in types),
        )
    except (Refused, Crashed):
        return None
    return FunctionProto.FromString(answer[0]) if answer else None
