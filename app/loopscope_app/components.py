"""Components of the app, from their script and style files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from loopscope.view import declarations
from loopscope_app.bundle import bundle

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

_ASSETS = Path(__file__).parent / "assets"


def component(
    name: str, script: str, *, style: str = "", folder: Path = _ASSETS, themed: str = ""
) -> ComponentRenderer:
    """The component ``loopscope_NAME``, whose script is one module: a file of a folder, with those
    that it imports.

    ``themed``: the class of elements that are light or dark by their own ``data-theme``; everything
    else has the colours of the page.
    """
    css = (folder / style).read_text(encoding="utf-8") if style else None
    if css and themed:
        css = (
            f'.{themed} {{ {declarations("light")} }}\n.{themed}[data-theme="dark"] {{ '
            f"{declarations('dark')} }}\n{css}"
        )
    return st.components.v2.component(f"loopscope_{name}", js=bundle(folder / script), css=css)
