"""``loopscope check``: what it tells, to whom, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx import parser

from loopscope.checks.rules import ADVICE, BY_CODE
from loopscope_app.cli import main
from tests.engine.checks.samples import TWO_RANKS


def test_a_check_tells_of_a_runtime_where_it_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(parser.parse_model(TWO_RANKS).SerializeToString())
    assert main(["check", str(file), "--strict"]) == 0
    assert capsys.readouterr().out == "No problems found.\n"
    assert main(["check", str(file), "--for", "openvino"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("The model can be run; 2 warnings.")
    assert (
        "warning LS607 branch-output-ranks at 2 places: main/If_0 output 0 and main/If_1 output 0"
        in out
    )
    assert main(["check", str(file), "--for", "openvino", "--strict", "--each"]) == 1
    assert capsys.readouterr().out.count("LS607") == 2
    assert main(["check", str(file), "--for", "openvino", "--for", "onnxruntime", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["errors"], found["warnings"], found["notes"], found["for"]) == (
        0,
        2,
        0,
        ["onnxruntime", "openvino"],
    )
    assert [(one["severity"], one["runtimes"]) for one in found["diagnostics"]] == [
        ("warning", ["openvino"])
    ] * 2


@pytest.mark.parametrize(
    ("unused", "line"),
    [
        (0, ""),
        (1, "\nNot listed: 1 note about parts that exporters leave unused; use --notes.\n"),
        (3, "\nNot listed: 3 notes about parts that exporters leave unused; use --notes.\n"),
    ],
)
def test_habits_of_exporters_are_listed_where_they_are_asked_for(
    unused: int, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = " ".join(f"t{number} = Neg (x)" for number in range(unused))
    text = f'<ir_version: 8, opset_import: ["" : 17]>\nmain (float[2] x) => (float[2] y) {{ {nodes} y = Add (x, x) }}'
    file = tmp_path / "model.onnx"
    file.write_bytes(parser.parse_model(text).SerializeToString())
    assert main(["check", str(file)]) == 0
    assert capsys.readouterr().out == f"No problems found.\n{line}"
    assert main(["check", str(file), "--notes", "--each"]) == 0
    assert capsys.readouterr().out.count("note LS806") == unused


def test_rules_are_explained_in_any_case_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "ls404"]) == 0
    assert capsys.readouterr().out.startswith("LS404 outer-input-unused (error)")
    assert main(["check", "--explain"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == [*BY_CODE, *(rule.code for rule in ADVICE)]
    assert "LS404  error    An input of a Loop or TensorIterator is not mapped to the body." in rows
    assert main(["check", "--explain", "LS0"]) == 2
    assert (
        capsys.readouterr().err
        == "loopscope: there is no rule 'LS0': `loopscope check --explain` lists all rules\n"
    )
