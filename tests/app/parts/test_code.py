"""The code panel: the current line in step with the debugger, values beside lines, branches that
did not run, the file that runs.
"""

from __future__ import annotations

import io
import runpy
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx.parser import parse_model
from streamlit.testing.v1 import AppTest

import loopscope
from loopscope.executor.plan.planner import plan_of
from loopscope.explain.code import listing
from loopscope.explain.code_parts import Listing
from loopscope_app.describe.code_moment import branch_lines, code_moment, current_lines
from loopscope_app.describe.signatures import bindings
from loopscope_app.parts.dock import code_tab
from loopscope_samples import sample
from tests.app.components import sent, tabs
from tests.engine.explain.runs import begun, finished

Visit = Callable[..., AppTest]


def text_at(found: Listing, numbers: list[int]) -> list[str]:
    return [found.lines[number].text.strip() for number in numbers]


@pytest.mark.parametrize("name", ["collatz", "count_primes", "decoder", "slice_and_concatenate"])
def test_every_moment_has_a_line(name: str) -> None:
    debugger = finished(name)
    found = listing(debugger.plan)
    for step in range(debugger.steps + 1):
        debugger.seek(step)
        assert current_lines(debugger, found), debugger.cursor


def test_a_loop_is_entered_at_its_header_and_ended_at_its_last_line() -> None:
    debugger = begun("for_loop")
    found = listing(debugger.plan)
    debugger.seek("main/for_each_year")
    assert text_at(found, current_lines(debugger, found))[0].startswith(("for ", "while "))
    debugger.seek("main/for_each_year[0]/body")
    assert (
        current_lines(debugger, found) == [found.lines_of("main/for_each_year")[-1] - 1]
        or debugger.cursor.kind != "end"
    )
    debugger.run()
    assert text_at(found, current_lines(debugger, found))[0].startswith("return")


def test_the_branch_that_did_not_run_is_dimmed() -> None:
    debugger = finished("collatz")
    found = listing(debugger.plan)
    shown = code_moment(debugger, found, "")
    address = "main/while_not_one/body/if_even"
    assert set(branch_lines(found, address, "else")) <= set(shown["dim"])
    assert not set(branch_lines(found, address, "then")) & set(shown["dim"])


def test_values_stand_beside_their_lines() -> None:
    debugger = finished("for_loop")
    found = listing(debugger.plan)
    hints: dict[str, str] = code_moment(debugger, found, "")["hints"]
    number = found.lines_of("main/for_each_year/body/next_balance")[0] - 1
    assert hints[str(number)].startswith("1628")


def test_the_panel_is_in_step_and_selects(opened: Visit) -> None:
    app = opened(model="sample:for_loop", node="main/for_each_year/body/next_balance", step="4")
    tabs(app, "dock_tab").set_value("Code").run()
    assert not app.exception
    lines, shown = sent(app, "code")["lines"], sent(app, "code_moment")
    assert len(shown["current"]) == 1
    assert "next_balance" in lines[shown["chosen"][0]][0]
    assert sent(app, "code")["hash"] == shown["hash"]


def test_a_body_alone_is_code_too(opened: Visit) -> None:
    app = opened(model="sample:for_loop", body="main/for_each_year/body", step="4")
    tabs(app, "dock_tab").set_value("Code").run()
    assert not app.exception
    assert any(line[0].startswith("def ") for line in sent(app, "code")["lines"])


@pytest.mark.parametrize("name", ["for_loop", "decoder", "keras_gru"])
def test_the_downloaded_file_prints_what_the_run_gave(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    debugger, one = finished(name), sample(name)
    assert one is not None
    (tmp_path / "main.py").write_bytes(
        code_tab.packed_file(debugger.plan, "main", bindings(debugger.model, one.sets[0].arrays()))
    )
    runpy.run_path(str(tmp_path / "main.py"), run_name="__main__")
    assert capsys.readouterr().out == "".join(f"{output!s}\n" for output in debugger.result.outputs)


def test_a_file_with_weights_lies_beside_them_in_an_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had the name of the last weight. The model is one of ONNX, whose operations are looked
    for among ONNX's.
    """
    numbers = ", ".join(map(str, range(100)))
    text = f"""<ir_version: 9, opset_import: ["" : 18]> main (float[10] x) => (float[10] y, float[10] z) {{
        w = Constant <value = float[10,10] {{{numbers}}}> ()
        y = MatMul (w, x)
        z = Softmax (y)
    }}"""
    model = loopscope.read_model(parse_model(text).SerializeToString())
    given = np.linspace(0, 0.01, 10, dtype=np.float32)
    packed = code_tab.packed_file(plan_of(model), "main", [given], "weighed")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.namelist() == ["weighed.py", "weights.npz"]
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("weighed.py", run_name="__main__")
    assert capsys.readouterr().out == "".join(
        f"{output!s}\n" for output in loopscope.run(model, [given]).outputs
    )
