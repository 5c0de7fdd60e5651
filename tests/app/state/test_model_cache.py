"""Models that are kept after they were closed: the latest, and no more bytes than allowed, with
what their plans have made.
"""

from __future__ import annotations

import os
import shutil
import weakref
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.debug import model_bytes
from loopscope_app.state.model_cache import ModelCache
from loopscope_samples import FOLDER


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    found = [tmp_path / name / "model.xml" for name in "abc"]
    for file in found:
        shutil.copytree(FOLDER / "collatz", file.parent)
    return found


def test_the_models_opened_last_are_kept_by_their_bytes(files: list[Path]) -> None:
    kept = ModelCache(2 * model_bytes(loopscope.read_model(str(files[0]))))
    there = [weakref.ref(kept.read(file)[0]) for file in files]
    assert [one() is not None for one in there] == [False, True, True]
    assert kept.read(files[1])[0] is there[1]()
    kept.read(files[0])
    assert [one() is not None for one in there] == [False, True, False], (
        "the one that nobody has asked for since goes"
    )
    os.utime(files[1], ns=(0, 0))
    assert kept.read(files[1])[0] is not there[1]()


def test_who_looks_at_a_model_shares_it_however_large_it_is(files: list[Path]) -> None:
    kept = ModelCache(10)
    model, _ = kept.read(files[0])
    report = loopscope.check(model)
    kept.note(model, report)
    assert kept.read(files[0]) == (model, report)
    assert kept.held_bytes == model_bytes(model)
    there = weakref.ref(model)
    del model
    assert there() is None
    assert kept.held_bytes == 0


def test_what_plans_have_made_of_constants_counts(tmp_path: Path) -> None:
    """A model's weights that lie at odd places of the file are copied when it first runs."""
    graph = builder.Graph("odd")
    x = graph.parameter("x", "f32", [100])
    graph_model = graph.model(
        ops.matmul(x, np.ones((100, 100), np.float32)) + np.ones(100, np.float32)
    )
    loopscope.write_model(graph_model, tmp_path / "odd.xml")
    text = (tmp_path / "odd.xml").read_text()
    weights = (tmp_path / "odd.bin").read_bytes()
    (tmp_path / "odd.bin").write_bytes(b"x" + weights)
    for offset in sorted(
        {int(part.split('"')[0]) for part in text.split('offset="')[1:]}, reverse=True
    ):
        text = text.replace(f'offset="{offset}"', f'offset="{offset + 1}"')
    (tmp_path / "odd.xml").write_text(text)
    kept = ModelCache(10**6)
    model, _ = kept.read(tmp_path / "odd.xml")
    before = model_bytes(model)
    assert before >= len(weights)
    loopscope.Debugger(model, [np.ones(100)]).run()
    assert model_bytes(model) >= before + 100 * 100 * 4
    kept.most_bytes = before
    there = weakref.ref(model)
    del model
    kept.trim()
    assert there() is None


def test_a_meta_graph_is_read_again_when_its_values_have_changed(tmp_path: Path) -> None:
    for file in (Path(__file__).parents[2] / "engine" / "read" / "files" / "tensorflow").glob(
        "weights.*"
    ):
        shutil.copyfile(file, tmp_path / file.name)
    kept = ModelCache(10**6)
    first = kept.read(tmp_path / "weights.meta")[0]
    assert kept.read(tmp_path / "weights.meta")[0] is first
    os.utime(tmp_path / "weights.index", ns=(0, 0))
    assert kept.read(tmp_path / "weights.meta")[0] is not first
