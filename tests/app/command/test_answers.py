"""What `run`, `why`, `value` and `matrix` say about runs: JSON by its schema, text, files,
addresses by their ends.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import loopscope
from loopscope import builder
from loopscope.run_file import saving
from loopscope_app.cli import main
from loopscope_samples import FOLDER, Sample, samples
from tests.app.command.test_cli import strictly
from tests.app.command.test_fetching import twos
from tests.engine.run_file.test_without_weights import dense

SCHEMA = json.loads(
    (Path(main.__code__.co_filename).parent / "command" / "answers.schema.json").read_text("utf-8")
)
BISECTION = [
    str(FOLDER / "bisection" / "model.xml"),
    "--inputs",
    str(FOLDER / "bisection" / "inputs" / "coarse.npz"),
]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def conforms(told: object, kind: str) -> None:
    Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]}).validate(told)


def asked(
    command: str, address: str, capsys: pytest.CaptureFixture[str], *more: str
) -> dict[str, Any]:
    model, *rest = BISECTION
    assert main([command, model, address, *rest, *more, "--json"]) == 0
    return strictly(capsys.readouterr().out)


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)
def test_every_sample_is_explained_as_the_schema_says(
    sample: Sample, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = sample.sets[0]
    words = [str(sample.model), "--inputs", str(chosen.path), "--iterations", "2000"]
    assert main(["run", *words, "--json"]) == (1 if chosen.never_ends else 0)
    told: dict[str, Any] = strictly(capsys.readouterr().out)
    conforms(told, "run")
    flow = told["control_flow"]
    for region in told["explained"]:
        assert len(region["verdicts"]) + region["verdicts_left_out"] == region["executions"]
        if region["kind"] == "If":
            assert sum(count for _, count in region["tape"]) == region["executions"]
    assert sum(region["executions"] for region in told["explained"]) == len(flow)
    assert {one["address"] for region in told["explained"] for one in region["verdicts"]} <= {
        record["address"] for record in flow
    }
    assert main(["why", words[0], sample.address, *words[1:], "--json"]) == 0
    why = strictly(capsys.readouterr().out)
    conforms(why, "why")
    assert why["sentence"] in {
        one["sentence"] for region in told["explained"] for one in region["verdicts"]
    }
    if why["kind"] != "If" and why["iterations"]:
        assert main(["matrix", words[0], sample.address, *words[1:], "--json"]) == 0
        conforms(strictly(capsys.readouterr().out), "matrix")


def test_why_says_what_decided_with_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    (decided,) = asked("why", "halve_the_interval", capsys)["decided_by"]
    assert decided["operation"] == "Greater"
    assert [(one["address"].rpartition("/")[2], one["value"]) for one in decided["operands"]] == [
        ("width", 0.375),
        ("tolerance", 0.5),
    ]
    assert decided["margin"] == {"distance": 0.125, "otherwise": []}
    assert main(["why", BISECTION[0], "halve_the_interval", *BISECTION[1:]]) == 0
    text = capsys.readouterr().out
    assert text.startswith(
        "main/halve_the_interval: Stopped after 3 iterations because `keep_going` became false"
    )
    assert "main/halve_the_interval[2]/body/width = f32 []  0.375" in text


def test_a_run_that_hits_a_limit_is_explained_as_far_as_it_came(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = FOLDER / "collatz"
    inputs = str(model / "inputs" / "twenty_seven.npz")
    assert (
        main(["run", str(model / "model.xml"), "--inputs", inputs, "--iterations", "5", "--json"])
        == 1
    )
    told: dict[str, Any] = strictly(capsys.readouterr().out)
    conforms(told, "run")
    assert told["explained"][0]["verdicts"][0]["sentence"].startswith("Paused after 5 iterations")


def test_a_saved_run_is_asked_as_its_model_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "run.loopscope")
    model, *inputs = BISECTION
    assert main(["run", model, *inputs, "--save", saved]) == 0
    capsys.readouterr()
    for command, address in (
        ("why", "halve_the_interval"),
        ("value", "halve_the_interval[1]/body/width"),
        ("matrix", "halve_the_interval"),
    ):
        assert main([command, saved, address, "--json"]) == 0
        assert strictly(capsys.readouterr().out) == asked(command, address, capsys)
    for more, words in (
        (inputs, "has its own inputs"),
        (["--seconds", "3"], "has its own limits: --seconds applies to a model only"),
    ):
        assert main(["why", saved, "halve_the_interval", *more]) == 2
        assert words in capsys.readouterr().err


def test_why_without_an_address_tells_of_all_that_ran(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", *BISECTION]) == 0
    loop, branch = capsys.readouterr().out.splitlines()
    assert loop.startswith(
        "main/halve_the_interval: Stopped after 3 iterations because `keep_going` became false"
    )
    assert branch.startswith("main/halve_the_interval[2]/body/")
    assert " (the last of 3 times): Took the then branch because" in branch
    assert main(["why", *BISECTION, "--json"]) == 2
    assert "`loopscope run MODEL --json` explains all" in capsys.readouterr().err


def test_a_model_without_loops_has_nothing_to_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = builder.Graph("plain").parameter("x", "f32", [])
    loopscope.write_model(x.graph.model({"y": x + 1}), tmp_path / "m.xml")
    assert main(["why", str(tmp_path / "m.xml"), "--inputs", "x=1"]) == 0
    assert capsys.readouterr().out == "The model has no loops and no branches.\n"


def test_a_tape_tells_every_execution(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *BISECTION, "--json"]) == 0
    explained: Any = strictly(capsys.readouterr().out)["explained"]
    assert [region["tape"] for region in explained if region["kind"] == "If"] == [
        [["else", 1], ["then", 2]]
    ]


def test_value_in_each_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = asked("value", "halve_the_interval[1]/body/width", capsys)
    conforms(told, "value_answer")
    assert (told["value"], told["place"]) == (0.75, "main/halve_the_interval[1]/body/width")
    file = tmp_path / "x.npy"
    conforms(asked("value", "body/width", capsys, "-o", str(file)), "value_answer")
    assert np.load(file, allow_pickle=False) == np.float32(0.375)
    assert main(["value", BISECTION[0], "width", *BISECTION[1:]]) == 0
    assert capsys.readouterr().out == "main/halve_the_interval[2]/body/width = f32 []\n0.375\n"


def test_a_long_value_is_never_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = builder.Graph("long")
    x = graph.parameter("x", "i64", [5000])
    loopscope.write_model(graph.model({"y": x + 1}), tmp_path / "m.xml")
    np.savez(tmp_path / "in.npz", x=np.arange(5000))
    words = ["value", str(tmp_path / "m.xml"), "x", "--inputs", str(tmp_path / "in.npz")]
    assert main(words) == 0
    assert "..." not in (text := capsys.readouterr().out)
    assert " 2500 " in text
    assert main([*words, "--json"]) == 0
    assert strictly(capsys.readouterr().out)["value"] == list(range(5000))


def test_types_that_numpy_lacks_are_written_as_one_that_holds_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = builder.Graph("narrow")
    x = graph.parameter("x", "f32", [2])
    loopscope.write_model(
        graph.model({"y": builder.ops.convert(x, destination_type="bf16", name="Convert")}),
        tmp_path / "m.xml",
    )
    np.savez(tmp_path / "in.npz", x=np.array([1.5, -2], np.float32))
    words = [
        "value",
        str(tmp_path / "m.xml"),
        "Convert",
        "--inputs",
        str(tmp_path / "in.npz"),
        "-o",
        str(tmp_path / "y.npy"),
    ]
    assert main(words) == 0
    assert "which represents every bf16" in capsys.readouterr().out
    assert np.load(tmp_path / "y.npy", allow_pickle=False).tolist() == [1.5, -2]


def test_the_matrix_has_every_value_of_every_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    told = asked("matrix", "halve_the_interval", capsys)
    conforms(told, "matrix")
    assert told["iterations"] == [0, 1, 2]
    rows = {
        row["name"]: [cell.get("branch", cell.get("value")) for cell in row["cells"]]
        for row in told["rows"]
    }
    assert rows["width"] == [1.5, 0.75, 0.375]
    assert rows["which_half"] == ["else", "then", "then"]
    assert asked("matrix", "halve_the_interval", capsys, "--columns", "2")["iterations"] == [0, 2]
    assert main(["matrix", BISECTION[0], "halve_the_interval", *BISECTION[1:]]) == 0
    assert "width (value)             1.5   0.75  0.375\n" in capsys.readouterr().out


REGIONS = (
    "the loops and Ifs are 'main/halve_the_interval', 'main/halve_the_interval/body/which_half'"
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["why", BISECTION[0], "nothing", *BISECTION[1:]],
            f"there is no 'nothing' in main; {REGIONS}",
        ),
        (
            ["why", BISECTION[0], "width", *BISECTION[1:]],
            f"'width' in halve_the_interval has no body; {REGIONS}",
        ),
        (
            ["matrix", BISECTION[0], "nothing", *BISECTION[1:]],
            f"there is no 'nothing' in main; {REGIONS}",
        ),
        (
            ["value", BISECTION[0], "halve_the_interval[7]/body/width", *BISECTION[1:]],
            "iteration 7",
        ),
        (["matrix", BISECTION[0], "which_half", *BISECTION[1:]], "and not a loop; the loops are"),
        (["value", "missing.xml", "x"], "missing.xml"),
    ],
)
def test_what_has_no_answer_is_refused_in_a_sentence(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert expected in capsys.readouterr().err
    assert main([*words, "--json"]) == 2
    told: dict[str, Any] = strictly(capsys.readouterr().out)
    conforms(told, "refused")
    assert expected in told["message"]


def test_json_of_a_run_prunes_as_the_text_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = builder.Graph("unneeded")
    x = graph.parameter("x", "f32", [2])
    _, out = builder.while_loop(
        lambda i, v: i < 3, lambda i, v: (i + 1, v + 1.0), (graph.constant(0), x)
    )
    builder.while_loop(lambda i: i < 10, lambda i: (i + 1,), (graph.constant(0),))
    loopscope.write_model(graph.model({"out": out}), tmp_path / "m.xml")
    np.savez(tmp_path / "in.npz", x=np.zeros(2, np.float32))
    assert (
        main(["run", str(tmp_path / "m.xml"), "--inputs", str(tmp_path / "in.npz"), "--json"]) == 0
    )
    told: dict[str, Any] = strictly(capsys.readouterr().out)
    conforms(told, "run")
    assert [record["iterations"] for record in told["control_flow"]] == [3]


def test_a_run_for_a_few_tensors_has_no_explanation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "run",
        str(twos(tmp_path) / "twos.xml"),
        "--inputs",
        str(tmp_path / "in.npz"),
        "--fetch",
        "i",
        "--json",
    ]
    assert main(words) == 0
    told = strictly(capsys.readouterr().out)
    conforms(told, "run")
    assert "explained" not in told


def test_a_run_without_weights_is_told_as_the_schema_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "SHORT_SECONDS", -1.0)
    loopscope.save(dense(), tmp_path / "run.loopscope", weights=False)
    file = str(tmp_path / "run.loopscope")
    assert main(["why", file, "layers", "--json"]) == 0
    conforms(strictly(capsys.readouterr().out), "why")
    assert main(["matrix", file, "layers", "--json"]) == 0
    told: dict[str, Any] = strictly(capsys.readouterr().out)
    conforms(told, "matrix")
    cells = {row["name"]: row["cells"][3] for row in told["rows"]}
    assert cells["product"] == {"mean": None, "odd": False, "kind": "not kept"}
    assert cells["state"]["shape"] == [1, 80]
    assert main(["matrix", file, "layers"]) == 0
    assert "not kept" in capsys.readouterr().out
    assert main(["value", file, "layers[3]/body/product", "--json"]) == 2
    refused: dict[str, Any] = strictly(capsys.readouterr().out)
    assert refused["message"].startswith(
        "not kept: layers \u00b7 iteration 3 \u203a product depends on weights"
    )
    assert main(["value", file, "layers[3]/body/state", "--json"]) == 0
    conforms(strictly(capsys.readouterr().out), "value")
