"""Traces as files: every format holds every value under its full address."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import loopscope
from loopscope import builder
from loopscope.errors import EngineError
from loopscope.explain.export import computed, export
from loopscope.ir.element_type import ElementType
from tests.engine.debug.walks import TRAIL
from tests.engine.debug.walks import model as walk
from tests.engine.drafts import F32, I64, Draft
from tests.engine.read.onnx_models import read


@pytest.fixture
def debugger() -> loopscope.Debugger:
    made = loopscope.Debugger(walk(), [np.float32(1)])
    made.run()
    return made


def test_what_was_computed_is_listed_once(debugger: loopscope.Debugger) -> None:
    found = list(computed(debugger))
    operations = {place for place in TRAIL if not place.endswith(("/body", "/then", "/else"))}
    assert len(found) == len(set(found))
    assert {place for place in found if not place.endswith(":1")} == operations


def test_npz(debugger: loopscope.Debugger, tmp_path: Path) -> None:
    count = export(debugger, tmp_path / "trace.npz")
    with np.load(tmp_path / "trace.npz", allow_pickle=False) as stored:
        assert len(stored.files) == count
        for address in stored.files:
            np.testing.assert_array_equal(stored[address], debugger.value(address))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables(debugger: loopscope.Debugger, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"trace{ending}"
    count = export(debugger, path)
    table = pd.read_csv(path) if ending == ".csv" else pd.read_parquet(path)
    assert len(table) == count
    row = table.set_index("address").loc["main/outer[2]/body/inner[1]/body/grow"]
    assert float(str(row["value"])) == 8.0
    assert (row["type"], row["max"]) == ("f32", 8.0)


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [("f32", 0.1, "0.1"), ("f16", 0.1, "0.1"), ("f64", 0.1, "0.1"), ("f32", 1 / 3, "0.33333334")],
)
def test_a_float_is_the_shortest_text_that_its_type_reads_as_the_same(
    tmp_path: Path, kind: str, given: float, text: str
) -> None:
    graph = builder.Graph("third")
    x = graph.parameter("x", kind, [])
    model = graph.model({"one": builder.ops.abs(x), "two": builder.ops.broadcast(x, [2])})
    debugger = loopscope.Debugger(model, [np.asarray(given, ElementType(kind).dtype)])
    debugger.run()
    for ending in (".csv", ".json", ".parquet"):
        export(debugger, tmp_path / f"trace{ending}")
    table = pd.read_csv(tmp_path / "trace.csv", dtype=str).set_index("address")
    assert table.loc["main/Abs", "value"] == text
    (pair,) = [row for address, row in table.iterrows() if row["shape"] == "[2]"]
    assert (pair["min"], pair["max"]) == (text, text)
    assert f'"value": {text}, "min": {text}, "max": {text}' in (tmp_path / "trace.json").read_text()
    columns = pd.read_parquet(tmp_path / "trace.parquet").set_index("address")
    assert columns.loc["main/Abs", "value"] == text
    assert columns.loc["main/Abs", "min"] == float(
        debugger.value("main/Abs")
    )  # a number keeps all its digits


def test_json_is_strict_and_tells_the_control_flow(
    debugger: loopscope.Debugger, tmp_path: Path
) -> None:
    export(debugger, tmp_path / "trace.json")
    told = json.loads(
        (tmp_path / "trace.json").read_text(), parse_constant=lambda text: pytest.fail(text)
    )
    values = {row["address"]: row for row in told["values"]}
    assert values["main/last"]["value"] == 104
    assert [
        (one["address"], one["branch"]) for one in told["control_flow"] if one["kind"] == "If"
    ] == [
        ("main/outer[0]/body/choice", "else"),
        ("main/outer[1]/body/choice", "else"),
        ("main/outer[2]/body/choice", "then"),
    ]


def test_odd_numbers_and_a_run_that_has_not_ended(tmp_path: Path) -> None:
    debugger = loopscope.Debugger(walk(), [np.float32(np.nan)])
    debugger.seek("main/outer[1]/body/above")
    export(debugger, tmp_path / "trace.json")
    told = json.loads(
        (tmp_path / "trace.json").read_text(), parse_constant=lambda text: pytest.fail(text)
    )
    values = {row["address"]: row for row in told["values"]}
    assert values["main/double"]["value"] == "nan"
    assert values["main/double"]["not_finite"] == 1
    assert "main/outer[1]/body/above" not in values


def test_bounds_and_other_endings_are_told(debugger: loopscope.Debugger, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="more than 3 values"):
        export(debugger, tmp_path / "trace.npz", most_values=3)
    with pytest.raises(EngineError, match="more than 8 bytes"):
        export(debugger, tmp_path / "trace.npz", most_bytes=8)
    for name in ("trace.pkl", "trace"):
        with pytest.raises(EngineError, match=r"a trace is written as .npz"):
            export(debugger, tmp_path / name)
    assert not list(tmp_path.iterdir())


STORED = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    **dict.fromkeys(("bf16", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "nf4"), "float32"),
    **{name: f"int{name[1:]}" for name in ("i64", "i32", "i16", "i8")},
    **{name: f"uint{name[1:]}" for name in ("u64", "u32", "u16", "u8")},
    "i4": "int8",
    **dict.fromkeys(("u6", "u4", "u3", "u2", "u1"), "uint8"),
    "boolean": "bool",
}
"""What numpy reads each element type as."""


def read_back(debugger: loopscope.Debugger, path: Path) -> dict[str, dict[str, Any]]:
    """The rows of a table or of JSON by address."""
    export(debugger, path)
    if path.suffix == ".json":
        told = json.loads(path.read_text(), parse_constant=lambda text: pytest.fail(text))["values"]
    else:
        kept: dict[str, Any] = (
            {"dtype": {"value": str, "shape": str}, "keep_default_na": False}
            if path.suffix == ".csv"
            else {}
        )
        told = (
            pd.read_csv(path, **kept) if path.suffix == ".csv" else pd.read_parquet(path)
        ).to_dict("records")
    return {row["address"]: row for row in told}


@pytest.mark.parametrize(
    "element_type", [one for one in ElementType if one != ElementType.STRING], ids=str
)
def test_every_element_type_is_read_back(element_type: ElementType, tmp_path: Path) -> None:
    main = Draft()
    converted = main.op(
        "Convert", main.parameter("x", F32, (2,)), destination_type=element_type.value, name="made"
    )
    main.op("ReduceMax", main.parameter("y", F32, (1,)), main.const([0], I64), name="other")
    main.result(converted)
    debugger = loopscope.Debugger(
        main.model(), [np.array([1, 0.5], np.float32), np.array([2], np.float32)]
    )
    debugger.run()
    value = debugger.value("main/made")
    export(debugger, tmp_path / "trace.npz")
    with np.load(tmp_path / "trace.npz", allow_pickle=False) as stored:
        assert stored["main/made"].dtype == STORED[element_type.value]
        np.testing.assert_array_equal(
            stored["main/made"].astype(np.float64), value.astype(np.float64)
        )
    for ending in (".csv", ".parquet", ".json"):
        row = read_back(debugger, tmp_path / f"trace{ending}")["main/made"]
        assert (row["type"], str(row["shape"])) == (element_type.value, "[2]")
        extremes = np.asarray([float(row["min"]), float(row["max"])], value.dtype).astype(
            np.float64
        )
        assert extremes.tolist() == [value.astype(np.float64).min(), value.astype(np.float64).max()]


LONG = [
    ("i64", [-(2**63), -(2**53) - 1, 2**53 + 1, 2**63 - 1]),
    ("u64", [2**53 + 1, 2**64 - 1]),
    ("i64", [2**53 + 1]),
    ("boolean", [False, True]),
]


@pytest.mark.parametrize(("element_type", "numbers"), LONG)
def test_whole_numbers_are_exact_however_long(
    element_type: str, numbers: list[Any], tmp_path: Path
) -> None:
    kind = ElementType(element_type)
    main = Draft()
    main.result(
        main.op(
            "Reshape",
            main.parameter("x", kind, (len(numbers),)),
            main.const([-1], I64),
            special_zero="false",
            name="made",
        )
    )
    debugger = loopscope.Debugger(main.model(), [np.array(numbers, kind.dtype)])
    debugger.run()
    found = {
        ending: read_back(debugger, tmp_path / f"trace{ending}")["main/made"]
        for ending in (".csv", ".parquet", ".json")
    }
    assert [found[".json"][name] for name in ("min", "max")] == [min(numbers), max(numbers)]
    assert [int(found[".csv"][name]) for name in ("min", "max")] == [min(numbers), max(numbers)]
    assert [int(found[".parquet"][f"{name}_exact"]) for name in ("min", "max")] == [
        min(numbers),
        max(numbers),
    ]
    assert [found[".parquet"][name] for name in ("min", "max")] == [
        float(min(numbers)),
        float(max(numbers)),
    ]


ODD_NAME = "a/b[0]:~%.csv \u00e9\ud800"


def test_names_shapes_and_numbers_that_files_do_not_like(tmp_path: Path) -> None:
    main = Draft()
    main.op("Negative", main.parameter("x", F32, (0, 3)), name=ODD_NAME)
    main.result(main.op("Log", main.parameter("y", F32, (1, 1)), name="log"))
    debugger = loopscope.Debugger(
        main.model(), [np.zeros((0, 3), np.float32), np.array([[0]], np.float32)]
    )
    debugger.run()
    address = "main/a%2Fb%5B0%5D%3A%7E%25.csv \u00e9"
    export(debugger, tmp_path / "trace.npz")
    with np.load(tmp_path / "trace.npz") as stored:
        assert stored[f"{address}\\ud800"].shape == (0, 3)
    for ending, tail in ((".csv", "\\ud800"), (".parquet", "\\ud800"), (".json", "\ud800")):
        found = read_back(debugger, tmp_path / f"trace{ending}")
        empty, log = found[address + tail], found["main/log"]
        assert (str(empty["shape"]), empty["not_finite"]) == ("[0, 3]", 0)
        assert (str(log["shape"]), log["value"], log["not_finite"]) == ("[1, 1]", "-inf", 1)


def test_texts_and_sequences(tmp_path: Path) -> None:
    text = """
    main (string[N] s, float[N] v) => (string[N] t, seq(float[N]) q) { t = Identity (s)  q = SequenceConstruct (v, v) }
    """
    debugger = loopscope.Debugger(
        read(text), {"s": np.array(["=1+1\0"], object), "v": np.array([np.nan, 1], np.float32)}
    )
    debugger.run()
    export(debugger, tmp_path / "trace.npz")
    with np.load(tmp_path / "trace.npz", allow_pickle=False) as stored:
        assert sorted(stored.files) == [
            "main/Identity_0",
            "main/SequenceConstruct_1[0]",
            "main/SequenceConstruct_1[1]",
        ]
        assert stored["main/Identity_0"].tolist() == ["=1+1"]
        np.testing.assert_array_equal(stored["main/SequenceConstruct_1[1]"], [np.nan, 1])
    for ending in (".csv", ".parquet", ".json"):
        found = read_back(debugger, tmp_path / f"trace{ending}")
        apostrophe = "'" if ending == ".csv" else ""  # a spreadsheet would compute the text
        assert found["main/Identity_0"]["value"] == f"{apostrophe}=1+1\0"
        assert found["main/SequenceConstruct_1[0]"]["not_finite"] == 1


def test_one_long_text_does_not_make_all_the_others_as_long(tmp_path: Path) -> None:
    debugger = loopscope.Debugger(
        read("main (string[N] s) => (string[N] t) { t = Identity (s) }"),
        [np.array(["a"] * 5000 + ["b" * 100_000], object)],
    )
    debugger.run()
    with pytest.raises(EngineError, match="more than 1,000,000,000 bytes"):
        export(debugger, tmp_path / "trace.npz", most_bytes=10**9)


def test_a_run_of_nothing_is_an_empty_table(tmp_path: Path) -> None:
    debugger = loopscope.Debugger(walk(), [np.float32(1)])
    for ending in (".csv", ".parquet", ".json"):
        assert read_back(debugger, tmp_path / f"trace{ending}") == {}
