"""Loops over rows of some hundred numbers, drawn choice by choice: too wide to be packed into
columns, with views, cuts and products.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import loopscope
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, Slice, loop

WIDTH = 288
ELEMENTWISE = ["Add", "Subtract", "Multiply", "Maximum", "Minimum", "SquaredDifference"]
UNARY = ["Sigmoid", "Tanh", "ReLU", "Negative", "Abs", "Identity"]
_RANDOM = np.random.default_rng(7)
WEIGHTS = (_RANDOM.standard_normal((WIDTH, WIDTH)) / 17).astype(np.float32)
BIAS = _RANDOM.standard_normal((1, WIDTH)).astype(np.float32)
SEQUENCE = _RANDOM.standard_normal((140, WIDTH)).astype(np.float32)
SQUARE = ["MatMul", "halves", "thirds", "turned", "flat", "part", "spread", "same", "slice"]


class Drawn:
    """A model that prints what its body computes, without weights."""

    def __init__(self, model: loopscope.Model, body: Draft) -> None:
        self.model, self.body = model, body

    def __repr__(self) -> str:
        return f"Drawn({[f'{node.id}: {node.type} {dict(node.attributes)}' for node in self.body.nodes]}, {self.body.edges})"


@st.composite
def loops(draw: st.DrawFn) -> Drawn:
    """A loop whose body carries rows, some of them late or exchanged, and collects, slices and
    reshapes them.
    """
    main, body = Draft(), Draft()
    count = draw(st.integers(1, 4))
    # A row of one element grows with the first addition: its shape is another one from then on.
    starts = [main.parameter(f"x{number}", F32, (1, WIDTH)) for number in range(count)]
    starts[-1] = (
        main.op("ReduceMean", starts[-1], main.const([1], I64), keep_dims="true")
        if draw(st.booleans())
        else starts[-1]
    )
    parameters = [body.parameter(f"p{number}", F32, (1, -1)) for number in range(count)]
    sequence = main.const(SEQUENCE)
    token = body.parameter("token", F32, (1, WIDTH))
    values = [*parameters, token, body.const(BIAS)]
    for _ in range(draw(st.integers(1, 7))):
        one, other = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        kind = draw(st.sampled_from(["two", "one", *SQUARE]))
        if kind == "two":
            values.append(body.op(draw(st.sampled_from(ELEMENTWISE)), one, other))
        elif kind == "one":
            type = draw(st.sampled_from(UNARY))
            values.append(body.op(type, one, opset=16 if type == "Identity" else 1))
        else:
            wide = body.op("Add", one, body.const(BIAS))
            values.append(shuffled(body, kind, wide, draw(st.booleans())))
    # Values stay bounded, so that runs on different paths do not only compare infinities; and not
    # all of them are computed anew.
    results = [
        body.result(body.op("Clamp", draw(st.sampled_from(values)), min="-2", max="2"))
        for _ in range(draw(st.integers(1, count)))
    ]
    while len(results) < count:
        results.append(body.result(draw(st.sampled_from(values))))
    results = draw(st.permutations(results))
    mean = body.op(
        "ReduceMean",
        body.op("Add", values[-1], body.const(BIAS)),
        body.const([0, 1], I64),
        keep_dims="false",
    )
    again = body.result(body.op("Less", mean, body.const(draw(st.sampled_from([0.1, 9.0, 9.0])))))
    joined = body.op("Add", draw(st.sampled_from(values)), body.const(BIAS))
    collected = body.result(
        shuffled(body, draw(st.sampled_from(SQUARE)), joined, False)
        if draw(st.booleans())
        else joined
    )
    made = loop(
        main,
        body,
        main.const(draw(st.sampled_from([3, 65, 70, 133])), I64),
        main.const(True, BOOL),
        again=again,
        carried=list(zip(starts, parameters, results, strict=True)),
        sliced=[(sequence, token, {"axis": 0, "start": 0, "end": -1, "stride": 1, "part_size": 1})],
        last=[results[0], collected],
        joined=[(collected, Slice()), (draw(st.sampled_from([results[-1], collected])), Slice())][
            : draw(st.integers(0, 2))
        ],
        name="loop",
    )
    for output in range(len(main.nodes[made.layer].outputs)):
        main.result(Ref(made.layer, output))
    return Drawn(main.model(), body)


def shuffled(body: Draft, kind: str, wide: Ref, choice: bool) -> Ref:
    """A row that was multiplied, cut and put together, or brought into another form and back."""
    if kind == "MatMul":
        return body.op(
            "MatMul",
            wide,
            body.const(WEIGHTS),
            transpose_a="false",
            transpose_b=str(choice).lower(),
        )
    if kind == "halves":
        half = body.op("Split", wide, body.const(1, I64), outputs=2, num_splits="2")
        rest = body.op("Sigmoid" if choice else "Tanh", Ref(half.layer, 1))
        return body.op("Concat", rest, half, axis="1")
    if kind == "thirds":
        cut = body.op(
            "VariadicSplit", wide, body.const(-1, I64), body.const([200, -1], I64), outputs=2
        )
        return body.op("Concat", Ref(cut.layer, 1), body.op("Tanh", cut), axis="1")
    if kind == "slice":
        ends = [body.const(value, I64) for value in ([0, 0], [1, WIDTH], [1, 1])]
        return body.op("StridedSlice", wide, *ends, begin_mask="0,0", end_mask="0,0")
    if kind == "turned":
        turned = body.op("Tanh", body.op("Transpose", wide, body.const([1, 0], I64)))
        return body.op("Transpose", turned, body.const([1, 0], I64))
    if kind == "flat":
        flat = body.op("Reshape", wide, body.const([2, -1], I64), special_zero="false")
        return body.op(
            "Reshape",
            body.op("Sigmoid", flat) if choice else flat,
            body.const([1, WIDTH], I64),
            special_zero="false",
        )
    if kind == "spread":
        return body.op("Broadcast", wide, body.const([1, WIDTH], I64), opset=3, mode="numpy")
    if kind == "same":
        return body.op("Convert", wide, destination_type="f32")
    return body.op(
        "Squeeze", body.op("Unsqueeze", wide, body.const([0], I64)), body.const([0], I64)
    )
