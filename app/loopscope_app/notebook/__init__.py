"""The display of notebooks: a widget of a model or a run, or a still page where widgets cannot run.

The engine finds ``display`` through the entry point group ``loopscope.display``.
``canvas/assets/notebook.js`` has the role that Streamlit's component has in the app.
"""

from __future__ import annotations

from loopscope_app.notebook.cells import display

__all__ = ["display"]
