"""``loopscope drift`` as a user calls it: two files, or one and what is rounded."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from loopscope_app import cli
from loopscope_samples import FOLDER

MODEL = str(FOLDER / "linear_attention" / "model.xml")
INPUTS = ["--inputs", str(FOLDER / "linear_attention" / "inputs" / "sixty_tokens.npz")]


@pytest.mark.parametrize(("fail_over", "code"), [("0.1", 0), ("0.001", 1)])
def test_rounding(
    fail_over: str, code: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = tmp_path / "table.parquet"
    words = [
        "drift",
        MODEL,
        "--round",
        "main/*/S=bf16",
        *INPUTS,
        "--fail-over",
        fail_over,
        "--out",
        str(table),
    ]
    assert cli.main(words) == code
    told = capsys.readouterr().out
    assert told.startswith(
        "Begins in `for_each_token` at iteration 1 in `S`; grows, then saturates near "
    )
    assert "main/for_each_token[" in told
    assert (pd.read_parquet(table).address == "main/for_each_token[59]/body/S").sum() == 1


def test_two_files_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["drift", MODEL, MODEL, *INPUTS, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["begins"] is None
    assert told["outputs"] == 0
    assert told["unmatched"] == [[], []]
    assert {pair["matched"] for pair in told["pairs"]} == {"name"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([MODEL], "drift needs either a second model"),
        ([MODEL, MODEL, "--round", "main/*/S=bf16"], "drift needs either a second model"),
        ([MODEL, "--round", "bf16"], "expected PATTERN=TYPE"),
        ([MODEL, "--round", "main/*/S=fp3"], "expected bf16"),
    ],
)
def test_what_is_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["drift", *words, *INPUTS]) == 2
    assert told in capsys.readouterr().err
