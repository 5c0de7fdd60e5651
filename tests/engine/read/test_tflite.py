"""TensorFlow Lite by its schema: loops, branches and variables run with TensorFlow's results;
damaged files are one sentence.
"""

from __future__ import annotations

import importlib.util
import random
import struct
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope.checks.diagnostic import Severity
from loopscope.errors import ReadError
from loopscope.read.file_limits import ReadLimits

FILES = Path(__file__).parent / "files" / "tflite"
ALL = sorted(path.stem for path in FILES.glob("*.tflite"))
SEEDS = 12


def _facts(name: str) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """The calls of a file, one after the other: what went in, and what TensorFlow's interpreter
    gave.
    """
    with np.load(FILES / f"{name}.npz") as stored:
        facts = dict(stored)
    calls = 1 + max(int(key.split("_")[1]) for key in facts)
    return [
        tuple(
            [facts[key] for key in sorted(facts) if key.startswith(f"{side}_{call}_")]
            for side in ("input", "output")
        )  # type: ignore[misc]
        for call in range(calls)
    ]


@pytest.mark.parametrize("name", ALL)
def test_a_file_runs_with_the_results_of_tensorflow(name: str) -> None:
    model = loopscope.read_model(FILES / f"{name}.tflite")
    session = loopscope.Session(model)
    for given, expected in _facts(name):
        outputs = session.run(given).outputs
        assert [(output.dtype, output.shape) for output in outputs] == [
            (array.dtype, array.shape) for array in expected
        ]
        for output, array in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(output, array, rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_a_file_has_no_findings_but_notes(name: str) -> None:
    report = loopscope.check(loopscope.read_model((FILES / f"{name}.tflite").read_bytes()))
    assert report.ok
    findings = [finding for finding in report.diagnostics if not finding.runtimes]
    assert {finding.severity for finding in findings} <= {Severity.NOTE}


def test_loops_and_branches_are_called_by_their_scope() -> None:
    model = loopscope.read_model(FILES / "nested_while.tflite")
    assert model.converted_from == "a TensorFlow Lite model, read by its schema"
    records = loopscope.run(model, _facts("nested_while")[0][0]).control_flow
    assert {record.address.split("/")[-1].rstrip("1") for record in records} == {
        "while",
        "while%2Fwhile",
        "while%2Fcond",
    }


def test_a_variable_is_read_and_assigned_by_its_name() -> None:
    nodes = loopscope.read_model(FILES / "variable.tflite").graph.nodes
    variables = [
        (node.type, node.attributes["variable_id"])
        for node in nodes
        if node.type in ("ReadValue", "Assign")
    ]
    assert [kind for kind, _ in variables] == ["ReadValue", "Assign"]
    assert len({name for _, name in variables}) == 1


def test_operators_without_a_translation_are_openvinos() -> None:
    model = loopscope.read_model(FILES / "operators_of_openvino.tflite")
    assert "converted by OpenVINO" in model.converted_from
    types = {node.type for body in model.graph.nodes[-2].bodies for node in body.graph.nodes}
    assert {"Interpolate", "SpaceToDepth", "Convolution"} <= types


def test_without_openvino_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    model = loopscope.read_model(FILES / "operators_of_openvino.tflite")
    assert any("RESIZE_BILINEAR, SPACE_TO_DEPTH" in note for note in model.notes)
    assert any("pip install openvino" in note for note in model.notes)
    assert not loopscope.check(model).ok
    assert loopscope.read_model(FILES / "variable.tflite").notes == ()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_damaged_file_is_one_sentence(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    chance = random.Random(seed)
    whole = (FILES / f"{ALL[seed % len(ALL)]}.tflite").read_bytes()
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 2, 8))):
            place = chance.randrange(8, len(damaged) - 4)
            if chance.random() < 0.5:
                damaged[place] = chance.randrange(256)
            else:
                struct.pack_into(
                    "<i",
                    damaged,
                    place & ~3,
                    chance.choice((0, 1, -1, 2**31 - 1, -(2**31), 7, 65535)),
                )
        reason = _reason(bytes(damaged))
        assert reason == "" or reason.startswith("this is a TensorFlow Lite model; ")
        assert "\n" not in reason


def _reason(content: bytes) -> str:
    try:
        loopscope.read_model(content)
    except ReadError as error:
        return str(error)
    return ""


def test_a_file_cut_anywhere_is_refused() -> None:
    whole = (FILES / "variable.tflite").read_bytes()
    for length in range(8, len(whole) - 64, 97):
        with pytest.raises(ReadError, match="this is a TensorFlow Lite model"):
            loopscope.read_model(whole[:length])


def test_a_file_is_bounded_by_the_limits() -> None:
    content = (FILES / "operators.tflite").read_bytes()
    with pytest.raises(ReadError, match="more nodes than 100, the limit 'nodes'"):
        loopscope.read_model(content, limits=ReadLimits(nodes=100))
