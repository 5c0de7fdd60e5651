"""The bytes of which ONNX Runtime gives exact products, on the processor at hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper


def limits(dtype: Any) -> tuple[int, int]:
    """The least and the greatest integer of a type; of i8, those of 7 bits where sums of pairs
    saturate: 2 x 255 x 64 fits in 16 bits.
    """
    if np.dtype(dtype) == np.int8 and pairs_saturate():
        return -64, 63
    found = np.iinfo(dtype)
    return int(found.min), int(found.max)


@cache
def pairs_saturate() -> bool:
    """Whether ONNX Runtime sums two products of u8 and i8 in 16 bits: on x64 without VNNI, where 2
    x 255 x 127 becomes 32767.

    No oracle for full weights there; its documentation of quantization advises weights of 7 bits
    (``reduce_range``).
    """
    kinds = {
        "x": (TensorProto.UINT8, (1, 2)),
        "w": (TensorProto.INT8, (2, 1)),
        "y": (TensorProto.INT32, (1, 1)),
    }
    *inputs, output = [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()]
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])], "one", inputs, [output]
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    ).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (found,) = session.run(
        None, {"x": np.full((1, 2), 255, np.uint8), "w": np.full((2, 1), 127, np.int8)}
    )
    return int(found.item()) != 2 * 255 * 127
