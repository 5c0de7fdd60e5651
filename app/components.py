"""Components of our own, from the files of their scripts and styles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

_ASSETS = Path(__file__).parent / "assets"


def component(name: str, *scripts: str, style: str = "", folder: Path = _ASSETS) -> ComponentRenderer:
    """The component ``loopscope_NAME``; its scripts, files of a folder, are one module."""
    js, css = ("\n".join((folder / file).read_text(encoding="utf-8") for file in files) for files in (scripts, [style] if style else []))
    return st.components.v2.component(f"loopscope_{name}", js=js, css=css or None)
