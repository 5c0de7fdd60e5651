"""``loopscope run --save`` writes a run that opens again, wherever it came to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope.ops.stored import write
from loopscope_app.cli import main
from loopscope_samples import sample


def collatz(folder: Path) -> list[str]:
    found = sample("collatz")
    assert found is not None
    write(folder / "in.npz", {"0": np.array(7, np.int64)})
    return [
        "run",
        str(found.model),
        "--inputs",
        str(folder / "in.npz"),
        "--save",
        str(folder / "run.loopscope"),
    ]


def test_a_finished_run_and_one_at_its_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(collatz(tmp_path)) == 0
    assert "finished" in capsys.readouterr().out
    debugger = loopscope.load(tmp_path / "run.loopscope")
    assert debugger.state == "finished"
    assert [int(value) for value in debugger.result.outputs] == [16, 52]
    assert main([*collatz(tmp_path), "--iterations", "3"]) == 1
    assert loopscope.load(tmp_path / "run.loopscope").state == "limit"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--save", "run.zip"], "expected one that ends with .loopscope"),
        (["--save", "nowhere/run.loopscope"], "the folder 'nowhere' does not exist"),
    ],
)
def test_other_places_are_refused(
    more: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*collatz(tmp_path), *more]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--budget", "-1"], ["--budget", "much"], ["--fetch", "x"]])
def test_options_that_make_no_sense(more: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main([*collatz(tmp_path), *more])
