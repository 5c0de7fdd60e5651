"""``loopscope run`` for a few tensors, and what it tells of what it left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope_app.cli import main
from tests.app.command.test_cli import strictly


def twos(path: Path) -> Path:
    """A loop with two carried values of which the first is a counter, one expression twice, and
    one operation on constants.
    """
    graph = builder.Graph("twos")
    x = graph.parameter("x", "f32", [2])
    i, out = builder.while_loop(
        lambda i, v: i < 5, lambda i, v: (i + 1, v + 1.0), (graph.constant(0), x)
    )
    known = graph.constant([1.0, 2.0]) * 3.0
    loopscope.write_model(
        graph.model(
            {"i": i, "out": out, "both": builder.ops.tanh(x) + builder.ops.tanh(x) + known}
        ),
        path / "twos.xml",
    )
    np.savez(path / "in.npz", x=np.zeros(2, np.float32))
    return path


def optimised(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    return strictly(capsys.readouterr().out)


def test_what_a_run_leaves_out_is_told_and_can_be_switched_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", str(twos(tmp_path) / "twos.xml"), "--inputs", str(tmp_path / "in.npz")]
    told = optimised(words, capsys)["optimised"]
    assert told == {
        "removed": [],
        "folded": ["main/Multiply"],
        "computed_once": [["main/Tanh_1", "main/Tanh"]],
    }
    nothing: dict[str, list[str]] = {"removed": [], "folded": [], "computed_once": []}
    assert optimised([*words, "--no-fold", "--no-cse"], capsys)["optimised"] == nothing
    fetched = optimised([*words, "--fetch", "i"], capsys)
    assert [(one["name"], one["value"]) for one in fetched["outputs"]] == [("i", 5)]
    assert "main/while/body/Add_1" in fetched["optimised"]["removed"]
    assert optimised([*words, "--fetch", "i", "--no-prune"], capsys)["optimised"]["removed"] == []
    assert (
        main(
            [*words, "--fetch", "main/while[2]/body/Add_1", "--outputs", str(tmp_path / "out.npz")]
        )
        == 0
    )
    text = capsys.readouterr().out
    assert "removed as not needed: 5 operations" in text
    with np.load(tmp_path / "out.npz", allow_pickle=False) as stored:
        assert [array.tolist() for array in stored.values()] == [[3, 3]]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "folded: 1 operation on constants (main/Multiply)" in text
    assert "computed once: main/Tanh_1 with main/Tanh" in text


def test_a_fetch_that_names_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "run",
                str(twos(tmp_path) / "twos.xml"),
                "--inputs",
                str(tmp_path / "in.npz"),
                "--fetch",
                "nope",
            ]
        )
        == 2
    )
    assert "there is no tensor 'main/nope'" in capsys.readouterr().err
