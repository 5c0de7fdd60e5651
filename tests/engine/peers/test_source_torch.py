"""The process of torch itself, where torch is installed: it says what the stored files say that
it said.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope.errors import EngineError
from loopscope.native.run_once import never
from loopscope.peers import source_of
from loopscope.peers.other_runtimes import Patience
from loopscope.peers.source.program import Source, SourceRun, run_source
from loopscope_app.cli import main
from tests.engine.peers.sources import FOLDER
from tests.engine.peers.sources.cases import TORCH, Case, X, count, told

torch = pytest.importorskip("torch")
PATIENCE = Patience(120, never)
STORED = [case for case in TORCH if case.file]
CASES = pytest.mark.parametrize(
    "case", STORED, ids=[f"{case.program}-{case.name}" for case in STORED]
)


def exported(case: Case, folder: Path) -> Path:
    from tests.engine.peers.sources.torch_programs import PROGRAMS

    module, example = PROGRAMS[case.program]
    torch.export.save(torch.export.export(module, example), folder / "source.pt2")
    return folder / "source.pt2"


@CASES
def test_what_torch_does(case: Case, tmp_path: Path) -> None:
    did = run_source(
        source_of(str(exported(case, tmp_path))),
        loopscope.read_model(case.model),
        case.inputs,
        PATIENCE,
    )
    assert did.framework.startswith("torch 2.")
    assert is_close(told(did), told(case.did()))


def is_close(left: object, right: object) -> bool:
    """Return True if two nests of lists are equal up to a few units in the last place of f32.

    Processors sum matrix products in different orders.
    """
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-6, abs_tol=1e-6)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(is_close, left, right))
    return left == right


@pytest.mark.parametrize(
    ("name", "program"),
    [("doubled", "doubling"), ("Doubling", "doubling"), ("alternating", "alternating")],
)
def test_programs_that_a_module_names(
    name: str, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain function and a module are exported with the inputs; a function without parameters
    gives the program.
    """
    monkeypatch.chdir(Path(__file__).parents[3])
    case = next(one for one in TORCH if one.program == program and one.inputs["n"] > 0)
    did = run_source(
        Source("python", f"tests.engine.peers.sources.torch_programs:{name}"),
        loopscope.read_model(case.model),
        case.inputs,
        PATIENCE,
    )
    assert told(did) == told(case.did())


def of_programs(name: str, monkeypatch: pytest.MonkeyPatch) -> SourceRun:
    monkeypatch.chdir(Path(__file__).parents[3])
    source, model = (
        Source("python", f"tests.engine.peers.sources.torch_programs:{name}"),
        loopscope.read_model(TORCH[0].model),
    )
    return run_source(source, model, {"n": count(3), "x": X}, PATIENCE)


def test_inner_loops_are_called_by_the_names_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    did = of_programs("Triangle", monkeypatch)
    assert [
        (one.parent, one.counts, [value.name for value in one.values]) for one in did.regions
    ] == [
        (-1, (3,), ["n", "x"]),
        (0, (3, 2, 1), ["n", "x"]),
    ]
    assert did.unwatched == ""
    (_, end), (_, x) = did.outputs
    assert end == 0
    np.testing.assert_array_equal(x, X + 6)


def test_a_graph_that_is_called_once_is_part_of_the_one_around(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    did = of_programs("Narrow", monkeypatch)
    assert [(one.parent, one.counts) for one in did.regions] == [(-1, (3,))]
    assert did.unwatched == ""
    _, (_, product) = did.outputs
    assert product is not None
    np.testing.assert_allclose(product, [[np.sum((8 * X) ** 2)]], rtol=2**-8)  # of bf16


def test_inputs_that_the_program_does_not_take(tmp_path: Path) -> None:
    case = TORCH[0]
    source, model = source_of(str(exported(case, tmp_path))), loopscope.read_model(case.model)
    with pytest.raises(
        EngineError, match=r"the input 'x' is of shape \[5\], and the program takes \[4\]"
    ):
        run_source(source, model, {"n": count(1), "x": np.ones(5, np.float32)}, PATIENCE)
    other = loopscope.read_model(FOLDER / "choosing.xml")
    scan = source_of(
        str(exported(next(one for one in TORCH if one.program == "recurrent"), tmp_path))
    )
    with pytest.raises(
        EngineError, match=r"the input 'x' is of shape \[\], and the program takes \[4, 3\]"
    ):
        run_source(scan, other, {"n": count(1), "x": X}, PATIENCE)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = TORCH[0]
    np.savez(tmp_path / "in.npz", n=case.inputs["n"], x=case.inputs["x"])
    words = [
        "compare",
        str(case.model),
        "--source",
        str(exported(case, tmp_path)),
        "--inputs",
        str(tmp_path / "in.npz"),
    ]
    capsys.readouterr()
    assert main(words) == 1
    assert capsys.readouterr().out.startswith(
        "torch: 0 iterations; the file: 1 (while_loop/while_loop › Loop). LS931: "
    )
    assert main([*words, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["outputs_agree"] is False
    assert [(one["source"], one["there"], one["here"]) for one in said["regions"]] == [
        ("while_loop", [0], [1])
    ]
