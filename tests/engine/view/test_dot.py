"""DOT text against stored files; they are written anew only when LOOPSCOPE_REWRITE_GOLDEN=1 is
set.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loopscope.ir.model import Model
from loopscope.view.build import graph_view
from loopscope.view.dot import dot_text
from loopscope.view.folding import Folding
from tests.engine.view.models import branches, chain, nested, summing_loop

GOLDEN = Path(__file__).parent / "golden"
CASES: dict[str, tuple[Model, Folding, bool]] = {
    "loop": (summing_loop(), Folding(), False),
    "loop_standalone": (summing_loop(), Folding(), True),
    "if": (branches(), Folding(), False),
    "if_folded": (branches(), Folding(frozenset({"main/choose/then"})), True),
    "cut_edges": (chain(17, reach=14), Folding(), False),
}


@pytest.mark.parametrize("name", CASES)
def test_dot(name: str) -> None:
    model, folding, standalone = CASES[name]
    text = dot_text(graph_view(model, folding), standalone=standalone)
    stored = GOLDEN / f"{name}.dot"
    if os.environ.get("LOOPSCOPE_REWRITE_GOLDEN") == "1":
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")


def test_the_same_model_gives_the_same_text() -> None:
    assert dot_text(graph_view(summing_loop())) == dot_text(graph_view(summing_loop()))


def test_frames_close_however_deep() -> None:
    text = dot_text(graph_view(nested(200), Folding()))
    assert text.count("{") == text.count("}")
