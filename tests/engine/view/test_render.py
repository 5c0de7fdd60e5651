"""Picture files are drawn by the dot program; without it the message says how to get it."""

from __future__ import annotations

import re
import shutil

import pytest

from loopscope.view.build import graph_view
from loopscope.view.dot import HOW_TO_GET_DOT, NoPicture, PictureFormat, render
from tests.engine.view.models import branches, nested, summing_loop

BEGINS: dict[PictureFormat, bytes] = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
MODELS = {"loop": summing_loop(), "branches": branches(), "nested": nested(2)}
PROGRAMS = [False, True] if shutil.which("dot") else [False]
"""Whether there is a dot program; that there is one can only be tested where there is."""


@pytest.fixture(params=PROGRAMS, ids=lambda there: "with dot" if there else "without dot")
def dot(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        monkeypatch.setattr(shutil, "which", lambda _: None)
    return bool(request.param)


@pytest.mark.parametrize("format", BEGINS)
def test_picture_files(dot: bool, format: PictureFormat) -> None:
    view = graph_view(summing_loop())
    if dot:
        assert render(view, format).startswith(BEGINS[format])
    else:
        with pytest.raises(NoPicture, match="install graphviz") as caught:
            render(view, format)
        assert str(caught.value) == HOW_TO_GET_DOT


@pytest.mark.parametrize("name", MODELS)
def test_small_models_make_small_pictures(dot: bool, name: str) -> None:
    """A margin in the wrong unit once made large sheets of paper around postage stamps: 32
    inches are 2304 points.
    """
    view = graph_view(MODELS[name])
    if dot:
        drawn = re.search(rb'width="(\d+)pt" height="(\d+)pt"', render(view, "svg"))
        assert drawn is not None
        assert max(int(drawn[1]), int(drawn[2])) < 1500
    else:
        with pytest.raises(NoPicture):
            render(view, "svg")
