"""Advice on loops: the benchmark's models are reported, and the recommended forms are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

import loopscope
from loopscope.checks import advice
from loopscope_samples import FOLDER
from tests.benchmarks.advice import PAIRS

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'


def reported(path: Path) -> dict[str, str]:
    """Return what each advice found in a model by its name, without those on single devices."""
    report = advice(loopscope.read_model(path))
    return {
        diagnostic.name: diagnostic.found
        for diagnostic in report.diagnostics
        if not diagnostic.is_habit
    }


@pytest.mark.parametrize("name", PAIRS)
def test_the_measured_forms(name: str, tmp_path: Path) -> None:
    model, recommended, _ = PAIRS[name]()
    (tmp_path / "reported.onnx").write_bytes(model)
    (tmp_path / "recommended.onnx").write_bytes(recommended)
    assert name in reported(tmp_path / "reported.onnx")
    assert name not in reported(tmp_path / "recommended.onnx")


SAMPLES = {
    "keras_gru": ("known-recurrence", "the cell of a GRU"),
    "growing_sequence": ("growing-state", "Concat on a back edge: n iterations"),
    "collatz": ("", ""),
    "linear_attention": ("", ""),  # OpenVINO fuses it
    "vanishing_gradient": ("", ""),  # elementwise: no operator computes it
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples(sample: str) -> None:
    name, words = SAMPLES[sample]
    findings = reported(FOLDER / sample / "model.xml")
    assert set(findings) == ({name} if name else set())
    assert words in findings.get(name, "")


STEP = "(int64 i, bool c, float[2] p) => (bool k, float[2] u)"
TEXTS = {
    # model: advice that it gets, apart from those about single devices
    "of a graph input, and large": (
        (
            "main (float[64,64] a, float[64] v, int64 n) => (y) "
            "{ y = Loop (n, , v) <body = b (int64 i, bool c, float[64] p) => (bool k, float[64] u) "
            "{ k = Identity (c) m = MatMul (a, a) u = MatMul (m, p) }> }"
        ),
        {"invariant-work"},
    ),
    "of constants: a runtime folds it": (
        (
            "main (float[64] v, int64 n) => (y) <float[1] z = {1}> "
            "{ y = Loop (n, , v) <body = b (int64 i, bool c, float[64] p) => (bool k, float[64] u) "
            "{ k = Identity (c) m = Exp (z) u = Mul (m, p) }> }"
        ),
        set(),
    ),
    "random: a new value in each iteration": (
        (
            "main (float[64,64] a, float[64] v, int64 n) => (y) "
            "{ y = Loop (n, , v) <body = b (int64 i, bool c, float[64] p) => (bool k, float[64] u) "
            "{ k = Identity (c) r = RandomNormalLike (a) u = MatMul (r, p) }> }"
        ),
        set(),
    ),
    "small": (
        (
            f"main (float[2] a, float[2] v, int64 n) => (y) {{ y = Loop (n, , v) <body = b {STEP} "
            "{ k = Identity (c) m = Mul (a, a) u = Mul (m, p) }> }"
        ),
        set(),
    ),
    "one iteration": (
        (
            "main (float[64,64] a, float[64] v) => (y) <int64 n = {1}> "
            "{ y = Loop (n, , v) <body = b (int64 i, bool c, float[64] p) => (bool k, float[64] u) "
            "{ k = Identity (c) m = MatMul (a, a) u = MatMul (m, p) }> }"
        ),
        set(),
    ),
    "a concatenation that is not carried": (
        (
            f"main (float[2] v, int64 n) => (y, z) {{ y, z = Loop (n, , v) <body = b {STEP[:-1]}, w) "
            "{ k = Identity (c) u = Neg (p) w = Concat <axis = 0> (p, u) }> }"
        ),
        set(),
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_models_in_text(name: str, tmp_path: Path) -> None:
    text, names = TEXTS[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(parser.parse_model(HEAD + text).SerializeToString())
    assert set(reported(path)) == names


def test_advice_on_single_devices_is_listed_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from loopscope_app.cli import main

    text = TEXTS["small"][0]
    path = tmp_path / "model.onnx"
    path.write_bytes(parser.parse_model(HEAD + text).SerializeToString())
    assert main(["check", str(path)]) == 0
    assert "unbounded-trips" not in capsys.readouterr().out
    assert main(["check", str(path), "--notes"]) == 0
    assert "unbounded-trips" in capsys.readouterr().out
