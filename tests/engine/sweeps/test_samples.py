"""Where inputs come from: words, files, arrays; what says nothing is refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import loopscope
from loopscope import builder
from loopscope.errors import InputError
from loopscope.sweeps import samples_of
from loopscope.sweeps.ranges import values_said


@pytest.fixture
def model() -> loopscope.Model:
    graph = builder.Graph("two")
    x, n = graph.parameter("x", "f32", [2]), graph.parameter("n", "i64", [])
    return graph.model([x * 2.0, n + 1])


def values(
    model: loopscope.Model,
    given: object,
    first: int,
    end: int,
    key: int,
    batch: tuple[str, ...] = (),
) -> list[object]:
    part = samples_of(model, given, batch).batch(first, end)  # type: ignore[arg-type]  # words and arrays alike
    return [np.asarray(part.inputs(place)[key]).tolist() for place in range(len(part))]


def test_a_grid_has_all_combinations_and_its_last_input_changes_fastest(
    model: loopscope.Model,
) -> None:
    samples = samples_of(model, "n=1..3 x=0,0.5")
    assert samples.count == 6
    assert values(model, "n=1..3 x=0,0.5", 1, 4, 1) == [1, 2, 2]
    assert values(model, "n=0..1/3", 0, 3, 1) == [0, 0.5, 1]


def test_random_samples_are_the_same_in_whatever_parts(model: loopscope.Model) -> None:
    words = "random:9000 seed=3 n=1..500"
    whole = values(model, words, 0, 9000, 0)
    assert whole[4090:4100] == values(model, words, 4090, 4100, 0)
    assert whole != values(model, "random:9000 seed=4 n=1..500", 0, 9000, 0)
    numbers = values(model, words, 0, 9000, 1)
    assert (
        min(map(int, cast("list[int]", numbers))),
        max(map(int, cast("list[int]", numbers))),
    ) == (1, 500)


def npz(folder: Path) -> str:
    np.savez(folder / "data.npz", x=np.arange(6, dtype=np.float32).reshape(3, 2), n=np.arange(3))
    return str(folder / "data.npz")


def npz_with_one_fixed(folder: Path) -> str:
    np.savez(folder / "data.npz", x=np.array([0, 1], np.float32), n=np.arange(3))
    return str(folder / "data.npz")


def files(folder: Path) -> str:
    for number in range(3):
        np.savez(
            folder / f"{number}.npz", x=np.array([2 * number, 2 * number + 1], np.float32), n=number
        )
    return str(folder)


@pytest.mark.parametrize(
    ("made", "batch", "x"),
    [
        (npz, (), [[0, 1], [2, 3], [4, 5]]),
        (files, (), [[0, 1], [2, 3], [4, 5]]),
        (npz_with_one_fixed, ("n",), [[0, 1], [0, 1], [0, 1]]),
    ],
)
def test_files_of_arrays(
    model: loopscope.Model,
    tmp_path: Path,
    made: Callable[[Path], str],
    batch: tuple[str, ...],
    x: object,
) -> None:
    where = made(tmp_path)
    assert values(model, where, 0, 3, 0, batch) == x
    assert values(model, where, 0, 3, 1, batch) == [0, 1, 2]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables(tmp_path: Path, suffix: str) -> None:
    collatz = loopscope.read_model("sample_models/collatz/model.xml")
    path = tmp_path / f"numbers.{suffix}"
    if suffix == "csv":
        path.write_text("number\n3\n27\n", encoding="utf-8")
    else:
        parquet.write_table(pa.table({"number": [3, 27]}), path)
    assert [row["output steps"] for row in loopscope.sweep(collatz, path)] == [7, 111]


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "f8e4m3"])
@pytest.mark.parametrize(
    "given",
    [
        "x=0.1,2.3",
        "x=0..1/4",
        "x=nan,-inf,0.1",
        "random:2",
        "random:2 x=normal(0,1)",
        "random:2 x=0.1,0.7",
        "table",
    ],
)
def test_decimal_numbers_are_rounded_to_the_type_of_the_input(
    tmp_path: Path, kind: str, given: str
) -> None:
    """0.1 is the nearest number of the type; that no float has it exactly is nobody's mistake."""
    x = builder.Graph("one").parameter("x", kind, [])
    model = x.graph.model({"y": x + x})
    if given == "table":
        given = str(tmp_path / "x.csv")
        Path(given).write_text("x\n0.1\n0.7\n", encoding="utf-8")
    rows = list(loopscope.sweep(model, given))
    assert [row["error"] for row in rows] == [None] * len(rows)
    if given == "x=0.1,2.3":
        assert [row["output y"] for row in rows] == [
            loopscope.run(model, [one]).outputs[0].item() for one in (0.1, 2.3)
        ]


@pytest.mark.parametrize("said", ["x=1e39", "random:1 x=1e39,1e39"])
def test_numbers_beyond_the_type_of_the_input_are_refused(said: str) -> None:
    x = builder.Graph("one").parameter("x", "f32", [])
    (row,) = loopscope.sweep(x.graph.model({"y": x + x}), said)
    assert "would lose values" in row["error"]


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        (
            "nothing.npz",
            "No such file or directory; inputs are a file, a folder, a grid n=1..500 or random:1000",
        ),
        ("y=1..3", "'y' means no input: the model's are 'x', 'n'"),
        ("n=3..1", "n=3..1 has no step"),
        ("n=0..1.5", "has no step: write n=0..1.5/11 for 11 values"),
        ("n=many", "'many' is not a range of n"),
        ("n=normal(0,1)", "n is given a distribution, which a grid does not have"),
        ("random:some", "'random:some' is not a number of samples"),
        ("random:3 seed=x", "the seed is 'x'"),
        ("random:3 n=9..1", "the smaller whole number is expected first"),
        ("random:" + "9" * 5000, "is not a number of samples"),
        ("random:\u0663", "is not a number of samples"),
        ("random:3 seed=" + "9" * 5000, "expected a whole number from 0 on, of at most 18 digits"),
        ("random:3 n=normal(1,-2)", "n is normal(1,-2): a deviation from 0 on is expected"),
        (
            "random:3 n=normal(1e300,1)",
            "n is normal(1e+300,1), which goes beyond the whole numbers of int64",
        ),
        (
            "random:3 x[2]=uniform(-1e308,1e308)",
            "the smaller number is expected first, not too far from the other",
        ),
        ("random:3 x[2]=5..1", "the smaller number is expected first, not too far from the other"),
        (
            "random:3 x[" + "9" * 5000 + "]=normal(0,1)",
            "is not a shape: at most 32 lengths are expected, of 18 digits",
        ),
        (
            "random:3 x[" + "1," * 70 + "1]=normal(0,1)",
            "is not a shape: at most 32 lengths are expected, of 18 digits",
        ),
        ("random:3 x[99999999999,65536,0]=normal(0,1)", "x[99999999999,65536,0] is too large"),
        ("n=" + "9" * 5000, "is given 9999"),
        ("n=1e999", "is given 1e999, which no"),
        ("n=1..99999999999999999999", "is given 99999999999999999999"),
        (
            "n=-1..9223372036854775808",
            "n goes from -1 to 9223372036854775808, which is farther than numbers reach",
        ),
        ("n=-1e308..1e308/11", "which is farther than numbers reach"),
        (
            "n=1..1000000000000 x=1..1000000000000",
            "the grid has 1,000,000,000,000,000,000,000,000 points",
        ),
        ("n=1..2/" + "9" * 5000, "has too many points"),
        ("n=1 " + "x" * 5000 + "=2", "means no input"),
        ("n\0", "no file has such a name"),
        ("9" * 5000 + "=1", "means no input"),
        ({"x": np.zeros((3, 2)), "n": np.arange(4)}, "no sample axis of one length (x: 3, n: 4)"),
        ([3], "a mapping of inputs for each"),
    ],
)
def test_what_says_no_samples_is_refused(
    model: loopscope.Model, where: object, sentence: str
) -> None:
    with pytest.raises(InputError) as refused:
        samples_of(model, where).batch(0, 1)  # type: ignore[arg-type]  # what a person may give
    assert sentence in str(refused.value)


def test_words_of_any_length_are_read_in_one_pass() -> None:
    """Digits that a pattern can share out between its parts in many ways would take the square
    or the cube of their number.
    """
    digits = "9" * 200_000
    for word in (
        f"n={digits}..{digits}/{digits}x",
        f"n=normal({digits},{digits}x)",
        f"n={digits},{digits}x",
    ):
        with pytest.raises(InputError, match="is not a range of n"):
            values_said(word)


def test_an_input_of_unknown_lengths_needs_them_said() -> None:
    graph = builder.Graph("any")
    model = graph.model([graph.parameter("x", "f32", [-1, 3]) * 2.0])
    with pytest.raises(InputError, match=r"give its lengths, such as x\[2,3\]=uniform\(0,1\)"):
        samples_of(model, "random:3")
    batch = samples_of(model, "random:3 x[2,3]=uniform(0,1)").batch(0, 3)
    assert np.shape(batch.varying[0]) == (3, 2, 3)
