"""``loopscope gradients`` writes a model with its gradients, runs it, and checks it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import engine
from app.cli import main
from engine import build
from engine.build import ops


@pytest.fixture
def training(tmp_path: Path) -> Path:
    graph = build.Graph("training")
    x, w = graph.parameter("x", "f32", [2, 3]), graph.constant(np.eye(3, dtype=np.float32), name="layer/w")
    (last,) = build.for_loop(3, lambda i, h: ops.tanh(h @ w), [x])
    engine.write_model(graph.model({"loss": ops.reduce_sum(last, [0, 1])}), tmp_path / "model.xml")
    return tmp_path / "model.xml"


def test_a_model_is_written_with_its_gradients(training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.xml"
    words = ["gradients", str(training), "--of", "loss", "--with-respect-to", "x,main/layer%2Fw", "-o", str(out), "--check"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "gradient of loss with respect to x  f32[2,3]\n" in printed
    assert "the gradient agrees with central differences in 15 elements" in printed
    names = [name for one in engine.read_model(out).outputs for name in one.names]
    assert names[-2:] == ["gradient of loss with respect to x", "gradient of loss with respect to main/layer%2Fw"]


def test_inputs_run_it(training: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "in.npz", x=np.zeros((2, 3), np.float32))
    assert main(["gradients", str(training), "--of", "loss", "--with-respect-to", "x", "--inputs", str(tmp_path / "in.npz")]) == 0
    printed = capsys.readouterr().out
    assert "main/for: 3 iterations" in printed
    assert "gradient of loss with respect to x  f32 [2, 3]  [[1. 1. 1.]" in printed.partition("outputs")[2]
    assert "`backward/for/Loop` walks `for` back: its iteration 0 walks back iteration 2, the last of 3.\n" in printed
    assert "  adjoint of `h`: flows: from 2.4 at the end to 2.4 in iteration 0; it stays about the same\n" in printed


@pytest.mark.parametrize(
    ("of", "with_respect_to", "said"),
    [
        ("lost", "x", "there is no tensor 'main/lost'"),
        ("loss", "main/for/body/MatMul", "is in a body"),
        ("loss", "main/for_2", "there is no tensor 'main/for_2'"),
    ],
)
def test_names_that_mean_nothing_are_refused(
    training: Path, capsys: pytest.CaptureFixture[str], of: str, with_respect_to: str, said: str
) -> None:
    assert main(["gradients", str(training), "--of", of, "--with-respect-to", with_respect_to]) == 2
    assert said in capsys.readouterr().err
