"""What a damaged model gives an operation besides the types that it has is computed in generated
code as in a step.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx.parser import parse_model

import loopscope

_TEXT = """<ir_version: 8, opset_import: ["" : 17]>
main ({kind}[3] x, int64 trips) => ({kind}[3] last, {kind}[trips, 3] each) {{
    last, each = Loop (trips, , x) <body = step (int64 i, bool go, {kind}[3] v) => (bool again, {kind}[3] w, bool[3] not) {{
        again = Identity (go)
        not = {operation}
        w = Add (v, v)
    }}>
}}"""


@pytest.mark.parametrize("kind", ["float", "int32"])
@pytest.mark.parametrize("operation", ["Not (v)", "And (v, v)", "Xor (v, v)"])
def test_numbers_where_booleans_belong_are_the_same_at_both_speeds(
    kind: str, operation: str
) -> None:
    proto = parse_model(_TEXT.format(kind=kind, operation=operation))
    model = loopscope.read_model(proto.SerializeToString())
    dtype = np.float32 if kind == "float" else np.int32
    feeds = {"x": np.array([0, 2, 5], dtype), "trips": np.array(40, np.int64)}
    fast, slow = loopscope.Debugger(model, feeds), loopscope.Debugger(model, feeds)
    fast.run()
    while slow.state == "paused":
        slow.step()
    assert fast.state == slow.state == "finished"
    for mine, theirs in zip(fast.result.outputs, slow.result.outputs, strict=True):
        np.testing.assert_array_equal(mine, theirs)
