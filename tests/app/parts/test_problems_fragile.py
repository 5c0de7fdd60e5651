"""Problems lists the decisions of a run that narrower floats would turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

import loopscope
from tests.app.components import sent
from tests.app.screens.test_debugger import page_text
from tests.engine.explain.test_fragile import searching


def test_a_fragile_decision_is_a_click_away(opened: Callable[..., AppTest], tmp_path: Path) -> None:
    loopscope.write_model(searching().model, tmp_path / "search.xml")
    app = opened(model=str(tmp_path / "search.xml"), step="9999", drawer="problems")
    assert (
        "Whether search · iteration 1 is followed by another was decided by 0.0002: bf16 would decide otherwise."
        in page_text(app)
    )
    app.button("problem_fragile_0").click().run()
    assert not app.exception
    assert app.session_state["loopscope"].run.debugger.cursor.previous.startswith(
        "main/search[1]/body"
    )
    app.button("drawer_close").click().run()
    assert sent(app, "loop_table")["titles"][-1] == "margin"
    assert "fragile" not in page_text(
        opened(model="sample:collatz", step="9999", drawer="problems")
    )
