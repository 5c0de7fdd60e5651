"""Traces on the command line: import of dumps of a C program, drift, and what needs a model."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import loopscope
from loopscope_app.cli import main

PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static void dump(const char *folder, int step, const float *values, int count) {
    char path[4096], header[118];
    snprintf(path, sizeof path, "%s/state_step%d.npy", folder, step);
    FILE *file = fopen(path, "wb");
    memset(header, ' ', sizeof header);
    int length = sprintf(header,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }", count);
    header[length] = ' ';
    header[117] = '\n';
    uint16_t size = sizeof header;
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fwrite(&size, 2, 1, file);
    fwrite(header, 1, sizeof header, file);
    fwrite(values, sizeof *values, count, file);
    fclose(file);
}
int main(int count, char **words) {
    float state[3] = {1, 2, 3};
    for (int step = 0; step < 30; step++) {
        for (int i = 0; i < 3; i++) state[i] = state[i] * 0.9f + step;
        if (step == 17 && count > 2) state[1] *= 1.01f;
        dump(words[1], step, state, 3);
    }
    return 0;
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A compiled C program that dumps its state."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = tmp_path / "loop.c"
    source.write_text(PROGRAM)
    target = tmp_path / "loop"
    subprocess.run([compiler, str(source), "-o", str(target)], check=True)
    return target


def imported(program: Path, *words: str) -> str:
    """The trace of a run of the program."""
    name = "-".join(("trace", *words))
    folder = program.parent / f"dumps-{name}"
    folder.mkdir()
    subprocess.run([str(program), str(folder), *words], check=True)
    target = program.parent / f"{name}.loopscope"
    pattern = "{name}_step{step}.npy"
    assert main(["trace", "import", str(folder), "--pattern", pattern, "-o", str(target)]) == 0
    return str(target)


def test_two_runs_of_a_c_program(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left, right = imported(program), imported(program, "wrong")
    report = program.parent / "report.xml"
    code = main(["drift", left, right, "--fail-over", "1e-3", "--junit", str(report)])
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == [f"{left} contains 30 files", f"{right} contains 30 files"]
    assert code == 1
    assert printed[2].startswith("Begins in `step` at iteration 17 in `state`")
    (suite,) = ET.fromstring(report.read_text()).iter("testsuite")
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("1", "1")
    (failure,) = suite.iter("failure")
    assert "begins at main/step[17]/body/state" in failure.attrib["message"]
    assert main(["drift", left, left, "--fail-over", "0", "--junit", str(report)]) == 0
    assert not [*ET.fromstring(report.read_text()).iter("failure")]


def recorded(path: Path) -> str:
    with loopscope.trace(path) as trace:
        for step in trace.iterations("decode", range(5)):
            trace.record(x=np.float32(1 / (3 - step)) if step != 3 else np.float32(np.inf))
            if trace.branch("stop", step == 3):
                break
    return str(path)


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["why", "{}"], "main/decode: Ended after 4 of 5 iterations: `stop` was true."),
        (["run", "{}"], "main/decode: 4 iterations, then `stop` was true"),
        (
            ["run", "{}", "--first-infinity"],
            "The first infinity is computed by decode · iteration 3 › x.",
        ),
        (["value", "{}", "main/decode[1]/body/x"], "0.5"),
        (["matrix", "{}", "main/decode"], "stop (branch)"),
        (["check", "{}"], "No problems found."),
        (["drift", "{}", "{}"], "All 4 values are equal."),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_commands_that_take_a_run(
    words: list[str], printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path / "x.loopscope")
    assert main([path if word == "{}" else word for word in words]) == 0
    assert printed in capsys.readouterr().out


def test_a_page_of_a_trace(tmp_path: Path) -> None:
    path, page = recorded(tmp_path / "x.loopscope"), tmp_path / "x.html"
    assert main(["page", path, "-o", str(page)]) == 0
    assert "was true" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "{}"],
        ["clock", "{}"],
        ["fate", "{}"],
        ["precision", "{}", "--to", "int8"],
        ["sweep", "{}", "--inputs", "x=1..3"],
        ["gradients", "{}", "--of", "x", "--with-respect-to", "y"],
        ["convert", "{}", "out.xml"],
        ["drift", "{}", "--round", "*=bf16"],
        ["run", "{}", "--save", "y.loopscope"],
    ],
    ids=lambda words: words[0],
)
def test_what_needs_operations_is_refused(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = recorded(tmp_path / "x.loopscope")
    assert main([path if word == "{}" else word for word in words]) == 2
    captured = capsys.readouterr()
    assert "trace" in captured.err
    assert len(captured.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pattern", "{name}_foo{step}.npy"], "no file in .* matches '{name}_foo{step}.npy'"),
        (["--pattern", "{name}_{step"], "is not a pattern"),
        (["--pattern", "{a}{a}"], "is not a pattern"),
        (["--pattern", "bad_step{step}.npy"], "bad_step1.npy cannot be read"),
        (["--pattern", "{name}_step{step}.npy", "--order", "layer"], "--order names"),
        (["--pattern", "x_step{step}.npy", "--axis", "0"], "has {step} already"),
        (["--pattern", "x_step0.npy", "--axis", "5"], "--axis 5: 'x_step0' has the shape"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_imports_that_are_refused(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x_step0.npy", np.zeros(3))
    (tmp_path / "bad_step1.npy").write_bytes(b"\x80\x04pickled")
    target = tmp_path / "out.loopscope"
    assert main(["trace", "import", str(tmp_path), *words, "-o", str(target)]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    for part in message.split(" .* "):
        assert part in error
    assert not target.exists()


def test_an_array_of_all_steps_is_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "all.npz", state=np.arange(12).reshape(6, 2), loss=np.arange(6.0))
    target = tmp_path / "out.loopscope"
    words = ["--pattern", "all.npz", "--axis", "0", "-o", str(target)]
    assert main(["trace", "import", str(tmp_path), *words]) == 0
    run = loopscope.load(target)
    assert run.value("main/step[4]/body/state").tolist() == [8, 9]
    assert run.value("main/step[5]/body/loss") == 5
    assert capsys.readouterr().out == f"{target} contains 1 file\n"
