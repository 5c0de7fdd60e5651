"""``loopscope sweep`` as it is typed: words in, a file or lines out, exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import loopscope
from loopscope import builder
from loopscope.sweeps import Sweep
from loopscope_app.cli import main

COLLATZ = "sample_models/collatz/model.xml"


def test_rows_and_summary_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", COLLATZ, "--inputs", "number=1..30", "--limit", "28"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith(
        "2: number 3, iterations main/while_not_one 7, ended main/while_not_one condition, then main/"
    )
    assert lines[10] == "... 18 more; --out runs.parquet stores all of them"
    assert "most in sample 26 (number = 27)" in lines[12]


def test_json_holds_the_rows_where_there_is_no_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert (
        main(
            [
                "sweep",
                COLLATZ,
                "--inputs",
                "number=3,27",
                "--json",
                "--no-seconds",
                "--column",
                "main/while_not_one",
            ]
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["complete"]
    assert [row["output steps"] for row in told["rows"]] == [7, 111]
    assert told["summary"]["loops"]["main/while_not_one"]["most_inputs"] == {"number": 27}
    out = tmp_path / "runs.parquet"
    assert main(["sweep", COLLATZ, "--inputs", "number=3,27", "--json", "--out", str(out)]) == 0
    assert "rows" not in json.loads(capsys.readouterr().out)
    assert parquet.read_table(out)["output steps"].to_pylist() == [7, 111]


@pytest.mark.parametrize("others", ["x[3]=0.5", "random seed=3", "file"])
def test_inputs_that_a_table_leaves_out_are_the_same_in_all_samples(
    others: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table has columns for scalars only, and most models take more than those."""
    graph = builder.Graph("two inputs")
    n, x = graph.parameter("n", "i32", []), graph.parameter("x", "f32", [3])
    (last,) = builder.while_loop(lambda v, _: v > 0, lambda v, kept: [v - 1, kept], [n, x])[:1]
    loopscope.write_model(
        graph.model({"last": last, "same": builder.ops.reduce_sum(x, [0])}), tmp_path / "m.xml"
    )
    (tmp_path / "n.csv").write_text("n\n3\n7\n0\n", encoding="utf-8")
    words = ["sweep", str(tmp_path / "m.xml"), "--inputs", str(tmp_path / "n.csv")]
    assert main(words) == 2
    assert (
        "all samples leave out 'x'; the model's inputs are 0: 'n' i32[], 1: 'x' f32[3]; --others INPUTS"
        in capsys.readouterr().err
    )
    if others == "file":
        others = str(tmp_path / "x.npz")
        np.savez(others, x=np.ones(3, np.float32))
    assert main([*words, "--others", others]) == 0
    assert "0 to 7 iterations, 3.3 a run, most in sample 1 (n = 7)" in capsys.readouterr().out


def test_an_input_that_only_some_samples_leave_out_fails_in_their_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "0.npz")
    np.savez(tmp_path / "1.npz", number=3)
    assert main(["sweep", COLLATZ, "--inputs", str(tmp_path)]) == 1
    assert (
        "the first that failed is sample 0: no value is given for 'number'"
        in capsys.readouterr().out
    )


def test_a_file_that_cannot_be_read_fails_in_its_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One failing input never ends a sweep."""
    (tmp_path / "0.npz").write_text("junk", encoding="utf-8")
    np.savez(tmp_path / "1.npz", number=3)
    np.savez(tmp_path / "2.npz", nummer=3)
    assert main(["sweep", COLLATZ, "--inputs", str(tmp_path), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["output steps"] for row in rows] == [None, 7, None]
    assert f"{tmp_path / '0.npz'} is not an .npz file of plain arrays" in rows[0]["error"]
    assert f"{tmp_path / '2.npz'}: 'nummer' means no input" in rows[2]["error"]
    (tmp_path / "1.npz").unlink()
    assert main(["sweep", COLLATZ, "--inputs", str(tmp_path)]) == 2
    assert "0.npz is not an .npz file" in capsys.readouterr().err


def test_json_is_whole_or_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        main(["sweep", COLLATZ, "--inputs", "number=1..3", "--json", "--scheduler", "nowhere"]) == 2
    )
    assert not capsys.readouterr().out
    rows = Sweep.batches

    def broken(self: Sweep) -> Iterator[Any]:
        yield next(rows(self))
        raise loopscope.EngineError("the cluster is gone")

    monkeypatch.setattr(Sweep, "batches", broken)
    assert main(["sweep", COLLATZ, "--inputs", "number=3,27", "--json"]) == 2
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert [row["output steps"] for row in told["rows"]] == [7, 111]
    assert told["message"] == "the cluster is gone"
    assert said.err == "loopscope: the cluster is gone\n"


def test_failed_runs_are_told_and_change_the_exit_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    np.savez(tmp_path / "some.npz", number=np.array([3, 0.5]))
    assert main(["sweep", COLLATZ, "--inputs", str(tmp_path / "some.npz")]) == 1
    assert "the first that failed is sample 1: input 'number' takes i64" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--inputs", "y=1..3"], "'y' means no input"),
        (
            ["--inputs", "number=1..3", "--resume"],
            "--resume continues with the rows in the file of --out",
        ),
        (
            ["--inputs", "number=1..3", "--scheduler-tls", "a", "b", "c"],
            "--scheduler-tls secures the connections to a cluster",
        ),
        (["--inputs", "number=1..3", "--column", "import os"], "is not an expression"),
        (["--inputs", "number=1..3", "--column", "max(zz)"], "there is no 'zz' in main"),
        (
            ["--inputs", "number=1..3", "--column", "max(main/while_not_one/body/zz)"],
            "there is no 'zz' in while_not_one",
        ),
        (
            ["--inputs", "number=1..3", "--column", "max(main/nothing/body/zz)"],
            "there is no 'main/nothing/body/zz' in the model",
        ),
        (["--inputs", "number=1..3 number=5"], "number is given twice"),
        (["--inputs", "number=1..3/0"], "number is given '1..3/0', which is not a range"),
        (
            ["--inputs", "number=99999999999999999999"],
            "number is given 99999999999999999999, which no element type holds",
        ),
        (["--inputs", ""], "no inputs are given: expected a file"),
        (["--inputs", "tests/docs"], "tests/docs: there is no .npz file in this folder"),
        (["--inputs", "number=1..3", "--batch", "zz"], "'zz' means no input"),
    ],
)
def test_bad_words_are_refused(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", COLLATZ, *words]) == 2
    assert sentence in capsys.readouterr().err
