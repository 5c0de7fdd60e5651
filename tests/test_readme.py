"""The README's Python runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.checks.diagnostic import Report
from loopscope.explain.verdict import Verdict

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
CALLS = re.findall(r"`(loopscope\.\w+\([^`]+\))`", README)
"""Whole calls inside sentences."""


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What would have been shown; the code runs in an empty folder that holds the model it
    opens.
    """
    monkeypatch.chdir(tmp_path)
    graph = builder.Graph("opened")
    x = graph.parameter("x", "f32", [2])
    (last,) = builder.for_loop(
        4, lambda i, total: ops.add(total, x * 3, name="Add_1"), [x], name="while_3"
    )
    loopscope.write_model(graph.model({"last": last}), "model.xml")
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(loopscope, "show", lambda *given: calls.append(given))
    return calls


def ran(block: str, **names: Any) -> dict[str, Any]:
    exec(compile(block, "README.md", "exec"), names)
    return names


def test_opening_running_and_looking(
    shown: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    block = next(one for one in BLOCKS if "read_model" in one)
    names = ran(block, array=np.array([0.5, 1.25], np.float32))
    assert capsys.readouterr().out == "main/while_3 4 trip_count None\n"
    # In iteration 2 the values are ten times the first ones: only then one is above 10, which is
    # what the example waits for.
    assert names["debugger"].value("main/while_3[2]/body/Add_1").tolist() == [5, 12.5]


def test_building_and_what_is_said_about_it(
    shown: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    block = next(one for one in BLOCKS if "while_loop" in one)
    names = ran(block)
    printed = re.findall(r"# (\d+)$", block, re.MULTILINE)
    assert capsys.readouterr().out.split() == printed
    assert shown == [(names["model"], [100])]
    debugger, what_if = (loopscope.Debugger(names["model"], [start]) for start in (100, 50))
    for one in (debugger, what_if):
        one.run()
    results = [
        eval(call, {**names, "inputs": [100], "debugger": debugger, "what_if": what_if})
        for call in CALLS
    ]
    assert [float(one.outputs[0]) for one in results if isinstance(one, loopscope.Result)] == [12.5]
    assert [one.record.iterations for one in results if isinstance(one, Verdict)] == [7]
    assert [one.ok for one in results if isinstance(one, Report)] == [True]
    assert (tmp_path / "halve.xml").exists()
