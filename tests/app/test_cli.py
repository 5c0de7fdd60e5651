"""The command: exit codes, sentences, strict JSON, files."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import engine
from app.cli import main
from app.command.launch import free_port, settings
from app.command.run import write_outputs
from engine import build
from sample_models import FOLDER

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


def test_run_writes_outputs_and_json(inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", str(COLLATZ / "model.xml"), "--inputs", str(inputs), "--outputs", str(tmp_path / "out.npz"), "--json"])
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
                assert array.tolist() == output["value"]


def test_run_for_people(inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(COLLATZ / "model.xml"), "--inputs", str(inputs)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("finished\n")
    assert "iteration" in told


def test_limits_are_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with np.load(COLLATZ / "inputs" / "twenty_seven.npz") as arrays:
        np.savez(tmp_path / "in.npz", **{name: arrays[name] for name in arrays.files})
    code = main(["run", str(COLLATZ / "model.xml"), "--inputs", str(tmp_path / "in.npz"), "--iterations", "5", "--json"])
    told = strictly(capsys.readouterr().out)
    assert (code, told["state"]) == (1, "limit")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "missing.xml"],
        ["run", str(COLLATZ / "model.xml")],
        ["run", str(COLLATZ / "model.xml"), "--inputs", "missing.npz"],
        ["run", str(COLLATZ / "model.xml"), "--inputs", str(COLLATZ / "model.xml")],
        ["run", str(COLLATZ / "model.bin")],
        ["missing.xml", "--no-browser"],
        ["ops", "no such operation"],
    ],
)
def test_what_is_bad_is_one_sentence_and_exit_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("loopscope: ")
    assert "Traceback" not in told.err
    assert len(told.err.strip().splitlines()) == 1


def test_bad_models_are_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "missing.xml", "--json"]) == 2
    assert strictly(capsys.readouterr().out)["state"] == "refused"


def test_check_explains_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", "LS404"]) == 0
    assert capsys.readouterr().out.startswith("LS404 outer-input-unused (error)")


def test_check_says_whether_a_model_can_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(COLLATZ / "model.xml"), "--json"]) == 0
    assert strictly(capsys.readouterr().out)["runnable"] is True


def test_ops_lists_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops"]) == 0
    table = capsys.readouterr().out
    assert "Loop" in table
    assert "arithmetic" in table


def test_running_does_not_load_the_app() -> None:
    code = "import sys, app.cli, app.command.run; sys.exit('streamlit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_server_stays_at_home() -> None:
    told = settings("127.0.0.1", 8600)
    assert told["server.address"] == "127.0.0.1"
    assert told["browser.gatherUsageStats"] is False
    assert told["runner.postScriptGC"] is False
    assert 8501 <= free_port("127.0.0.1") < 8601


def test_a_port_that_is_taken_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["--no-browser", "--port", str(port)]) == 2
    assert capsys.readouterr().err == f"loopscope: port {port} is taken: choose another with --port\n"


def test_outputs_named_like_arguments_of_numpy_are_kept(tmp_path: Path) -> None:
    graph = build.Graph("names")
    x = graph.parameter("x", "f32", [2])
    model = graph.model({"file": x + 1, "allow_pickle": x + 2, "plain": x + 3})
    write_outputs(str(tmp_path / "out.npz"), model, engine.run(model, [np.zeros(2, np.float32)]).outputs)
    with np.load(tmp_path / "out.npz", allow_pickle=False) as stored:
        assert {name: float(stored[name][0]) for name in stored.files} == {"file:0": 1, "allow_pickle:1": 2, "plain": 3}
