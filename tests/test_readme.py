"""Tests of the Python in README and in the Python reference: each block runs as written."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops

ROOT = Path(__file__).parents[1]


def python_of(page: str) -> str:
    """Return the first Python block of a page."""
    match = re.search(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None
    return match[1]


def test_the_readme_opens_runs_and_explains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = builder.Graph("opened")
    x = graph.parameter("x", "f32", [2])
    (last,) = builder.for_loop(
        4, lambda i, total: ops.add(total, x * 3, name="Add_1"), [x], name="while_3"
    )
    loopscope.write_model(graph.model({"last": last}), "model.xml")
    exec(python_of("README.md"), {"array": np.array([0.5, 1.25], np.float32)})
    # In iteration 2 the values are ten times the first ones; only there is one above 10.
    assert capsys.readouterr().out.splitlines() == ["4", "[ 5.  12.5]", STOPPED]


STOPPED = "Running: 2 iterations of at most 4 finished so far."


def test_the_reference_builds_and_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[tuple[object, ...]] = []
    monkeypatch.setattr(loopscope, "show", lambda *arguments: shown.append(arguments))
    block = python_of("docs/reference/python.md")
    names: dict[str, object] = {}
    exec(block, names)
    assert capsys.readouterr().out.split() == re.findall(r"# (\d+)$", block, re.MULTILINE)
    assert shown == [(names["model"], [100])]
