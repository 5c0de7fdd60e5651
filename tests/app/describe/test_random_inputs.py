"""Inputs that are made up: a model that somebody opens should run at first sight, if any of a
few lengths lets it.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx.parser import parse_model

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.errors import InputError
from loopscope_app.describe.random_inputs import (
    OPEN_LENGTHS,
    Lengths,
    lengths_by_rules,
    lengths_by_trials,
    random_inputs,
)
from loopscope_app.describe.signatures import bindings

MODELS = {
    "any length": ("float[n]", "y = Relu (x)", 3, True),
    "a window of 50": (
        "float[1,1,n]",
        "s = Constant <value_ints = [1,1,50]> () w = ConstantOfShape (s) y = Conv (x, w)",
        64,
        True,
    ),
    "8 alone": ("float[n]", "s = Constant <value_ints = [8]> () y = Reshape (x, s)", 8, True),
    "none": ("float[n]", "s = Constant <value_ints = [77]> () y = Reshape (x, s)", 3, False),
    "no choice": ("float[5]", "s = Constant <value_ints = [5]> () y = Reshape (x, s)", 5, True),
}
"""The input's type, what is made of it, the length that is chosen, and whether the model runs
with it.
"""


@pytest.mark.parametrize(("given", "nodes", "length", "runs"), MODELS.values(), ids=MODELS.keys())
def test_open_lengths_are_such_that_the_model_runs(
    given: str, nodes: str, length: int, runs: bool
) -> None:
    result = given.replace("n", "m").replace("5", "m")
    text = (
        f'<ir_version: 8, opset_import: ["" : 17]> main ({given} x) => ({result} y) {{ {nodes} }}'
    )
    model = loopscope.read_model(parse_model(text).SerializeToString())
    made = random_inputs(model, 0, lengths_by_trials(model, 0))
    assert made["x"].shape[-1] == length
    debugger = loopscope.Debugger(model, bindings(model, made))
    debugger.run()
    assert (debugger.state == "finished") == runs


@pytest.mark.parametrize(("columns", "expected"), [(3, 3), (8, 8), (64, 64), (5, 3)])
def test_rules_for_shapes_say_which_length_fits_and_nothing_runs(
    columns: int, expected: int
) -> None:
    graph = builder.Graph("open")
    x = graph.parameter("x", "f32", [None, None])
    model = graph.model(ops.reshape(x, np.array([columns, columns]), special_zero=False))
    assert lengths_by_rules(model) == (expected, expected)
    static = builder.Graph("static")
    assert (
        lengths_by_rules(static.model(static.parameter("x", "f32", [7]) * 2.0)) == OPEN_LENGTHS[0]
    )


def test_a_batch_stays_small_where_other_axes_are_long() -> None:
    """A GRU's state has one row, as its input must have then; frames are enough for a window of
    40.
    """
    graph = builder.Graph("frames")
    x, state = graph.parameter("x", "f32", [None, None, 2]), graph.parameter("state", "f32", [1, 3])
    window = ops.strided_slice(x, [0, 39, 0], [0, 40, 0], begin_mask=[1, 0, 1], end_mask=[1, 0, 1])
    rows = ops.concat([ops.reshape(window, np.array([1, 2]), special_zero=False), state], axis=1)
    assert lengths_by_trials(graph.model(rows), 0) == (64, 1)


def test_a_search_ends_when_it_is_told_to() -> None:
    graph = builder.Graph("open")
    model = graph.model(
        ops.reshape(graph.parameter("x", "f32", [None]), np.array([256]), special_zero=False)
    )
    tried: list[Lengths] = []

    def going(lengths: Lengths) -> bool:
        tried.append(lengths)
        return lengths.rest != 8

    assert lengths_by_trials(model, 0, going) == OPEN_LENGTHS[0]
    assert [one.rest for one in tried] == [3, 1, 8]
    assert lengths_by_trials(model, 0) == (256, 1)


TOO_LARGE = {
    "one of too many elements": (
        ["n,4194304"],
        "^input 'x0' of shape .3, 4194304. has 12,582,912 elements: upload it as an .npy file$",
    ),
    "many together": (
        ["4194304"] * 20,
        (
            "^input 'x16' of shape .4194304. would bring the generated inputs to 285,212,672 bytes, "
            "more than the limit of 268,435,456: upload them as an .npz file$"
        ),
    ),
    "no array": (
        [str(2**62) + ",0," + str(2**62)],
        "^input 'x0' has the shape .*, which no array can have$",
    ),
}
"""Shapes of the inputs, and what is said of them."""


@pytest.mark.parametrize(("shapes", "said"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_inputs_that_are_too_large_are_named_with_their_shapes(
    shapes: list[str], said: str
) -> None:
    """A file claims any shapes: nothing is made up for them but a sentence."""
    given = ", ".join(f"float[{shape}] x{number}" for number, shape in enumerate(shapes))
    text = f'<ir_version: 8, opset_import: ["" : 17]> main ({given}) => (int64[m] y) {{ y = Shape (x0) }}'
    with pytest.raises(InputError, match=said):
        random_inputs(loopscope.read_model(parse_model(text).SerializeToString()), 0)


def test_a_long_name_is_cut_in_the_sentence() -> None:
    name = "x" * 5000
    text = f'<ir_version: 8, opset_import: ["" : 17]> main (float[5000000] {name}) => (int64[m] y) {{ y = Shape ({name}) }}'
    with pytest.raises(InputError, match=r"of shape \[5000000\] has 5,000,000 elements") as told:
        random_inputs(loopscope.read_model(parse_model(text).SerializeToString()), 0)
    assert len(str(told.value)) < 300


def test_texts_count_as_the_objects_that_they_are() -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> main (string[4000000] x) => (string[4000000] y) { y = Identity (x) }'
    with pytest.raises(InputError, match="to 320,000,000 bytes"):
        random_inputs(loopscope.read_model(parse_model(text).SerializeToString()), 0)


def test_a_trial_takes_little_memory() -> None:
    """A trial runs whatever somebody opens: under the limits of a run that was asked for, one
    made a value of 4 GB.
    """
    text = """main (int8[n] x) => (int8[m] y) {
        each = Constant <value_ints = [33554432]> ()
        length = Shape (x)
        most = Mul (length, each)
        zero = Constant <value = int8[1] {0}> ()
        y = Expand (zero, most)
    }"""
    model = loopscope.read_model(
        parse_model('<ir_version: 8, opset_import: ["" : 17]>' + text).SerializeToString()
    )
    assert lengths_by_trials(model, 0) == (1, 1)
