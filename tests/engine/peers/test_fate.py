"""What a runtime makes of loops and branches is read from what it runs; what cannot be read is
said to be not known.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from onnx import parser
from openvino import opset15

import loopscope
from loopscope.errors import EngineError
from loopscope.peers import RuntimeFate, fates
from loopscope.peers.fate import Layer, fates_of
from loopscope_app import cli
from loopscope_samples import FOLDER
from loopscope_samples.recipes import linear_attention


def saved(model: ov.Model, folder: Path) -> loopscope.Model:
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    return loopscope.read_model(folder / "model.xml")


def branches(condition: bool | None) -> ov.Model:
    """An If on a constant, or on an input, that takes tanh or exp."""
    x = opset15.parameter([3], ov.Type.f32, name="x")
    given = (
        opset15.parameter([], ov.Type.boolean, name="condition")
        if condition is None
        else opset15.constant(condition)
    )
    chosen = opset15.if_op(given)
    chosen.set_friendly_name("which")
    bodies = []
    for call, name in ((opset15.tanh, "squash"), (opset15.exp, "grow")):
        inner = opset15.parameter([3], ov.Type.f32)
        bodies.append((ov.Model([opset15.result(call(inner, name=name))], [inner]), inner))
    chosen.set_then_body(bodies[0][0])
    chosen.set_else_body(bodies[1][0])
    chosen.set_input(x.output(0), bodies[0][1], bodies[1][1])
    out = chosen.set_output(bodies[0][0].results[0], bodies[1][0].results[0])
    return ov.Model([opset15.result(out)], [x, *([given] if condition is None else [])])


@pytest.mark.parametrize(
    ("condition", "became", "runs_as"),
    [(None, "kept", "If"), (True, "folded", "then branch"), (False, "folded", "else branch")],
)
def test_branches_in_openvino(
    condition: bool | None, became: str, runs_as: str, tmp_path: Path
) -> None:
    (fate,) = fates(saved(branches(condition), tmp_path)).regions
    assert (fate.address, fate.operation, fate.became, fate.runs_as) == (
        "main/which",
        "If",
        became,
        runs_as,
    )


@pytest.mark.parametrize("trips", [None, 5])
def test_linear_attention_is_one_operation_in_openvino(trips: int | None, tmp_path: Path) -> None:
    found = fates(saved(linear_attention.model(trips), tmp_path))
    assert found.runtime.startswith("OpenVINO 20")
    (fate,) = found.regions
    assert (fate.became, fate.runs_as, fate.badge) == (
        "replaced",
        "GatedDeltaNet",
        "runs as GatedDeltaNet",
    )
    assert fate.sentence == f"{found.runtime} runs 'for_each_token' as one GatedDeltaNet."


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (
            "collatz",
            [("main/while_not_one", "kept"), ("main/while_not_one/body/if_even", "not told")],
        ),
        (
            "growing_sequence",
            [("main/while_below_limit", "kept")],
        ),  # which has only one of its outputs left there
        ("walking_backwards", [("main/from_last_to_first", "kept")]),
    ],
)
def test_samples_in_openvino(sample: str, expected: list[tuple[str, str]]) -> None:
    found = fates(loopscope.read_model(FOLDER / sample / "model.xml")).regions
    assert [(one.address, one.became) for one in found] == expected


_NESTED = """<ir_version: 8, opset_import: ["" : 17]>
nested (int64 count, float[3] x) => (float[3] y) {
  always = Constant <value = bool {1}> ()
  y = Loop (count, , x) <body = step (int64 i, bool go, float[3] v) => (bool again, float[3] w) {
    again = Identity (go)
    w = If (CONDITION) <then_branch = grow () => (float[3] p) {
      e = Exp (v)
      p = Neg (e)
    }, else_branch = shrink () => (float[3] q) {
      t = Tanh (v)
      q = Neg (t)
    }>
  }>
}"""


@pytest.mark.parametrize(
    ("condition", "inner"), [("go", ("kept", "If")), ("always", ("folded", "then branch"))]
)
def test_nests_in_onnxruntime(condition: str, inner: tuple[str, str]) -> None:
    document = parser.parse_model(_NESTED.replace("CONDITION", condition)).SerializeToString()
    found = fates(loopscope.read_model(document), document=document)
    assert found.runtime.startswith("ONNX Runtime ")
    assert [(one.operation, one.became, one.runs_as) for one in found.regions] == [
        ("Loop", "kept", "Loop"),
        ("If", *inner),
    ]


def of(layers: list[Layer]) -> list[RuntimeFate]:
    return list(
        fates_of(loopscope.read_model(FOLDER / "collatz" / "model.xml"), "A runtime 1", layers)
    )


@pytest.mark.parametrize(
    ("layers", "became", "inside"),
    [
        (
            [],
            "not found",
            "'while_not_one', which holds it, was not found in what A runtime 1 runs",
        ),
        (
            [Layer("a", "Fused", ("b", "while_not_one"))],
            "merged",
            "A runtime 1 runs 'while_not_one', which holds it, as Fused",
        ),
        (
            [Layer("a", "Add", (f"while_not_one/{n}/Add",)) for n in (1, 2)],
            "unrolled",
            "A runtime 1 unrolled 'while_not_one', which holds it",
        ),
        (
            [Layer("a", "Loop", ("while_not_one",)), Layer("b", "Loop", ("while_not_one",))],
            "not found",
            "was not found",
        ),
    ],
)
def test_what_is_not_under_its_name(layers: list[Layer], became: str, inside: str) -> None:
    outer, inner = of(layers)
    assert outer.became == became
    assert inner.became == "not told"
    assert inside in inner.sentence


def test_a_device_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(EngineError, match="OpenVINO does not compile the model for NOWHERE: "):
        fates(loopscope.read_model(FOLDER / "collatz" / "model.xml"), device="NOWHERE")


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    sample = str(FOLDER / "linear_attention" / "model.xml")
    assert cli.main(["fate", sample]) == 0
    assert "main/for_each_token: OpenVINO" in capsys.readouterr().out
    assert cli.main(["fate", sample, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["device"] == "CPU"
    assert [(one["address"], one["became"], one["runs_as"]) for one in told["regions"]] == [
        ("main/for_each_token", "replaced", "GatedDeltaNet")
    ]
    assert cli.main(["fate", sample, "--json", "--device", "NOWHERE"]) == 2
    assert json.loads(capsys.readouterr().out)["regions"] is None


def test_the_fused_layer_ignores_its_trip_count(tmp_path: Path) -> None:
    """What LS930 warns of: OpenVINO reads all twelve slices, where the Loop asks for five."""
    model = linear_attention.model(5)
    inputs = dict(linear_attention.inputs(12, seed=1))
    ours = loopscope.run(saved(model, tmp_path), inputs).named["attention"]
    theirs = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(inputs)[
        "attention"
    ]
    assert not ours[:, :, 5:].any()
    assert np.abs(theirs[:, :, 5:]).max() > 0.1
