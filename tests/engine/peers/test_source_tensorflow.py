"""The process of TensorFlow itself, where TensorFlow is installed: it says what the stored files
say that it said.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope.errors import EngineError
from loopscope.native.run_once import never
from loopscope.peers import source_of
from loopscope.peers.other_runtimes import Patience
from loopscope.peers.source.program import Source, run_source
from tests.engine.peers.sources.cases import TENSORFLOW, Case, told

tf = pytest.importorskip("tensorflow")
PATIENCE = Patience(120, never)
THREE = next(case for case in TENSORFLOW if (case.program, case.name) == ("tf_doubling", "three"))
CASES = pytest.mark.parametrize(
    "case", TENSORFLOW, ids=[f"{case.program}-{case.name}" for case in TENSORFLOW]
)


def saved(case: Case, folder: Path) -> Source:
    from tests.engine.peers.sources.tensorflow_programs import save

    save(case.program, folder / "saved")
    return source_of(str(folder / "saved"))


@CASES
def test_what_tensorflow_does(case: Case, tmp_path: Path) -> None:
    did = run_source(saved(case, tmp_path), loopscope.read_model(case.model), case.inputs, PATIENCE)
    assert did.framework.startswith("TensorFlow 2.")
    assert told(did) == told(case.did())


@pytest.mark.parametrize("name", ["tf_doubling", "concrete", "tf_plain"])
def test_programs_that_a_module_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``tf.function``, a function that gives a concrete one, and a plain function, which
    autograph makes a graph of.
    """
    monkeypatch.chdir(Path(__file__).parents[3])
    source = Source("python", f"tests.engine.peers.sources.tensorflow_programs:{name}")
    did, stored = (
        run_source(source, loopscope.read_model(THREE.model), THREE.inputs, PATIENCE),
        THREE.did(),
    )
    assert [(one.name, one.counts) for one in did.regions] == [("while", (3,))]
    assert [
        (name, None if value is None else value.tolist()) for name, value in did.outputs
    ] == told(stored)[1]


def test_what_has_graphs_inside_and_is_not_watched_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    source = Source("python", "tests.engine.peers.sources.tensorflow_programs:tf_switched")
    did = run_source(source, loopscope.read_model(THREE.model), THREE.inputs, PATIENCE)
    assert [(one.name, one.counts) for one in did.regions] == [("while", (3,))]
    assert did.unwatched == "Run as a whole, and not watched: switch_case/indexed_case."
    np.testing.assert_array_equal(did.outputs[0][1], 8 * THREE.inputs["x"] + 1)


def test_a_saved_model_without_a_signature(tmp_path: Path) -> None:
    tf.saved_model.save(tf.Module(), str(tmp_path / "empty"))
    with pytest.raises(
        EngineError, match=r"the SavedModel has the signatures \(none\), and not 'serving_default'"
    ):
        run_source(
            source_of(str(tmp_path / "empty")),
            loopscope.read_model(THREE.model),
            THREE.inputs,
            PATIENCE,
        )


def test_inputs_that_the_program_does_not_take(tmp_path: Path) -> None:
    model = loopscope.read_model(
        next(Path(__file__).parent.glob("sources/doubling.xml"))
    )  # its x is of any length
    with pytest.raises(
        EngineError, match=r"the input 'x' is of shape \[5\], and the program takes \[4\]"
    ):
        run_source(
            saved(THREE, tmp_path), model, {"n": np.int64(1), "x": np.ones(5, np.float32)}, PATIENCE
        )
