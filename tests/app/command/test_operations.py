"""``loopscope ops``: the table, and the texts of one operation."""

from __future__ import annotations

import pytest

from loopscope_app.cli import main


def test_ops_lists_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops"]) == 0
    table = capsys.readouterr().out
    assert "Loop" in table
    assert "arithmetic" in table


def test_ops_lists_what_onnx_runtime_adds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "com.microsoft"]) == 0
    table = capsys.readouterr().out
    assert "QuickGelu" in table
    assert "arithmetic" not in table


def test_ops_explains_an_operation_of_onnx(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "lstm"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "LSTM-14, 22 of ai.onnx" in lines
    assert any(line.startswith("    initial_h: ") for line in lines)
