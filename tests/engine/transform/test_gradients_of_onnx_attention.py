"""Gradients of ONNX's Attention and RotaryEmbedding against central differences: heads, groups,
masks, the past, windows, scores shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope.finite_differences import GradientCheck
from tests.draws import share

pytestmark = pytest.mark.slow
"""Long tables: together they take as long as all the other fast tests."""

RANDOM = np.random.default_rng(11)
Shapes = Mapping[str, tuple[int, ...]]
BATCH, TOKENS, KEYS, SIZE, WIDTH, HEADS, PAST = 2, 3, 4, 2, 3, 2, 2
APART = {
    "q": (BATCH, HEADS, TOKENS, SIZE),
    "k": (BATCH, HEADS, KEYS, SIZE),
    "v": (BATCH, HEADS, KEYS, WIDTH),
}
GROUPED = {**APART, "q": (BATCH, 4, TOKENS, SIZE)}
FLAT = {
    "q": (BATCH, TOKENS, 4 * SIZE),
    "k": (BATCH, KEYS, HEADS * SIZE),
    "v": (BATCH, KEYS, HEADS * WIDTH),
}
OF_PAST = {"pk": (BATCH, HEADS, PAST, SIZE), "pv": (BATCH, HEADS, PAST, WIDTH)}
FORMS: Mapping[str, tuple[Shapes, str, str, str]] = {
    "of heads": (APART, "", "q, k, v", "y"),
    "of groups": (GROUPED, "", "q, k, v", "y"),
    "of heads side by side": (FLAT, "q_num_heads = 4, kv_num_heads = 2", "q, k, v", "y"),
    "with a scale": (APART, "scale = 0.3", "q, k, v", "y"),
    "with a cap": (APART, "softcap = 0.7", "q, k, v", "y"),
    "with a mask of floats": ({**GROUPED, "m": (TOKENS, KEYS)}, "", "q, k, v, m", "y"),
    "with a mask for each head": (
        {**GROUPED, "m": (BATCH, 4, TOKENS, KEYS)},
        "",
        "q, k, v, m",
        "y",
    ),
    "with a short mask": ({**APART, "m": (TOKENS, KEYS - 1)}, "", "q, k, v, m", "y"),
    "with a boolean mask": (APART, "", "q, k, v, seen", "y"),
    "that looks back": (APART, "is_causal = 1", "q, k, v", "y"),
    "with a past": ({**APART, **OF_PAST}, "is_causal = 1", "q, k, v, , pk, pv", "y"),
    "that shows its keys": ({**GROUPED, **OF_PAST}, "", "q, k, v, , pk, pv", "y, keys, values"),
    "that shows keys side by side": (
        {**FLAT, **OF_PAST},
        "q_num_heads = 4, kv_num_heads = 2",
        "q, k, v, , pk, pv",
        "y, keys, values",
    ),
    "in a window": (APART, "left_window_size = 1, right_window_size = 0", "q, k, v", "y"),
    "of keys in part": (GROUPED, "is_causal = 1", "q, k, v, , , , count", "y"),
    "in wide precision": (APART, "softmax_precision = 11", "q, k, v", "y"),
    **{
        f"that shows scores {mode}": (
            GROUPED,
            f"softcap = 2.0, qk_matmul_output_mode = {mode}",
            "q, k, v",
            "y, , , scores",
        )
        for mode in range(4)
    },
}


def graph(shapes: Shapes, body: str, *, known: bool = True) -> loopscope.Model:
    inputs = ", ".join(
        f"float[{','.join(str(one) if known else f'{name}{axis}' for axis, one in enumerate(shape))}] {name}"
        for name, shape in shapes.items()
    )
    text = f'<ir_version: 11, opset_import: ["" : 25]> g ({inputs}) => (float s) {{ {body} }}'
    return loopscope.read_model(parser.parse_model(text).SerializeToString())


def sums(outputs: str) -> str:
    """The squares of all outputs, added, each with a factor of its own."""
    names = [one.strip() for one in outputs.split(",") if one.strip()]
    squares = [
        f"{name}2 = Mul({name}, {name}) {name}1 = ReduceSum<keepdims = 0>({name}2)"
        for name in names
    ]
    return f"{' '.join(squares)} s = Sum({', '.join(f'{name}1' for name in names)})"


def held(model: loopscope.Model, shapes: Shapes) -> GradientCheck:
    values = [RANDOM.uniform(-0.9, 0.9, shape).astype(np.float32) for shape in shapes.values()]
    return loopscope.check_gradient(model, values, "s", list(shapes))


@pytest.mark.parametrize(
    ("name", "known"),
    [*((name, True) for name in FORMS), *((name, False) for name in share(list(FORMS)))],
)
def test_attention(name: str, known: bool) -> None:
    shapes, attributes, given, outputs = FORMS[name]
    constants = """seen = Constant <value = bool[3,4] {1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 1}> ()
      count = Constant <value = int64[2] {2, 4}> ()"""
    options = f"<{attributes}>" if attributes else ""
    model = graph(
        shapes, f"{constants} {outputs} = Attention{options}({given}) {sums(outputs)}", known=known
    )
    found = held(model, shapes)
    assert found.ok, found


ROTATED = {
    "halves": ((2, 3, 4, 6), "", "x, c, t"),
    "neighbours": ((2, 3, 4, 6), "interleaved = 1", "x, c, t"),
    "in part": ((2, 3, 4, 10), "rotary_embedding_dim = 6, num_heads = 3", "x, c, t"),
    "side by side": ((2, 4, 18), "num_heads = 3", "x, c, t"),
    "by places": ((2, 3, 4, 6), "", "x, c, t, places"),
    "by places, side by side": ((2, 4, 18), "num_heads = 3, interleaved = 1", "x, c, t, places"),
}


@pytest.mark.parametrize("name", ROTATED)
@pytest.mark.parametrize("known", [True, False])
def test_rotary_embedding(name: str, known: bool) -> None:
    shape, attributes, given = ROTATED[name]
    cache = (5, 3) if "places" in given else (2, 4, 3)
    shapes = {"x": shape, "c": cache, "t": cache}
    options = f"<{attributes}>" if attributes else ""
    places = "places = Constant <value = int64[2,4] {0, 1, 2, 3, 4, 3, 3, 0}> ()"
    found = held(
        graph(shapes, f"{places} y = RotaryEmbedding{options}({given}) {sums('y')}", known=known),
        shapes,
    )
    assert found.ok, found


def test_scores_that_are_rounded_have_no_derivative() -> None:
    model = graph(APART, f"y = Attention<softmax_precision = 10>(q, k, v) {sums('y')}")
    sentence = "cannot be differentiated: its softmax_precision is 10, which rounds the scores"
    with pytest.raises(loopscope.BuildError, match=re.escape(sentence)):
        loopscope.gradients(model, "s", "q")
