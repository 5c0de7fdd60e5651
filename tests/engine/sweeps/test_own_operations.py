"""Operations of the user's own file run in the workers of a sweep too."""

from __future__ import annotations

from pathlib import Path

import pytest

import loopscope
from loopscope import builder
from loopscope.ops import custom
from loopscope.ops.catalogue import CATALOGUE
from loopscope_app.cli import main

EXAMPLE = Path("tests/engine/ops/my_ops.py")


@pytest.mark.slow
def test_workers_have_the_operations_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = CATALOGUE.categories
    try:
        custom.install_file(EXAMPLE)
        x = builder.Graph("first ones").parameter("x", "f32", [2, 2])
        loopscope.write_model(
            x.graph.model({"y": builder.ops.zero_out(x, keep=3)}), tmp_path / "model.xml"
        )
    finally:
        CATALOGUE.categories = before
        CATALOGUE.install(())
    rows = tmp_path / "rows.parquet"
    words = [
        "sweep",
        str(tmp_path / "model.xml"),
        "--inputs",
        "random:600",
        "--workers",
        "2",
        "--ops",
        str(EXAMPLE),
        "--out",
        str(rows),
    ]
    try:
        assert main(words) == 0
    finally:
        CATALOGUE.categories = before
        CATALOGUE.install(())
    assert "600 runs" in capsys.readouterr().out
