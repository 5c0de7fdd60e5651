"""The Problems panel says what a run leaves out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

import loopscope
from tests.app.screens.test_debugger import page_text
from tests.engine.executor.plan.test_pruning_report import counter_of_a_pair

Visit = Callable[..., AppTest]
SAID = "leaves out what makes no difference"


def test_what_a_run_leaves_out_is_said_with_the_problems(opened: Visit, tmp_path: Path) -> None:
    loopscope.write_model(counter_of_a_pair(), tmp_path / "pair.xml")
    app = opened(model=str(tmp_path / "pair.xml"), drawer="problems")
    assert not app.exception
    assert SAID in page_text(app)
    assert "removed as not needed: main/while/body/root" in page_text(app)


def test_nothing_is_said_where_all_runs(opened: Visit) -> None:
    app = opened(model="sample:collatz", drawer="problems")
    assert not app.exception
    assert SAID not in page_text(app)
