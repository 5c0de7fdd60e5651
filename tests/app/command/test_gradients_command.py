"""``loopscope gradients`` writes a model with its gradients, runs it, and checks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope_app.cli import main
from loopscope_samples import FOLDER
from tests.app.command.test_answers import conforms
from tests.app.command.test_cli import strictly


@pytest.fixture
def training(tmp_path: Path) -> Path:
    graph = builder.Graph("training")
    x, w = (
        graph.parameter("x", "f32", [2, 3]),
        graph.constant(np.eye(3, dtype=np.float32), name="layer/w"),
    )
    (last,) = builder.for_loop(3, lambda i, h: ops.tanh(h @ w), [x])
    steps = ops.relu(graph.constant(np.int64(3)), name="steps")
    loopscope.write_model(
        graph.model({"loss": ops.reduce_sum(last, [0, 1]), "count": steps}), tmp_path / "model.xml"
    )
    return tmp_path / "model.xml"


def test_a_model_is_written_with_its_gradients(
    training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.xml"
    words = [
        "gradients",
        str(training),
        "--of",
        "loss",
        "--with-respect-to",
        "x,main/layer%2Fw",
        "-o",
        str(out),
        "--check",
    ]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "gradient of loss with respect to x  f32[2,3]\n" in printed
    assert "the gradient agrees with central differences in 15 elements" in printed
    names = [name for one in loopscope.read_model(out).outputs for name in one.names]
    assert names[-2:] == [
        "gradient of loss with respect to x",
        "gradient of loss with respect to main/layer%2Fw",
    ]


def test_inputs_run_it(training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "in.npz", x=np.zeros((2, 3), np.float32))
    assert (
        main(
            [
                "gradients",
                str(training),
                "--of",
                "loss",
                "--with-respect-to",
                "x",
                "--inputs",
                str(tmp_path / "in.npz"),
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "main/for: 3 iterations" in printed
    assert (
        "gradient of loss with respect to x  f32 [2, 3]  [[1. 1. 1.]"
        in printed.partition("outputs")[2]
    )
    assert (
        "`backward/for/Loop` computes the gradient of `for`: its iteration 0 belongs to iteration 2, the last of 3.\n"
        in printed
    )
    assert (
        "  gradient of `h`: flows: from 2.4 at the end to 2.4 in iteration 0; it stays about the same\n"
        in printed
    )


@pytest.mark.parametrize(
    ("of", "with_respect_to", "said"),
    [
        ("lost", "x", "there is no tensor 'main/lost'"),
        (
            "lost",
            "x",
            "give a tensor name, the name of a node of the outermost graph, or an address; the model's inputs are 'x', its outputs 'loss'",
        ),
        ("loss", "main/for/body/MatMul", "is in a body"),
        ("loss", "main/for_2", "there is no tensor 'main/for_2'"),
        (
            "loss",
            "main/steps",
            "with_respect_to names 'main/steps', which is i64[]: only f64, f32, f16 and bf16 have derivatives",
        ),
        ("steps", "x", "of names 'steps', which is i64[]: only f64"),
    ],
)
def test_names_that_mean_nothing_are_refused(
    training: Path, capsys: pytest.CaptureFixture[str], of: str, with_respect_to: str, said: str
) -> None:
    assert main(["gradients", str(training), "--of", of, "--with-respect-to", with_respect_to]) == 2
    assert said in capsys.readouterr().err


def answered(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["gradients", *words, "--json"])
    told = strictly(capsys.readouterr().out)
    conforms(told, "refused" if code == 2 else "gradients")
    return code, told


def test_json_tells_the_gradients_and_how_they_came_back(
    training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "in.npz", x=np.zeros((2, 3), np.float32))
    words = [str(training), "--of", "loss", "--with-respect-to", "x,main/layer%2Fw"]
    code, told = answered(
        [*words, "--inputs", str(tmp_path / "in.npz"), "--check", "-o", str(tmp_path / "out.xml")],
        capsys,
    )
    assert (code, told["state"], told["written"]) == (0, "finished", str(tmp_path / "out.xml"))
    first, second = told["gradients"]
    assert (first["name"], first["value"]["value"]) == (
        "gradient of loss with respect to x",
        [[1.0] * 3] * 2,
    )
    assert (second["shape"], second["norm"]) == ("[3,3]", 0.0)
    (walk,) = told["loops"]
    assert (walk["forward"], walk["iterations"], walk["walked"]) == ("main/for", 3, 3)
    (adjoint,) = walk["adjoints"]
    assert (adjoint["name"], adjoint["iterations"], adjoint["verdict"]) == (
        "h",
        [0, 1, 2, 3],
        "flows",
    )
    assert adjoint["factor"] == pytest.approx(1)
    np.testing.assert_allclose(adjoint["norms"], np.sqrt([6.0] * 4), rtol=1e-6)
    (shared,) = walk["contributions"]
    assert (shared["iterations"], shared["shares"]) == (
        [0, 1, 2],
        ["NaN"] * 3,
    )  # of a gradient that is 0
    assert (told["check"]["ok"], told["check"]["compared"], told["check"]["wrong"]) == (
        True,
        15,
        [],
    )
    assert [one["name"] for one in told["run"]["outputs"]][
        -1
    ] == "gradient of loss with respect to main/layer%2Fw"


def test_json_without_inputs_tells_what_was_made(
    training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = answered([str(training), "--of", "loss", "--with-respect-to", "x"], capsys)
    made = {"name": "gradient of loss with respect to x", "element_type": "f32", "shape": "[2,3]"}
    assert (code, told) == (0, {"schema": 1, "state": "made", "gradients": [made]})


def test_json_tells_branches_and_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    sample = FOLDER / "branch_not_taken"
    words = [
        str(sample / "model.xml"),
        "--of",
        "loss",
        "--inputs",
        str(sample / "inputs" / "warm.npz"),
        "--with-respect-to",
    ]
    code, told = answered([*words, "cold_weight"], capsys)
    assert code == 0
    assert told["gradients"][0]["norm"] == 0
    assert {one["sentence"] for one in told["branches"]} == {
        "does not flow: only the then branch ran, and `cold_weight` is used in else"
    }
    code, told = answered([*words, "nothing"], capsys)
    assert (code, told["state"]) == (2, "refused")
    assert "nothing" in told["message"]


def test_json_tells_a_run_that_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = builder.Graph("failing")
    x, start = graph.parameter("x", "f32", [None]), graph.parameter("start", "i64", [])
    (last,) = builder.for_loop(
        3,
        lambda i, h: h * ops.gather_nd(x, ops.unsqueeze(start + i, np.array([0]))),
        [graph.constant(np.float32(1))],
    )
    loopscope.write_model(graph.model({"loss": last}), tmp_path / "m.xml")
    np.savez(tmp_path / "in.npz", x=np.ones(2, np.float32), start=np.int64(0))
    words = [
        str(tmp_path / "m.xml"),
        "--of",
        "loss",
        "--with-respect-to",
        "x",
        "--inputs",
        str(tmp_path / "in.npz"),
    ]
    code, told = answered(words, capsys)
    assert (code, told["state"], told["run"]["state"]) == (1, "failed", "failed")
    assert "norm" not in told["gradients"][0]


def test_a_gradient_that_is_cut_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = builder.Graph("steps").parameter("x", "f32", [3])
    loopscope.write_model(x.graph.model({"y": ops.floor(x)}), tmp_path / "model.xml")
    words = [str(tmp_path / "model.xml"), "--of", "y", "--with-respect-to", "x"]
    said = "The gradient of 'y' with respect to 'x' is zero everywhere: every way between them is cut, by Floor-1 'main/Floor', which "
    assert main(["gradients", *words]) == 0
    assert f"\n{said}changes only in steps.\n" in capsys.readouterr().out
    assert answered(words, capsys)[1]["notes"] == [f"{said}changes only in steps."]
