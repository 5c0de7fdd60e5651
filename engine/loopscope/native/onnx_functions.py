"""The functions of other operations by which ONNX defines some of its own, made for one node in
a process of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from onnx import FunctionProto, NodeProto, TypeProto

from loopscope.native.workers import WORKERS, Crashed, Refused


def function_of(node: NodeProto, version: int, types: Sequence[TypeProto]) -> FunctionProto | None:
    """For inputs of these types; None where ONNX makes none, because it has none, or refuses or
    crashes on the node.
    """
    operation = json.dumps(
        {"type": node.op_type, "domain": node.domain, "version": version}
    ).encode()
    try:
        made = WORKERS.ask(
            "onnx function",
            operation,
            node.SerializeToString(),
            *(one.SerializeToString() for one in types),
        )
    except (Refused, Crashed):
        return None
    return FunctionProto.FromString(made[0]) if made else None
