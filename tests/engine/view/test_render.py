"""Picture files need the dot program; without it the message says how to get it."""

from __future__ import annotations

import shutil

import pytest

from engine.view.build import graph_view
from engine.view.render import HOW_TO_GET_DOT, NoPicture, render
from tests.engine.view.models import summing_loop


def test_without_dot_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(NoPicture, match="install graphviz") as caught:
        render(graph_view(summing_loop()), "svg")
    assert str(caught.value) == HOW_TO_GET_DOT


@pytest.mark.skipif(shutil.which("dot") is None, reason="there is no dot program here")
@pytest.mark.parametrize(("format", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_pictures(format: str, begins: bytes) -> None:
    assert render(graph_view(summing_loop()), format).startswith(begins)  # type: ignore[arg-type]
