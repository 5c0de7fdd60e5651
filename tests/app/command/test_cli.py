"""The command: exit codes, sentences, strict JSON, files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.peers import ComparisonReport, ValueDifference
from loopscope_app.cli import COMMANDS, main
from loopscope_app.command.report import describe
from loopscope_app.command.run import write_outputs
from loopscope_samples import FOLDER

COLLATZ = FOLDER / "collatz"


def strictly(text: str) -> dict[str, object]:
    """JSON without the constants that only Python knows."""

    def refuse(constant: str) -> object:
        raise AssertionError(f"{constant} is no JSON")

    found: dict[str, object] = json.loads(text, parse_constant=refuse)
    return found


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    stored = next(iter(sorted((COLLATZ / "inputs").glob("*.npz"))))
    with np.load(stored) as arrays:
        np.savez(tmp_path / "in.npz", **{name: arrays[name] for name in arrays.files})
    return tmp_path / "in.npz"


def test_run_writes_outputs_and_json(
    inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(
        [
            "run",
            str(COLLATZ / "model.xml"),
            "--inputs",
            str(inputs),
            "--outputs",
            str(tmp_path / "out.npz"),
            "--json",
        ]
    )
    assert code == 0
    told = strictly(capsys.readouterr().out)
    assert told["state"] == "finished"
    assert isinstance(told["control_flow"], list)
    assert {"address", "kind", "iterations", "ended_by", "branch"} == set(told["control_flow"][0])
    with np.load(tmp_path / "out.npz", allow_pickle=False) as stored:
        assert isinstance(told["outputs"], list)
        for output in told["outputs"]:
            array = stored[(output["names"] or [output["name"]])[0]]
            assert list(array.shape) == output["shape"]
            if "value" in output:
                assert np.array_equal(np.array(output["value"], array.dtype), array)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_floats_are_told_with_the_shortest_text_that_their_type_reads(kind: str) -> None:
    output = loopscope.read_model(COLLATZ / "model.xml").outputs[0]
    assert describe(output, np.array([0.1, np.nan, -0.0], kind))["value"] == [0.1, "NaN", -0.0]
    long = describe(output, np.full(1000, 0.1, kind))
    assert long["first"] == long["last"] == [0.1] * 8
    assert long["summary"]["max"] == float(np.array(0.1, kind))


def test_run_for_people(inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(COLLATZ / "model.xml"), "--inputs", str(inputs)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("finished\n")
    assert "iteration" in told


DIVERGING: dict[str, Any] = {"weight": np.float32(1), "most_steps": np.int64(9)}


@pytest.mark.parametrize(("rate", "made"), [(1e30, True), (0.1, False)])
def test_the_first_nan_is_told_when_asked_for(
    rate: float, made: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "in.npz", learning_rate=np.float32(rate), **DIVERGING)
    words = [
        "run",
        str(COLLATZ.parent / "diverging_training" / "model.xml"),
        "--inputs",
        str(tmp_path / "in.npz"),
        "--first-nan",
    ]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert ("The first NaN is computed by while_training · iteration " in told) == made
    assert ("No operation computed a NaN." in told) != made
    assert main([*words, "--json"]) == 0
    found = strictly(capsys.readouterr().out)["first_nan"]
    assert isinstance(found, dict)
    assert (found["address"] is not None, found["step"] is not None, found["certain"]) == (
        made,
        made,
        True,
    )
    assert main([*words, "--json", "--iterations", "2"]) == 1
    assert "first_nan" in strictly(capsys.readouterr().out)


def test_limits_are_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with np.load(COLLATZ / "inputs" / "twenty_seven.npz") as arrays:
        np.savez(tmp_path / "in.npz", **{name: arrays[name] for name in arrays.files})
    code = main(
        [
            "run",
            str(COLLATZ / "model.xml"),
            "--inputs",
            str(tmp_path / "in.npz"),
            "--iterations",
            "5",
            "--json",
        ]
    )
    told = strictly(capsys.readouterr().out)
    assert (code, told["state"]) == (1, "limit")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "missing.xml"],
        ["run", str(COLLATZ / "model.xml")],
        ["run", str(COLLATZ / "model.xml"), "--inputs", "missing.npz"],
        ["run", str(COLLATZ / "model.xml"), "--inputs", str(COLLATZ / "model.xml")],
        [
            "run",
            str(COLLATZ / "model.xml"),
            "--inputs",
            str(COLLATZ / "inputs" / "three.npz"),
            "--iterations",
            "-1",
        ],
        [
            "run",
            str(COLLATZ / "model.xml"),
            "--inputs",
            str(COLLATZ / "inputs" / "three.npz"),
            "--seconds",
            "nan",
        ],
        ["run", str(COLLATZ / "model.bin")],
        ["run", "hostile\x1b[31m\u202e.xml"],
        ["render", str(COLLATZ / "model.xml"), "-o", "never.svg", "--body", "main/nothing/body"],
        ["check", "missing.xml"],
        ["--ops"],
        ["--server", "--ops", "my_ops.py"],
        ["missing.xml", "--no-browser"],
        ["ops", "no such operation"],
        ["--sample", "no_such_sample", "--no-browser"],
    ],
)
def test_what_is_bad_is_one_sentence_and_exit_code_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("loopscope: ")
    assert "Traceback" not in told.err
    assert len(told.err.strip().splitlines()) == 1
    assert told.err.strip().isprintable()


def test_bad_models_and_inputs_are_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["missing.xml"], [str(COLLATZ / "model.xml"), "--inputs", "missing.npz"]):
        assert main(["run", *words, "--json"]) == 2
        assert strictly(capsys.readouterr().out)["state"] == "refused"
    assert main(["check", "missing.xml", "--json"]) == 2
    told = strictly(capsys.readouterr().out)
    assert told["runnable"] is False
    assert "missing.xml" in str(told["message"])


def test_one_array_without_a_name_is_no_set_of_inputs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "three.npy", np.int64(3))
    assert main(["run", str(COLLATZ / "model.xml"), "--inputs", str(tmp_path / "three.npy")]) == 2
    assert (
        "holds one array without a name: an .npz file with an array for each name is expected"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("damage", ["nothing", "text", "cut", "pickle"])
def test_damaged_inputs_are_told_without_the_words_of_numpy(
    damage: str, inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged.npz"
    if damage == "pickle":
        np.savez(damaged, number=np.array([None], object))
    else:
        damaged.write_bytes(
            {"nothing": b"", "text": b"number = 3", "cut": inputs.read_bytes()[:-30]}[damage]
        )
    assert main(["run", str(COLLATZ / "model.xml"), "--inputs", str(damaged)]) == 2
    assert "is not an .npz file of plain arrays" in (told := capsys.readouterr().err)
    assert "allow_pickle" not in told


def _piped(words: list[str], read: int, **environment: str) -> tuple[bytes, bytes, int]:
    """What a command of its own process writes into a pipe that is closed after so many bytes
    (0: never).
    """
    command = [
        sys.executable,
        "-c",
        "import sys; from loopscope_app.cli import main; sys.exit(main())",
        *words,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment}
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        told = process.stdout.read(read or -1)
        process.stdout.close()
        return told, process.stderr.read(), process.wait()


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    _, complaints, code = _piped(
        [
            "run",
            str(COLLATZ / "model.xml"),
            "--inputs",
            str(COLLATZ / "inputs" / "three.npz"),
            "--json",
        ],
        5,
    )
    assert (complaints, code) == (b"", 0)
    command = [
        sys.executable,
        "-c",
        "import sys; from loopscope_app.cli import main; sys.exit(main())",
        "ops",
        "Loop",
    ]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.stderr, done.returncode) == (b"", 0)


def test_a_terminal_without_unicode_shows_every_name(tmp_path: Path) -> None:
    told, complaints, code = _piped(
        ["convert", str(COLLATZ / "model.xml"), str(tmp_path / "k\u00f6rper.xml")],
        0,
        PYTHONIOENCODING="ascii",
    )
    assert (complaints, code) == (b"", 0)
    assert b"k\\xf6rper.xml" in told


def test_check_explains_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "LS404"]) == 0
    assert capsys.readouterr().out.startswith("LS404 outer-input-unused (error)")


def test_check_says_whether_a_model_can_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(COLLATZ / "model.xml"), "--json"]) == 0
    assert strictly(capsys.readouterr().out)["runnable"] is True


def test_running_does_not_load_the_app() -> None:
    code = "import sys, loopscope_app.cli, loopscope_app.command.run; sys.exit('streamlit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_outputs_named_like_arguments_of_numpy_are_kept(tmp_path: Path) -> None:
    graph = builder.Graph("names")
    x = graph.parameter("x", "f32", [2])
    model = graph.model({"file": x + 1, "allow_pickle": x + 2, "plain": x + 3})
    write_outputs(
        str(tmp_path / "out.npz"),
        model.outputs,
        loopscope.run(model, [np.zeros(2, np.float32)]).outputs,
    )
    with np.load(tmp_path / "out.npz", allow_pickle=False) as stored:
        assert {name: float(stored[name][0]) for name in stored.files} == {
            "file:0": 1,
            "allow_pickle:1": 2,
            "plain": 3,
        }


def test_compare_names_the_first_value_that_differs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = sorted((COLLATZ / "inputs").glob("*.npz"))[0]
    assert main(["compare", str(COLLATZ / "model.xml"), "--inputs", str(stored)]) == 0
    assert capsys.readouterr().out.startswith("All outputs agree with OpenVINO 20")
    assert main(["compare", str(COLLATZ / "model.xml"), "--inputs", str(stored), "--json"]) == 0
    told = strictly(capsys.readouterr().out)
    assert told["agrees"] is True
    assert told["first"] is None
    assert main(["compare", str(COLLATZ / "model.xml")]) == 2
    assert "no value is given for 'number'" in capsys.readouterr().err
    assert main(["compare", str(COLLATZ / "model.xml"), "--json"]) == 2
    told = strictly(capsys.readouterr().out)
    assert told["agrees"] is None
    assert "no value is given for 'number'" in str(told["sentence"])
    found = ValueDifference("main/loop[1]/body/Add", 7, "1", "2")
    report = ComparisonReport(
        "OpenVINO 1",
        (replace(found, address="y"),),
        found,
        12,
        3,
        {"in a body or branch that did not run": 2},
    )
    monkeypatch.setattr("loopscope_app.command.compare.against", lambda *_, **__: report)
    assert main(["compare", str(COLLATZ / "model.xml"), "--inputs", str(stored)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "loop · iteration 1 › Add is the first value that differs: 2 in OpenVINO 1, 1 here.",
        "  output y: 2 in OpenVINO 1, 1 here",
        "  not compared: 2 in a body or branch that did not run",
    ]
    inside = replace(
        report, outputs=(), first=replace(found, address="main/" + "layer%2F" * 300 + "Add")
    )
    monkeypatch.setattr("loopscope_app.command.compare.against", lambda *_, **__: inside)
    assert main(["compare", str(COLLATZ / "model.xml"), "--inputs", str(stored)]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    assert line.endswith(
        "layer › Add is the first value that differs: 2 in OpenVINO 1, 1 here. The outputs of the model agree."
    )


def test_a_word_that_is_no_file_may_be_meant_as_a_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["rnu", "--no-browser"]) == 2
    assert (
        capsys.readouterr().err
        == "loopscope: rnu: there is no such file, and no such command: `loopscope --help` lists the commands\n"
    )


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ("", "{folder}: expected a file to write to, got a folder"),
        ("no/out.npz", "{path}: cannot be written, the folder '{folder}/no' does not exist"),
    ],
)
def test_outputs_that_have_no_place_are_told_before_the_run(
    outputs: str,
    said: str,
    inputs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(loopscope.Session, "run")
    path = tmp_path / outputs
    assert (
        main(["run", str(COLLATZ / "model.xml"), "--inputs", str(inputs), "--outputs", str(path)])
        == 2
    )
    assert capsys.readouterr().err == f"loopscope: {said.format(folder=tmp_path, path=path)}\n"


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="a device that is always full stands for a disk that is"
)
def test_a_full_disk_does_not_hide_what_the_run_did(
    inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["run", str(COLLATZ / "model.xml"), "--inputs", str(inputs), "--outputs", "/dev/full"])
        == 2
    )
    told = capsys.readouterr()
    assert told.out.startswith("finished\n")
    assert told.err == "loopscope: /dev/full: No space left on device\n"


@pytest.mark.parametrize("options", [[], ["--json"], ["--first-nan"]])
def test_ctrl_c_tells_where_the_run_was(options: list[str], tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", number=np.int64(0))  # halved for ever, and nobody has proved that
    script = (
        "import signal, sys; from loopscope_app.cli import main; from loopscope.executor.machine.limits import RunControl\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "look, looks = RunControl.check, iter([False] * 30 + [True])\n"
        "def check(self, held):\n"
        "    if next(looks, False):\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    look(self, held)\n"
        "RunControl.check = check\n"
        "sys.exit(main())"
    )
    words = ["run", str(COLLATZ / "model.xml"), "--inputs", str(tmp_path / "in.npz"), *options]
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stderr, done.returncode) == ("", 130)
    if "--json" in options:
        told = strictly(done.stdout)
        assert told["state"] == "stopped"
        assert isinstance(told["control_flow"], list)
        assert told["control_flow"][0]["ended_by"] == "stopped"
    else:
        assert re.match(
            r"stopped: main/while_not_one\[\d+\]/body/[\w/]+: the run was stopped\n", done.stdout
        )
        assert re.search(
            r"main/while_not_one: [\d,]+ iterations, then the run was stopped", done.stdout
        )


def test_options_are_written_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    """Or ``--serve`` would be a server that takes ``--ops``."""
    more = {
        "render": "-o model.svg",
        "convert": "out.xml",
        "gradients": "--of y --with-respect-to x",
        "sweep": "--inputs x=1..2",
        "trace": "folder --pattern {name}.npy -o run.loopscope",
        "cut": "-o part.onnx",
        "reproduce": "--nan -o part.onnx",
    }
    more |= {"precision": "--to bf16", "page": "-o page.html", "mcp": "--folder ."} | dict.fromkeys(
        ("why", "value", "matrix"), "main/loop"
    )
    for words in (
        ["--serve"],
        *(
            [
                command,
                "import" if command == "trace" else "model.xml",
                *more.get(command, "").split(),
                "--js",
            ]
            for command in COMMANDS
        ),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(words)
        assert re.search(f"unrecognized arguments: .*{words[-1]}", capsys.readouterr().err)


@pytest.mark.parametrize("tolerance", ["-1", "nan", "small"])
def test_a_tolerance_is_a_number(tolerance: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["compare", str(COLLATZ / "model.xml"), "--tolerance", tolerance])
    assert (
        f"{tolerance!r} is not a tolerance: expected a number from 0 on" in capsys.readouterr().err
    )


def test_an_invalid_model_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        (COLLATZ / "model.xml")
        .read_text()
        .replace('type="Greater"', 'type="Nothing"')
        .replace('type="NotEqual"', 'type="Nothing"')
    )
    (tmp_path / "model.xml").write_text(text)
    (tmp_path / "model.bin").write_bytes((COLLATZ / "model.bin").read_bytes())
    assert main(["run", str(tmp_path / "model.xml")]) == 2
    assert re.match(
        r"loopscope: The model opens, but cannot be run: \d errors?; LS301 ",
        capsys.readouterr().err,
    )


@pytest.mark.parametrize("command", ["run", "check"])
def test_too_little_memory_for_a_model_is_a_sentence(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exhausted(path: str) -> loopscope.Model:
        raise MemoryError

    monkeypatch.setattr(loopscope, "read_model", exhausted)
    assert main([command, "model.xml"]) == 2
    assert capsys.readouterr().err == "loopscope: there is not enough memory for this model\n"


def test_run_prints_the_code_that_it_generates(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "run",
        str(COLLATZ / "model.xml"),
        "--inputs",
        str(COLLATZ / "inputs/seventeen.npz"),
        "--generated",
    ]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "generated for main/while_not_one:\n\ndef loop(run, frame):\n" in told
    assert "# main/while_not_one/body/next_steps" in told
    compile(told[told.index("def loop") :], "told", "exec")


def test_generated_code_has_no_place_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", str(COLLATZ / "model.xml"), "--generated", "--json"])
    assert "--generated prints Python" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_every_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert f"\n  {command} " in capsys.readouterr().out


def test_ops_with_a_name_tells_the_meaning_of_each_port_and_attribute(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["ops", "GATHER"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Gather-7, 8" in lines
    assert "    indices: Positions along the axis that is indexed." in lines
    assert "    result: The slices of data at the indices." in lines
    assert "    batch_dims: The number of leading batch axes that data and indices share." in lines
