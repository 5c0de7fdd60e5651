"""What a failed run says stands on the page to its last word, however long the sentence is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import parser
from streamlit.testing.v1 import AppTest

from loopscope_app.parts.widgets import place_lists
from loopscope_app.state.user_session import Message


def test_a_failure_is_told_to_its_end(opened: Callable[..., AppTest], tmp_path: Path) -> None:
    names = [f"x{number}" for number in range(60)]
    text = f"""<ir_version: 9, opset_import: ["" : 18]> one ({", ".join(f"float[3] {name}" for name in names)})
        => (float[M] y) {{ longer = Concat <axis = 0> (x0, x0) y = Sum ({", ".join(names)}, longer) }}"""
    (tmp_path / "m.onnx").write_bytes(parser.parse_model(text).SerializeToString())
    app = opened(model=str(tmp_path / "m.onnx"))
    app.button("transport_run").click().run()
    found = " ".join(str(one.proto.body) for one in app.get("html"))
    told = re.search(r"It stopped.*?failed: [^<]*", found)
    assert told is not None
    assert told[0].count("f32[3] = [") == 60
    assert "f32[6] = [" in told[0].rpartition(";")[2], (
        "the last of the inputs, which is the odd one"
    )
    assert "…" not in told[0]


def test_a_report_of_many_lines_is_told_to_its_end(opened: Callable[..., AppTest]) -> None:
    """The first lines stand there, the others behind a click."""
    app = opened(sample="collatz")
    app.session_state["loopscope"].message = Message(
        "\n".join(f"What is said {number} times." for number in range(9))
    )
    app.run()
    assert "What is said 5 times" in app.error[0].value
    (more,) = [one for one in app.expander if one.label == "3 more lines"]
    assert [f"What is said {number} times" in more.markdown[0].value for number in range(5, 9)] == [
        False,
        True,
        True,
        True,
    ]


def test_a_sentence_in_a_list_of_places_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(place_lists, "_chain", lambda **given: sent.append(given["data"]))
    words = "the values part here " * 40
    place_lists.show_list(
        [place_lists.ChainLine(words, "r" * 300, words, "v" * 300, hint=words)],
        key="places",
        on_pick=lambda number: None,
    )
    (row,) = sent[0]["rows"]
    assert row["title"] == row["detail"] == row["hint"] == words
    assert len(row["role"]) == len(row["value"]) == 200
