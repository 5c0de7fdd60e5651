"""``loopscope test``: expectations on one run, on many, and between two models; reports; files that
are written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree

import loopscope
from loopscope.errors import InputError
from loopscope_app.cli import main
from loopscope_app.command.loop_tests import expectations as kinds
from loopscope_app.command.loop_tests.file import read_tests
from loopscope_samples import FOLDER

COLLATZ = FOLDER / "collatz" / "model.xml"
LOOP = "main/while_not_one"
BRANCH = f"{LOOP}/body/if_even"
DIVERGING = FOLDER / "diverging_training"


def write_tests(folder: Path, *lines: str, model: Path = COLLATZ, inputs: str = "number=3") -> str:
    """Write a file with one test and return its path."""
    path = folder / "loops.toml"
    head = ["[[test]]", f"model = '{model}'", f"inputs = '{inputs}'", "name = 'case'"]
    path.write_text("\n".join((*head, *lines)), "utf-8")
    return str(path)


ONE_RUN = [
    (f'iterations."{LOOP}" = 7', 0, ""),
    (f'iterations."{LOOP}" = "3..7"', 0, ""),
    (f'iterations."{LOOP}" = ">= 3 and < 8"', 0, ""),
    ('iterations."while_not_one" = 7', 0, ""),
    (f'iterations."{LOOP}" = "<= 6"', 1, "Stopped after 7 iterations because"),
    (f'ended."{LOOP}" = "condition"', 0, ""),
    (f'ended."{LOOP}" = ["trip_count", "condition"]', 0, ""),
    (f'ended."{LOOP}" = "trip_count"', 1, "became false"),
    (f'branch."{BRANCH}" = "ETETTTT"', 0, ""),
    (f'branch."{BRANCH}" = "ete..."', 0, ""),
    (f'branch."{BRANCH}" = "ETT..."', 1, "execution 2 took else, expected then"),
    (f'branch."{BRANCH}" = "ETE"', 1, "execution 3 took then, expected no more"),
    (f'branch."{BRANCH}" = "ETETTTTT"', 1, "it ran 7 times, expected 8"),
    (f'branch."{BRANCH}" = "then"', 1, "execution 0 took else"),
    (f'branch."{BRANCH}" = "then >= 70%"', 0, ""),
    (f'branch."{BRANCH}" = "then > 5"', 1, "then ran 5 of 7 times"),
    (f'branch."{LOOP}[2]/body/if_even" = "E"', 0, ""),
    ("finite = true", 0, ""),
    ('check = "no warnings"', 0, ""),
    ('check = "no LS906"', 0, ""),
    (f"same_control_flow_as = '{COLLATZ}'", 0, ""),
    (f"drift = {{ against = '{COLLATZ}', at_most = 0 }}", 0, ""),
    (f'iterations."{BRANCH}" = 7', 2, "expected a loop, got If"),
    (f'branch."{LOOP}" = "T"', 2, "expected an If, got Loop"),
    ('iterations."main/nothing" = 7', 2, "nothing"),
    ("same_control_flow_as = 'missing.onnx'", 2, "missing.onnx"),
]


@pytest.mark.parametrize(("line", "code", "words"), ONE_RUN, ids=[case[0] for case in ONE_RUN])
def test_one_run(
    line: str, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", write_tests(tmp_path, line)]) == code
    output = capsys.readouterr().out
    assert output.startswith({0: "ok case: ", 1: "FAIL case: ", 2: "ERROR case: "}[code])
    assert words in output


MANY_RUNS = [
    (f'iterations."{LOOP}" = "0..111"', 0, "0 to 111 in 30 runs"),
    (f'iterations."{LOOP}" = "<= 100"', 1, f"sample 26: {LOOP}: Stopped after 111 iterations"),
    (f'ended."{LOOP}" = ["condition", "initial_condition"]', 0, "30 runs"),
    (f'ended."{LOOP}" = "condition"', 1, "sample 0:"),
    (f'branch."{BRANCH}" = "then 50%..80%"', 0, "%"),
    (f'branch."{BRANCH}" = "else >= 50%"', 1, "%"),
    (f'branch."{BRANCH}" = "then"', 1, "sample 2: "),
    (f'branch."{BRANCH}" = "ETE"', 2, "a tape is verified on one run"),
    (f"same_control_flow_as = '{COLLATZ}'", 0, "none of 30 inputs"),
    ("finite = true", 0, "30 runs"),
    ("drift = { against = 'onnxruntime', at_most = 1 }", 2, "verified on one run"),
    ('iterations."main/number" = 3', 2, f"expected one of {LOOP}"),
]


@pytest.mark.parametrize(("line", "code", "words"), MANY_RUNS, ids=[case[0] for case in MANY_RUNS])
def test_many_runs(
    line: str, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", write_tests(tmp_path, line, inputs="number=1..30")]) == code
    assert words in capsys.readouterr().out


def test_a_failure_has_a_place_a_junit_case_and_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (inputs,) = DIVERGING.glob("inputs/too_fast.npz")
    path = write_tests(tmp_path, "finite = true", model=DIVERGING / "model.xml", inputs=str(inputs))
    report, pages = tmp_path / "junit.xml", tmp_path / "pages"
    words = ["test", path, "--json", "--junit", str(report), "--pages", str(pages)]
    assert main(words) == 1
    answer = json.loads(capsys.readouterr().out)
    (expectation,) = answer["tests"][0]["expectations"]
    assert expectation["state"] == "failed"
    assert "next_weight" in expectation["address"]
    suite = etree.parse(report).getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
    assert suite[0][0].get("message") == expectation["reason"]
    (page,) = answer["pages"]
    assert Path(page).parent == pages
    assert "next_weight" in Path(page).read_text("utf-8")


def test_a_written_file_holds_for_its_run_and_fails_for_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "loops.toml"
    words = ["test", "--write", str(COLLATZ), "--inputs", "number=3", "-o", str(target)]
    assert main(words) == 0
    text = target.read_text("utf-8")
    assert f'iterations."{LOOP}" = 7' in text
    assert f'branch."{BRANCH}" = "ETETTTT"' in text
    assert main(["test", str(tmp_path)]) == 0
    target.write_text(text.replace("number=3", "number=17"), "utf-8")
    assert main(["test", str(tmp_path)]) == 1
    assert main(words) == 2  # the file exists
    assert "it exists" in capsys.readouterr().err


MALFORMED = [
    ("[[test]", "not a TOML file"),
    ("", "[[test]]"),
    ("[[test]]\ninputs = 'n=1'", "expected the path of a model"),
    ("[[test]]\nmodel = 'm'", "it expects nothing"),
    ("[[test]]\nmodel = 'm'\niteration.x = 3", "'iteration' is not a key"),
    ("[[test]]\nmodel = 'm'\niterations.main.loop = 3", "in quotes"),
    ("[[test]]\nmodel = 'm'\niterations = 3", "expected an address"),
    ("[[test]]\nmodel = 'm'\niterations.x = 'many'", "'many' is not a bound"),
    ("[[test]]\nmodel = 'm'\niterations.x = '20%'", "expected a count"),
    ("[[test]]\nmodel = 'm'\niterations.x = true", "is not a bound"),
    ("[[test]]\nmodel = 'm'\nended.x = 'bored'", "'bored' is not an ending"),
    ("[[test]]\nmodel = 'm'\nended.x = []", "is not an ending"),
    ("[[test]]\nmodel = 'm'\nbranch.x = 'TXE'", "is not a tape or a branch"),
    ("[[test]]\nmodel = 'm'\ndrift = 0.1", "is not a drift"),
    ("[[test]]\nmodel = 'm'\ndrift = { at_most = 1 }", "is not a drift"),
    ("[[test]]\nmodel = 'm'\ndrift = { against = 'a', at_most = nan }", "is not a drift"),
    ("[[test]]\nmodel = 'm'\ndrift = { round = 5, at_most = 1 }", "is not a drift"),
    (
        f"[[test]]\nmodel = 'm'\ndrift = {{ against = 'a', at_most = 1{'0' * 400} }}",
        "is not a drift",
    ),
    (
        f"[[test]]\nmodel = 'm'\niterations.x = 1{'0' * 400}",
        "is not a bound, expected a whole number",
    ),
    ("[[test]]\nmodel = 'm'\ncheck = 'fine'", "'fine' is not a level"),
    ("[[test]]\nmodel = 'm'\nfinite = false", "expected true"),
    ("[[test]]\nmodel = 7\nfinite = true", "expected a text"),
]


@pytest.mark.parametrize(("text", "words"), MALFORMED, ids=[case[0][-40:] for case in MALFORMED])
def test_a_malformed_file_is_one_sentence(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "loops.toml"
    path.write_text(text, "utf-8")
    assert main(["test", str(path)]) == 2
    output, error = capsys.readouterr()
    assert not output
    assert words in error
    assert error.count("\n") == 1


def test_a_missing_file_and_a_large_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", str(tmp_path / "none.toml")]) == 2
    assert "No such file" in capsys.readouterr().err
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (1 << 21))
    with pytest.raises(InputError, match="at most"):
        read_tests(large)


def test_a_saved_run_is_verified_without_its_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "run.loopscope"
    assert main(["run", str(COLLATZ), "--inputs", "number=3", "--save", str(saved)]) == 0
    path = write_tests(tmp_path, f'iterations."{LOOP}" = 7', model=saved, inputs="")
    capsys.readouterr()
    assert main(["test", path]) == 0


@pytest.mark.parametrize(
    ("text", "number", "holds"),
    [("7", 7, True), ("= 7", 8, False), ("<7", 6, True), ("1e3", 1000, True), ("2..3", 4, False)],
)
def test_bounds(text: str, number: int, holds: bool) -> None:
    assert kinds.parse_bound(text, "x").holds(number) is holds


PLUGIN = f"""
def test_loop(loopscope):
    run = loopscope("{COLLATZ}", "number=3")
    run.iterations("{LOOP}", 7)
    run.ended("{LOOP}", "condition")
    run.branch("{BRANCH}", "ETE...")
    run.drift(against="{COLLATZ}", at_most=0)
    run.same_control_flow_as("{COLLATZ}")
    run.check()
    run.finite()

def test_fails(loopscope):
    loopscope("{COLLATZ}", "number=1..9").iterations("{LOOP}", "<= 3")
"""


def test_the_plugin_collects_files_and_offers_a_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_loops.py").write_text(PLUGIN, "utf-8")
    write_tests(tmp_path, f'iterations."{LOOP}" = 8')
    words = ["-p", "loopscope_app.pytest_plugin", "-p", "no:cacheprovider", "-q", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert "Stopped after 7 iterations because" in done.stdout
    assert "sample 2: " in done.stdout


def test_traces_are_verified_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, factor in (("sound", 1.0), ("wrong", 1.001)):
        with loopscope.trace(tmp_path / f"{name}.loopscope") as trace:
            state = 1.0
            for step in trace.iterations("decode", range(20)):
                state = state * 0.9 * (factor if step == 12 else 1.0)
                trace.record(state=state)
                if trace.branch("stop", state < 0.2):
                    break
    path = write_tests(
        tmp_path,
        'iterations."decode" = "<= 16"',
        'branch."decode/body/stop" = "EEE..."',
        "drift = { against = 'wrong.loopscope', at_most = 1e-5 }",
        model=Path("sound.loopscope"),
        inputs="",
    )
    assert main(["test", path]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["ok", "ok", "FAIL"]
    assert "iteration 12" in lines[2]
