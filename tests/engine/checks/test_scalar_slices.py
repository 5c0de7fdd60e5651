"""The rule about slices at a computed index warns exactly where OpenVINO's CPU is wrong on one
thread.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops

ONE_THREAD = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
CASES = {
    # shape of the data, indexed by, shrink_axis_mask: whether it is wrong
    "carried index": ([4, 3], "carried", [1], True),
    "input": ([4, 3], "input", [1], True),
    "constant": ([4, 3], "constant", [1], False),
    "a part of one row": ([4, 3], "carried", [0], False),
    "shape not known": ([None, 3], "carried", [1], False),
}


@pytest.mark.parametrize(("shape", "indexed", "mask", "wrong"), CASES.values(), ids=CASES.keys())
def test_the_rule_warns_where_openvino_is_wrong(
    shape: list[int | None], indexed: str, mask: list[int], wrong: bool, tmp_path: Path
) -> None:
    graph = builder.Graph("indexed")
    data, index = graph.parameter("data", "f32", shape), graph.parameter("index", "i32", [])

    def row(position: builder.Tensor) -> builder.Tensor:
        first = ops.unsqueeze(position, 0)
        bounds = (first, ops.unsqueeze(position + 1, 0), np.array([1], np.int32))
        element = ops.strided_slice(
            data, *bounds, begin_mask=[0], end_mask=[0], shrink_axis_mask=mask
        )
        return ops.reduce_sum(element * 2.0, 0, keep_dims=False)

    if indexed == "carried":
        start = (
            index * 0,
            graph.constant(np.float32(0))
            if mask == [1]
            else graph.constant(np.zeros(3, np.float32)),
        )
        result = builder.while_loop(
            lambda i, total: i < 4, lambda i, total: (i + 1, total + row(i)), start
        )[1]
    else:
        result = row(index if indexed == "input" else graph.constant(np.int32(2)))
        result = result + ops.convert(index, destination_type="f32")
    model = graph.model(result)
    assert [one.code for one in loopscope.check(model).diagnostics if one.code == "LS925"] == [
        "LS925"
    ] * wrong
    loopscope.write_model(model, tmp_path / "model.xml")
    feeds = [np.arange(12, dtype=np.float32).reshape(4, 3), np.array(2, np.int32)]
    (theirs,) = (
        openvino.Core().compile_model(tmp_path / "model.xml", "CPU", ONE_THREAD)(feeds).values()
    )
    (ours,) = loopscope.run(model, feeds).outputs
    assert np.allclose(theirs, ours) is not wrong
