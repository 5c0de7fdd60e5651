"""Models that are kept after they were closed: the latest, and no more bytes than allowed."""

from __future__ import annotations

import os
import shutil
import weakref
from pathlib import Path

from app.state.open_model import Kept
from sample_models import FOLDER


def test_the_models_opened_last_are_kept_by_the_bytes_of_their_files(tmp_path: Path) -> None:
    document = (FOLDER / "collatz" / "model.xml").read_bytes()
    weights = (FOLDER / "collatz" / "model.bin").read_bytes()
    files = [tmp_path / name / "model.xml" for name in "abc"]
    for file in files:
        file.parent.mkdir()
        file.write_bytes(document)
        file.with_suffix(".bin").write_bytes(weights)
    kept = Kept(2 * (len(document) + len(weights)))
    there = [weakref.ref(kept.read(file)[0]) for file in files]
    assert [one() is not None for one in there] == [False, True, True]
    assert kept.read(files[1])[0] is there[1]()
    kept.read(files[0])
    assert [one() is not None for one in there] == [False, True, False], "the one that nobody has asked for since goes"
    os.utime(files[1], ns=(0, 0))
    assert kept.read(files[1])[0] is not there[1]()


def test_a_model_larger_than_all_that_may_be_kept_is_opened_and_not_kept() -> None:
    kept = Kept(10)
    model, report = kept.read(FOLDER / "collatz" / "model.xml")
    assert report.ok
    there = weakref.ref(model)
    del model
    assert there() is None


def test_a_meta_graph_is_read_again_when_its_values_have_changed(tmp_path: Path) -> None:
    for file in (Path(__file__).parents[2] / "engine" / "read" / "files" / "tensorflow").glob("weights.*"):
        shutil.copyfile(file, tmp_path / file.name)
    kept = Kept(10**6)
    first = kept.read(tmp_path / "weights.meta")[0]
    assert kept.read(tmp_path / "weights.meta")[0] is first
    os.utime(tmp_path / "weights.index", ns=(0, 0))
    assert kept.read(tmp_path / "weights.meta")[0] is not first
