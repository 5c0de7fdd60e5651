"""One quantum of a small integer is no difference, nor is what follows from it; two are, and so is
an operation that is wrong behind one.

The file is changed after our run, so that ONNX Runtime computes something else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import loopscope
from loopscope.peers import ComparisonReport, against, differ
from loopscope.peers.other_runtimes import RuntimeAnswer, ask
from loopscope_app.cli import main
from tests.engine.executor.test_quantized_models import quantized

X = np.linspace(-6.3, 6.3, 64, dtype=np.float32).reshape(4, 16)
INPUT = '<ir_version: 9, opset_import: ["" : 21]> one (float[4, 16] x) => '
CHAIN = """(float[16, 4] y, int8[4, 16] z)
<float scale = {0.05}, float scale_back = {0.05}, int8 zero = {0}, int8 zero_back = {0},
 int64[2] turned = {16, 4}, float[1] bias = {0.25}> {
    q = QuantizeLinear (x, scale, zero)
    rows = Transpose <perm = [1, 0]> (q)
    z = Relu (q)
    again = Reshape (rows, turned)
    f = DequantizeLinear (again, scale_back, zero_back)
    squared = Mul (f, f)
    y = Add (squared, bias)
}"""
LOOPED = """(float[4, 16] y) <int64 trips = {3}, float scale = {0.05}, int8 zero = {0}> {
    y = Loop (trips, , x) <body = body (int64 i, bool go, float[4, 16] v) => (bool more, float[4, 16] w) {
        more = Identity (go)
        q = QuantizeLinear (v, scale, zero)
        f = DequantizeLinear (q, scale, zero)
        half = Constant <value_float = 0.5> ()
        w = Mul (f, half)
    }>
}"""


def changed(model: onnx.ModelProto, by: Mapping[str, float]) -> onnx.ModelProto:
    """The model with other constants."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    for initializer in other.graph.initializer:
        if initializer.name in by:
            array = numpy_helper.to_array(initializer)
            initializer.CopyFrom(
                numpy_helper.from_array(
                    (array + by[initializer.name]).astype(array.dtype), initializer.name
                )
            )
    return other


def compared(
    folder: Path, here: onnx.ModelProto, there: onnx.ModelProto, inputs: Mapping[str, Any]
) -> ComparisonReport:
    path = folder / "model.onnx"
    onnx.save(here, path)
    debugger = loopscope.Debugger(loopscope.read_model(path), inputs)
    debugger.run()
    onnx.save(there, path)
    return against(debugger, inputs)


CASES: Mapping[str, tuple[str, Mapping[str, float], str, int]] = {
    # the graph, what is added to its constants there, the address that differs, elements that
    # differ by a quantum
    "nothing": (CHAIN, {}, "", 0),
    "one quantum": (CHAIN, {"zero": 1}, "", 64),
    "two quanta": (CHAIN, {"zero": 2}, "main/QuantizeLinear_0", 0),
    "a scale behind a quantum": (
        CHAIN,
        {"zero": 1, "scale_back": 0.02},
        "main/DequantizeLinear_4",
        64,
    ),
    "a sum behind a quantum": (CHAIN, {"zero": 1, "bias": 1.0}, "main/Add_6", 64),
    "a sum alone": (CHAIN, {"bias": 1.0}, "main/Add_6", 0),
    "in a loop": (LOOPED, {"zero": 1}, "", 3 * 64),
}


@pytest.mark.parametrize(("text", "by", "address", "elements"), CASES.values(), ids=CASES.keys())
def test_a_quantum_and_what_follows(
    text: str, by: Mapping[str, float], address: str, elements: int, tmp_path: Path
) -> None:
    model = parser.parse_model(INPUT + text)
    report = compared(tmp_path, model, changed(model, by), {"x": X})
    assert (report.first.address if report.first else "") == address, report.sentence
    assert (report.quanta.elements if report.quanta else 0) == elements
    assert report.outputs_agree == (not address)


def test_the_sentence_says_how_many_and_where(tmp_path: Path) -> None:
    model = parser.parse_model(INPUT + CHAIN)
    report = compared(tmp_path, model, changed(model, {"zero": 1}), {"x": X})
    assert report.sentence.startswith(
        f"All outputs agree with {report.runtime} within one quantum of int8, and so do 7 values"
    )
    told = f"64 of 64 elements of QuantizeLinear_0 differ by one step, first: -125 at [0,0] in {report.runtime}, -126 at [0,0] here."
    assert told in report.sentence
    assert (
        f"What follows from that is not called a difference: 'y' is 39.3125 at [0,0] in {report.runtime}"
        in report.sentence
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, np.ndarray]]:
    """A convolutional net that ONNX Runtime's quantizer wrote, the same file and the same sums
    on every processor.
    """
    return quantized(
        tmp_path_factory.mktemp("quantized"), "images", "QDQ", "i8", "i8", False, seven_bits=True
    )


def one_step_up(*arguments: Any) -> RuntimeAnswer:
    """Answer as the runtime does, with the int8 values of the last quantization one step higher."""
    answer = ask(*arguments)
    last = max(
        (probe for probe, value in answer.values.items() if value.dtype == np.int8),
        key=lambda probe: probe.position,
    )
    value = answer.values[last]
    return replace(
        answer,
        values={**answer.values, last: value + (value < np.iinfo(np.int8).max).astype(np.int8)},
    )


def test_a_quantized_net_agrees(
    pictures: tuple[Path, Mapping[str, np.ndarray]], tmp_path: Path
) -> None:
    path, inputs = pictures
    model = onnx.load(path)
    report = compared(tmp_path, model, model, inputs)
    assert report.agrees, report.sentence


def test_a_quantized_net_agrees_within_one_quantum(
    pictures: tuple[Path, Mapping[str, np.ndarray]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Show a step that a runtime may take on one processor and not on another."""
    path, inputs = pictures
    model = onnx.load(path)
    monkeypatch.setattr(differ, "ask", one_step_up)
    report = compared(tmp_path, model, model, inputs)
    assert report.agrees, report.sentence
    assert report.quanta is not None
    assert report.quanta.element_type == "int8"
    assert "within one quantum of int8" in report.sentence


def test_a_quantized_net_with_another_weight_differs(
    pictures: tuple[Path, Mapping[str, np.ndarray]], tmp_path: Path
) -> None:
    path, inputs = pictures
    model = onnx.load(path)
    weight = next(
        one.name
        for one in model.graph.initializer
        if one.data_type == onnx.TensorProto.INT8 and len(one.dims) == 4
    )
    report = compared(tmp_path, model, changed(model, {weight: 5}), inputs)
    assert not report.agrees
    assert report.first is not None


def test_the_command_exits_with_0_and_tells(
    pictures: tuple[Path, Mapping[str, np.ndarray]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, inputs = pictures
    monkeypatch.setattr(differ, "ask", one_step_up)
    np.savez(tmp_path / "in.npz", allow_pickle=False, **inputs)
    assert main(["compare", str(path), "--inputs", str(tmp_path / "in.npz"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["agrees"] is True
    assert told["quanta"]["element_type"] == "int8"
    assert told["quanta"]["elements"] >= 1
    assert told["quanta"]["first"]["address"].removeprefix("main/") in told["sentence"]


def test_integers_are_judged_by_a_run_that_is_asked_for_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where ONNX Runtime, asked for floats as well, fuses operations in one run and not in
    another: what it gives is of both.
    """
    model = parser.parse_model(INPUT + CHAIN)
    asked: list[int] = []

    def of_two_runs(*arguments: Any) -> RuntimeAnswer:
        answer = ask(*arguments)
        asked.append(len(answer.values))
        if len(asked) > 1:
            return answer
        quantized = (
            probe
            for probe, value in answer.values.items()
            if value.dtype == np.int8 and probe.position == 0
        )
        return replace(
            answer,
            values={
                **answer.values,
                **{probe: answer.values[probe] + np.int8(3) for probe in quantized},
            },
        )

    monkeypatch.setattr(differ, "ask", of_two_runs)
    report = compared(tmp_path, model, model, {"x": X})
    assert report.agrees, report.sentence
    assert asked[0] > asked[1] == 1


@pytest.mark.parametrize(("steps", "agrees"), [(1, True), (2, False)])
def test_floats_of_a_run_that_rounded_otherwise_are_one_quantum_away(
    steps: int, agrees: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above: what DequantizeLinear gives is then of other integers than those that the run
    for integers had.
    """
    model = parser.parse_model(INPUT + CHAIN)

    def of_other_integers(*arguments: Any) -> RuntimeAnswer:
        answer = ask(*arguments)
        floats = {probe: value for probe, value in answer.values.items() if probe.position == 4}
        return replace(
            answer,
            values={
                **answer.values,
                **{probe: value + np.float32(0.05 * steps) for probe, value in floats.items()},
            },
        )

    monkeypatch.setattr(differ, "ask", of_other_integers)
    report = compared(tmp_path, model, model, {"x": X})
    assert (report.first is None or report.first.address != "main/DequantizeLinear_4") == agrees, (
        report.sentence
    )


EDGE = """(float[4, 16] y, float[4, 16] z) <float factor = {1.0}> {
    scaled = Mul (x, factor)
    y = FUNCTION (scaled)
    z = Add (y, y)
}"""


@pytest.mark.parametrize(("function", "turns"), [("Floor", True), ("Round", False)])
def test_a_value_that_turns_on_the_rounding_of_its_inputs_says_so(
    function: str, turns: bool, tmp_path: Path
) -> None:
    """Whole numbers times 0.99999 are just below them."""
    model = parser.parse_model(INPUT + EDGE.replace("FUNCTION", function))
    report = compared(
        tmp_path,
        model,
        changed(model, {"factor": -1e-5}),
        {"x": np.arange(1, 65, dtype=np.float32).reshape(4, 16)},
    )
    assert (report.first is not None) is turns
    assert ("Floor_1 equals its value" in report.sentence) is turns, report.sentence


def test_a_rounding_that_the_runtime_leaves_out_is_named(tmp_path: Path) -> None:
    """ONNX Runtime computes Exp of f16 in f32, and drops its own cast to f16 together with that
    of the model from it.
    """
    text = """<ir_version: 9, opset_import: ["" : 21]> one (float16[4, 16] x) => (float[4, 16] y) {
        small = Exp (x)
        wide = Cast <to = 1> (small)
        y = Relu (wide)
    }"""
    path = tmp_path / "model.onnx"
    onnx.save(parser.parse_model(text), path)
    inputs = {"x": X.astype(np.float16)}
    debugger = loopscope.Debugger(loopscope.read_model(path), inputs)
    debugger.run()
    report = against(debugger, inputs, tolerance=1e-6)
    assert report.first is not None
    assert report.first.address == "main/Cast_1"
    assert (
        "omits the rounding to f16 before Cast_1: its values there are not representable in f16."
        in report.sentence
    )


SMALL = """(float[4, 16] y) <float factor = {1.0}, int64[2] same = {4, 16}> {
    scaled = Mul (x, factor)
    small = FUNCTION (scaled)
    y = Reshape (small, same)
}"""


@pytest.mark.parametrize(
    ("function", "address"),
    [("Sigmoid", ""), ("Exp", "main/Exp_1")],
)
def test_small_results_are_measured_against_the_bound_of_their_operation(
    function: str, address: str, tmp_path: Path
) -> None:
    """A factor of 1.0005 is within the tolerance; it changes e^-12 and a sigmoid there by six
    thousandths.
    """
    model = parser.parse_model(INPUT + SMALL.replace("FUNCTION", function))
    report = compared(
        tmp_path,
        model,
        changed(model, {"factor": 0.0005}),
        {"x": np.linspace(-13, -12, 64, dtype=np.float32).reshape(4, 16)},
    )
    assert (report.first.address if report.first else "") == address, report.sentence
    assert report.outputs_agree == (not address)
