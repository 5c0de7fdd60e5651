"""What stands beside a source: the branches that the runtime took, and a run of ours that comes
to no end.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.executor.machine.limits import Limits
from loopscope.peers import Source, source_alone
from loopscope.peers.source.compare_source import reported, runtime_side
from loopscope_app.cli import main
from tests.engine.peers.test_source import finished, named


@pytest.mark.parametrize(
    ("program", "name", "told"),
    [
        ("choosing", "then", ["then", "not known"]),
        ("choosing", "else", ["else", "not known"]),
        ("alternating", "four", ["4 iterations", "then, else, then, else"]),
        ("alternating", "none", ["not known", "not known"]),
        ("tf_nested", "four", ["4 iterations", "then, else, then, else", "not known"]),
    ],
)
def test_branches_of_the_runtime_are_what_their_conditions_were_there(
    program: str, name: str, told: list[str]
) -> None:
    case = named(program, name)
    run = finished(case.model, case.inputs)
    report = reported(
        program, case.did(), run, runtime_side(run, case.inputs, tolerance=1e-3, seconds=120)
    )
    assert [row[3] for row in report.table()[1:]] == told
    unknown = "it gives no values of what did not run here, and no counts of loops inside branches."
    assert report.sentence.endswith(unknown) == ("not known" in told)


def test_the_branch_of_a_condition_that_is_an_input() -> None:
    """No operation computes it, so that the runtime is not asked for it: it is what both are
    given.
    """
    graph = builder.Graph("given")
    which = graph.parameter("which", "boolean", [])
    x = graph.parameter("x", "f32", [2])
    made = graph.model({"y": builder.cond(which, lambda: x * 2.0, lambda: x - 1.0)})
    inputs = {"which": np.array(False), "x": np.ones(2, np.float32)}
    debugger = loopscope.Debugger(made, inputs)
    debugger.run()
    counts = runtime_side(debugger, inputs, tolerance=1e-3, seconds=120).counts
    assert list(counts.values()) == [(0,)]


@pytest.mark.parametrize("installed", [True, False])
def test_the_source_is_told_where_our_run_comes_to_no_end(
    installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = named("doubling", "three")
    run = loopscope.Debugger(
        loopscope.read_model(case.model), case.inputs, limits=loopscope.Limits(iterations=1)
    )
    run.run()
    monkeypatch.setattr("loopscope.peers.separate_results.run_source", lambda *_: case.did())
    if not installed:
        monkeypatch.setattr("loopscope.peers.separate_results.runtime_of", lambda _: "")
    report = source_alone(run, Source("pt2", "doubling.pt2"), case.inputs)
    runs = (
        f"{report.runtime} runs the file too."
        if installed
        else "OpenVINO is not beside it: not installed."
    )
    assert report.sentence == (
        f"The run of the file did not finish in Loopscope: {run.failure}. torch 2.13.0 runs the source. {runs}"
    )
    assert report.runtime.startswith("OpenVINO 20") == installed
    assert report.table() == (
        ("", "torch 2.13.0", "Loopscope", report.runtime),
        ("while_loop", "3 iterations", "", ""),
        ("output getitem:0", "0", "did not finish", "0" if installed else ""),
        (
            "output getitem_1:0",
            "[4] 8, -16, 24, 4",
            "did not finish",
            "[4] 8, -16, 24, 4" if installed else "",
        ),
    )


def test_the_command_tells_the_source_where_the_run_does_not_finish(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = named("doubling", "three")
    np.savez(tmp_path / "in.npz", n=case.inputs["n"], x=case.inputs["x"])
    (tmp_path / "source.pt2").touch()
    monkeypatch.setattr("loopscope.peers.separate_results.run_source", lambda *_: case.did())
    monkeypatch.setattr(
        "loopscope_app.command.compare.loopscope.Limits", lambda **_: Limits(iterations=1)
    )
    words = [
        "compare",
        str(case.model),
        "--source",
        str(tmp_path / "source.pt2"),
        "--inputs",
        str(tmp_path / "in.npz"),
    ]
    assert main(words) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("The run of the file did not finish in Loopscope: ")
    assert lines[2].split() == ["while_loop", "3", "iterations"]
    assert main([*words, "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert (told["agrees"], told["regions"]) == (None, [["while_loop", "3 iterations"]])
