"""A specialised model computes what the original computes, wherever it is valid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope import TakenPaths, builder, specialise
from loopscope.comparison import same_outputs
from loopscope.errors import AddressError, InputError
from loopscope.explain import taken_paths
from loopscope.ir.address import nodes
from loopscope.ir.equal import difference
from loopscope.ir.model import Model
from tests.engine.drawn.models import drawn_model

_LIMITS = loopscope.Limits(iterations=5_000, seconds=5)


def onnx_model(text: str) -> Model:
    header = '<ir_version: 10, opset_import: ["" : 18]>'
    return loopscope.read_model(parser.parse_model(header + text).SerializeToString())


def regions(model: Model) -> list[str]:
    return [node.type for _, node in nodes(model) if node.bodies]


RATES = """rates (float[N] x, int64 sr) => (float[N] y) {
    wide = Constant <value_int = 16000> ()
    narrow = Constant <value_int = 8000> ()
    is_wide = Equal (sr, wide)
    y = If (is_wide) <
        then_branch = at_16k () => (float[N] a) { a = Neg (x) },
        else_branch = other () => (float[N] b) {
            is_narrow = Equal (sr, narrow)
            b = If (is_narrow) <
                then_branch = at_8k () => (float[N] c) { c = Abs (x) },
                else_branch = unknown () => (float[N] d) { d = Add (x, x) }
            >
        }
    >
}
"""
LENGTHS = """lengths (float[N, M] x) => (float[K] y) {
    zero = Constant <value_ints = [0]> ()
    one = Constant <value_ints = [1]> ()
    sizes = Shape (x)
    rows = Gather (sizes, zero)
    single = Equal (rows, one)
    flag = Squeeze (single)
    y = If (flag) <
        then_branch = a () => (float[K] p) { p = Squeeze (x, zero) },
        else_branch = b () => (float[K] q) { q = ReduceSum <keepdims = 0> (x, zero) }
    >
}
"""
COUNTED = """counted (float[2] x) => (float[2] y, float[K, 2] all) {
    three = Constant <value_int = 3> ()
    on = Constant <value = bool {1}> ()
    y, all = Loop (three, on, x) <body = step (int64 i, bool c, float[2] v)
        => (bool more, float[2] w, float[2] part) {
        more = Identity (c)
        f = Cast <to = 1> (i)
        w = Add (v, f)
        part = Mul (w, w)
    }>
}
"""
NEVER_RUN = COUNTED.replace("value_int = 3", "value_int = 0").replace(", float[K, 2] all)", ")")
NEVER_RUN = NEVER_RUN.replace("y, all = Loop", "y = Loop")
"""A loop without iterations whose collected output is left out."""
SCANNED = """scanned (float[N, 2] x) => (float[2] y, float[N, 2] all) {
    zeros = Constant <value_floats = [0.0, 0.0]> ()
    y, all = Scan (zeros, x) <
        num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],
        body = step (float[2] sum, float[2] part) => (float[2] next, float[2] seen) {
            next = Add (sum, part)
            seen = Mul (next, part)
        }
    >
}
"""


@pytest.mark.parametrize(
    ("text", "values", "shapes", "unroll", "changes"),
    [
        (RATES, {"sr": 16000}, {}, False, ["main/If_3 became its then branch; 1 node of"]),
        (RATES, {"sr": 8000}, {}, False, ["If_3/else/If_1 became its then", "its else branch"]),
        (RATES, {"sr": 1}, {}, False, ["If_3/else/If_1 became its else", "its else branch"]),
        (LENGTHS, {}, {"x": [1, 4]}, False, ["main/If_6 became its then branch; 2 nodes of"]),
        (LENGTHS, {}, {"x": [2, 4]}, False, ["main/If_6 became its else branch; 2 nodes of"]),
        (SCANNED, {}, {"x": [3, 2]}, True, ["main/Scan_1 was unrolled into 3 iterations"]),
        (NEVER_RUN, {}, {}, 3, ["main/Loop_2 was unrolled into 0 iterations"]),
        (COUNTED, {}, {}, 3, ["main/Loop_2 was unrolled into 3 iterations"]),
    ],
)
def test_what_inputs_decide_goes(
    text: str,
    values: dict[str, Any],
    shapes: dict[str, Sequence[int]],
    unroll: int | bool,
    changes: Sequence[str],
    tmp_path: Path,
) -> None:
    model = onnx_model(text)
    result = specialise(model, values, shapes, unroll=unroll)
    assert regions(result.model) == []
    assert len(result.changes) == len(changes)
    for change, words in zip(result.changes, changes, strict=True):
        assert words in change
    lengths = shapes.get("x", [2])
    inputs = {"x": np.arange(np.prod(lengths), dtype=np.float32).reshape(lengths) - 1, **values}
    compared = same_outputs(model, result.model, [inputs])
    assert (compared.runs, compared.difference) == (1, "")
    loopscope.write_model(result.model, tmp_path / "out.onnx")
    again = loopscope.read_model(tmp_path / "out.onnx")
    assert difference(result.model, again) == ""


def test_the_conditions_are_in_the_file(tmp_path: Path) -> None:
    result = specialise(onnx_model(RATES), {"sr": 16000}, {"x": [3]})
    assert result.validity == "valid while sr = 16000; x has the shape [3]"
    loopscope.write_model(result.model, tmp_path / "out.onnx")
    meta = loopscope.read_model(tmp_path / "out.onnx").meta_data
    assert meta["loopscope.valid_while"] == result.validity


def counting() -> Model:
    """A while loop with an If in it: adds 1 or 2 until the sum reaches ``limit``."""
    graph = builder.Graph("counting")
    limit = graph.parameter("limit", "i64", [])
    keep = graph.parameter("keep", "boolean", [])

    def step(value: builder.Tensor) -> builder.Tensor:
        added: builder.Tensor = value + builder.cond(
            keep, lambda: builder.constant(1, "i64"), lambda: builder.constant(2, "i64")
        )
        return added

    total = builder.while_loop(lambda value: value < limit, step, [builder.constant(0, "i64")])[0]
    return graph.model(total)


def run(model: Model, **inputs: object) -> loopscope.Debugger:
    debugger = loopscope.Debugger(model, inputs)
    debugger.run()
    return debugger


def test_paths_of_runs_are_taken_with_their_conditions(tmp_path: Path) -> None:
    model = counting()
    taken = taken_paths(run(model, limit=3, keep=True)) | taken_paths(
        run(model, limit=3, keep=True)
    )
    result = specialise(model, taken=taken, unroll=True)
    assert regions(result.model) == []
    assert len(result.conditions) == 2
    assert "keep was true in all 2 runs" in result.validity
    assert "ran 3 iterations in all 2 runs" in result.validity
    inside, outside = {"limit": 3, "keep": True}, {"limit": 4, "keep": False}
    compared = same_outputs(model, result.model, [inside, outside], result.assumed)
    assert (compared.runs, compared.outside, compared.difference) == (1, 1, "")
    loopscope.write_model(result.model, tmp_path / "out.xml")
    assert result.validity in str(loopscope.read_model(tmp_path / "out.xml").rt_info)


def test_paths_that_vary_are_not_taken() -> None:
    model = counting()
    taken = taken_paths(run(model, limit=3, keep=True)) | taken_paths(
        run(model, limit=5, keep=False)
    )
    assert (taken.branches, len(taken.counts)) == ({}, 1)
    varying = taken | taken_paths(run(model, limit=9, keep=True))
    assert specialise(model, taken=varying).conditions == ()


def test_a_random_operation_is_not_copied() -> None:
    graph = builder.Graph("noise")
    start = graph.parameter("x", "f32", [2])
    total = builder.for_loop(
        3,
        lambda i, value: value + builder.ops.random_uniform([2], 0.0, 1.0, output_type="f32"),
        [start],
    )[0]
    result = specialise(graph.model(total), unroll=True)
    assert regions(result.model) == ["Loop"]
    assert "has a state that all iterations share" in result.remaining[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"values": {"unknown": 1}}, "'unknown' is not the name of one input"),
        ({"values": {"sr": 1.5}}, "is i64, which 1.5 does not fit"),
        ({"values": {"sr": [1, 2]}}, r"has the shape \[\], got \[2\]"),
        ({"shapes": {"sr": [1]}}, "does not fit"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        specialise(onnx_model(RATES), **arguments)


def test_paths_of_another_model_are_refused() -> None:
    with pytest.raises(AddressError, match="expected runs of this model"):
        specialise(onnx_model(RATES), taken=TakenPaths(1, {"main/no_if": True}))


def has_random_operations(model: Model) -> bool:
    return any("Random" in node.type for _, node in nodes(model))


@pytest.mark.chance
@pytest.mark.parametrize("write", [lambda model, folder: model, None], ids=["model", "file"])
@pytest.mark.parametrize("seed", [*range(40), 168, 219, 538, 772, 851])
def test_drawn_models_compute_the_same(
    seed: int, write: Callable[[Model, Path], Model] | None, tmp_path: Path
) -> None:
    """The seeds at the end once failed."""
    model, (feeds, _) = drawn_model(seed)
    if has_random_operations(model):
        pytest.skip("random numbers depend on the number of operations")
    inputs = {signature.name: feed for signature, feed in zip(model.inputs, feeds, strict=True)}
    dice = np.random.default_rng(seed)
    values = {name: value for name, value in inputs.items() if dice.random() < 0.6}
    shapes = {name: value.shape for name, value in inputs.items() if name not in values}
    result = specialise(model, values, shapes, unroll=[False, True, 5][seed % 3])
    if any(record.iterations == 0 for record in run(model, **inputs).control_flow):
        pytest.skip("outputs of a loop without iterations depend on what the file declares")
    if write is None:
        loopscope.write_model(result.model, tmp_path / "out.xml")
        changed = loopscope.read_model(tmp_path / "out.xml")
    else:
        changed = write(result.model, tmp_path)
    assert same_outputs(model, changed, [inputs], limits=_LIMITS).difference == ""
