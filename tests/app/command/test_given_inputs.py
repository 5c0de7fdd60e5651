"""What ``--inputs`` takes: a file, values in words, and what is made up."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.errors import InputError
from loopscope.ir import Model
from loopscope.ops.stored import write
from loopscope.sweeps import samples_of
from loopscope_app.cli import main
from loopscope_app.command.given_inputs import read_inputs
from loopscope_app.describe.input_parsing import read_arrays
from loopscope_app.describe.random_inputs import random_inputs
from loopscope_samples import sample


def model() -> Model:
    graph = builder.Graph("three inputs")
    n = graph.parameter("n", "i64", [])
    x = graph.parameter("x", "f32", [2, 3])
    flag = graph.parameter("flag", "boolean", [])
    chosen = builder.ops.select(flag, x, x * builder.ops.convert(n, destination_type="f32"))
    return graph.model({"y": chosen})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", {}),
        ("n=27", {0: 27}),
        ("x=0.5 n=-3", {0: -3, 1: np.full((2, 3), 0.5)}),
        ("flag=1", {2: True}),
        ("x=0.1", {1: np.full((2, 3), 0.1, np.float32)}),
        ("x[2,3]=nan", {1: np.full((2, 3), np.nan)}),
        ("x=-inf", {1: np.full((2, 3), -np.inf)}),
        ("x=[[1,2,3],[4, 5.5, NaN]] n=2", {0: 2, 1: [[1, 2, 3], [4, 5.5, np.nan]]}),
        ("flag=[] n=[7]", {0: [7], 2: []}),
        ("2=0 1=1e3", {1: np.full((2, 3), 1000.0), 2: False}),
    ],
)
def test_values_in_words(words: str, expected: dict[int, object]) -> None:
    given = read_inputs(words, model())
    assert set(given) == set(expected)
    for key, value in expected.items():
        np.testing.assert_array_equal(np.asarray(given[key]), np.asarray(value))


@pytest.mark.parametrize(
    "words", ["random n=4 seed=3", "n=4 random seed=3", "seed=3 n=4 random", "n=4 seed=3 random"]
)
def test_words_are_in_any_order(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = read_inputs("random seed=3 n=4", model())
    given = read_inputs(words, model())
    assert all(
        np.array_equal(np.asarray(given[key]), np.asarray(expected[key])) for key in expected
    )
    first, second = capsys.readouterr().err.splitlines()
    assert first == second


def test_what_is_not_said_is_made_up_as_the_app_does(capsys: pytest.CaptureFixture[str]) -> None:
    given = read_inputs("random seed=3 n=4", model())
    made = random_inputs(model(), 3)
    assert given[0] == 4
    np.testing.assert_array_equal(np.asarray(given[1]), made["x"])
    assert given[2] == made["flag"]
    assert (
        capsys.readouterr().err == f"generated with seed 3: n = 4; x [2,3]; flag = {made['flag']}\n"
    )
    drawn = read_inputs("random x=uniform(5,6)", model())[1]
    assert np.all((np.asarray(drawn) >= 5) & (np.asarray(drawn) <= 6))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("nope=1", "'nope' means no input: the model's are 'n', 'x', 'flag'"),
        (
            "n=1..500",
            "expected one number for one run, or a list in brackets: 'random n=1..500' draws one",
        ),
        ("n=1,2", "`loopscope sweep` runs them all"),
        ("x=[[1,2],[3]]", "x is given as '[[1,2],[3]]', expected lists of one length"),
        ("x=[1,2", "x is given as '[1,2', expected a list such as [[1,2],[3,4]]"),
        ("x=" + "[" * 100_000, "expected a list such as"),
        ("n=[1.5]", "1.5 is not a value of type i64, which input 'n' takes"),
        ("n=[1] n=2", "n is given twice"),
        ("n=[1] 0=[2]", "0 is given twice"),
        ("n=many", "'many' is not a range of n"),
        ("random seed=x", "the seed is 'x', expected a whole number from 0 on"),
        ("random seed=" + "9" * 5000, "expected a whole number from 0 on, of at most 18 digits"),
        ("nothing.npz", "nothing.npz: No such file"),
    ],
)
def test_words_that_say_nothing(words: str, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        read_inputs(words, model())
    assert sentence in str(raised.value)


@pytest.mark.parametrize("name", ["n.npy", "n"])
def test_entries_that_are_no_arrays_are_refused_wherever_a_file_is_given(
    name: str, tmp_path: Path
) -> None:
    """numpy gives them as their bytes."""
    path = tmp_path / "given.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, b"no array")
    readers: tuple[Callable[[], object], ...] = (
        lambda: read_inputs(str(path), model()),
        lambda: read_arrays(path.name, path.read_bytes()),
        lambda: samples_of(model(), path),
        lambda: loopscope.Session(model()).load(path),
    )
    for read in readers:
        with pytest.raises(InputError, match=r"given\.npz is not an? .*plain arrays"):
            read()


def test_inputs_beyond_any_number_are_told(tmp_path: Path) -> None:
    write(tmp_path / "given.npz", {"9" * 5000: np.array(7)})
    with pytest.raises(InputError, match="9999"):
        loopscope.run(model(), read_inputs(str(tmp_path / "given.npz"), model()))


@pytest.mark.parametrize("keys", ["arr_{}", "i{}", "{}"])
def test_arrays_without_names_are_in_the_order_of_the_inputs(keys: str, tmp_path: Path) -> None:
    values = [np.array(7), np.ones((2, 3), np.float32), np.array(False)]
    path = tmp_path / "given.npz"
    write(path, {keys.format(position): value for position, value in enumerate(values)})
    given = read_inputs(str(path), model())
    assert list(given) == [0, 1, 2]
    np.testing.assert_array_equal(loopscope.run(model(), given).outputs[0], 7 * values[1])


def test_a_file_goes_before_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "n=5.npz", n=np.array(7))
    assert read_inputs("n=5.npz", model()) == {"n": 7}


def test_a_run_without_inputs_says_how_they_are_given(capsys: pytest.CaptureFixture[str]) -> None:
    found = sample("collatz")
    assert found is not None
    assert main(["run", str(found.model)]) == 2
    assert (
        "expected --inputs with an .npz file, values such as number=27, or random"
        in capsys.readouterr().err
    )
    assert main(["run", str(found.model), "--inputs", "number=3"]) == 0
    told = capsys.readouterr().out
    assert "main/while_not_one: 7 iterations, then its condition became false" in told
    assert "main/while_not_one/body/if_even: then 5 times, else 2 times: ETETTTT" in told
