"""Compare with the program that a model was converted from: what is asked for, three columns,
and a run of ours that does not finish.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

import loopscope
from loopscope.peers.source.program import SourceRun
from loopscope_app.state.view_choices import SOURCE
from tests.app.components import sent
from tests.app.screens.test_debugger import page_text
from tests.engine.peers.sources.cases import TORCH, Case

Visit = Callable[..., AppTest]
_PRINTED = re.compile(r"enter (\w+) in the page")
NONE, THREE = (
    next(one for one in TORCH if (one.program, one.name) == ("doubling", name))
    for name in ("none", "three")
)


@pytest.fixture
def beside(
    opened: Visit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Case, str], AppTest]:
    """Compare of a file with a source that did what the framework once did, for the inputs of a
    case.
    """
    monkeypatch.setattr("loopscope_app.actions.other_runs.PATIENCE", 60.0)

    def visit(case: Case, where: str) -> AppTest:
        def stored(*_: object) -> SourceRun:
            return case.did()

        for module in ("source.compare_source", "separate_results"):
            monkeypatch.setattr(f"loopscope.peers.{module}.run_source", stored)
        monkeypatch.setattr(
            "loopscope_app.actions.other_runs.bindings",
            lambda *_: [case.inputs["n"], case.inputs["x"]],
        )
        app = opened(model=str(case.model), view="compare")
        app.segmented_control("compare_kind").set_value(SOURCE).run()
        app.text_input("compare_source_where").set_value(where).run()
        app.button("compare_run").click().run()
        assert not app.exception
        if found := _PRINTED.findall(capsys.readouterr().out):
            assert "a source program runs code on this computer" in app.error[0].value
            app.text_input("compare_source_code").set_value(found[-1]).run()
            app.button("compare_run").click().run()
            assert not app.exception
        return app

    return visit


def test_three_columns_and_where_they_part(beside: Callable[[Case, str], AppTest]) -> None:
    app = beside(NONE, "programs:Doubling")
    assert "torch: 0 iterations; the file: 1" in page_text(app)
    (cells,) = sent(app, "beside_source")["cells"]
    assert cells[0].endswith("(iterations)")
    assert cells[2:] == ["1", "0 iterations"]
    table = sent(app, "source_table")
    assert table["titles"][:3] == ["source = file", "torch 2.13.0", "Loopscope"]
    assert table["cells"][0][1:] == ["0 iterations", "1 iteration", "1 iteration"]
    assert [row[1:] for row in table["cells"][1:]] == [
        ["0", "-1", "-1"],
        ["1 at [0]", "2 at [0]", "2 at [0]"],
    ]
    assert app.text_input("compare_source_where").value == "programs:Doubling"


def test_a_file_that_does_what_its_source_does(beside: Callable[[Case, str], AppTest]) -> None:
    app = beside(THREE, "programs:Doubling")
    assert "All outputs agree with torch 2.13.0" in page_text(app)
    assert sent(app, "source_table")["cells"][0][1:] == [
        "3 iterations",
        "3 iterations",
        "3 iterations",
    ]


def test_the_source_is_shown_where_the_run_here_does_not_finish(
    beside: Callable[[Case, str], AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopscope_app.actions.runs.limits", lambda: loopscope.Limits(iterations=1))
    app = beside(THREE, "programs:Doubling")
    assert "The run of the file did not finish in Loopscope" in page_text(app)
    assert sent(app, "source_table")["cells"] == [
        ["while_loop", "3 iterations", "", ""],
        ["output getitem:0", "0", "did not finish", "0"],
        ["output getitem_1:0", "[4] 8, -16, 24, 4", "did not finish", "[4] 8, -16, 24, 4"],
    ]


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("", "expected a source"),
        ("nothing.pt2", "'nothing.pt2' is not a source program (there is no such file)"),
    ],
)
def test_what_is_no_source_is_said(
    where: str, why: str, beside: Callable[[Case, str], AppTest]
) -> None:
    assert why in beside(NONE, where).error[0].value


def test_no_program_runs_without_the_code_of_the_terminal(
    opened: Visit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither an empty code, nor a wrong one, nor the code of another program."""
    ran: list[object] = []
    monkeypatch.setattr(
        "loopscope_app.actions.other_runs.source_alone", lambda *given, **_: ran.append(given)
    )
    monkeypatch.setattr(
        "loopscope_app.actions.other_runs.against_source", lambda *given, **_: ran.append(given)
    )
    app = opened(model="sample:collatz", view="compare")
    app.segmented_control("compare_kind").set_value(SOURCE).run()
    codes: list[str] = []
    for program, entered in (
        ("one:a", ""),
        ("two:b", "0000000000"),
        ("two:b", "code of one:a"),
        ("two:b", ""),
    ):
        app.text_input("compare_source_where").set_value(program).run()
        app.text_input("compare_source_code").set_value(
            codes[0] if entered.startswith("code") else entered
        ).run()
        app.button("compare_run").click().run()
        assert "enter the code that Loopscope's terminal shows" in app.error[0].value
        codes += _PRINTED.findall(capsys.readouterr().out)
    assert not ran
    assert len(codes) == 4
    assert codes[1] != codes[2] == codes[3]


def test_a_server_for_others_runs_no_programs_of_its_users(
    opened: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server does not offer the kind, and refuses a click that names it."""
    ran: list[object] = []
    monkeypatch.setattr(
        "loopscope_app.actions.other_runs.against_source", lambda *given, **_: ran.append(given)
    )
    app = opened(model="sample:collatz", view="compare")
    assert "Source program" in app.segmented_control("compare_kind").options
    app.segmented_control("compare_kind").set_value(SOURCE).run()
    app.text_input("compare_source_where").set_value("programs:Doubling").run()
    monkeypatch.setattr("loopscope_app.state.launch.LAUNCH.server", True)
    app.button("compare_run").click().run()
    assert not app.exception
    assert "samples and uploads only" in app.error[0].value
    assert not ran
    assert "Source program" not in app.segmented_control("compare_kind").options
