"""What a cell of a notebook shows of a model or a run: the app's canvas as a widget, and words and a still picture where no widget runs.

``engine.notebook`` finds this room by its name, as ``engine.show`` finds the app: the engine imports nothing of app. Where Streamlit's
component stands in the app, ``canvas/assets/notebook.js`` stands in a cell.
"""

from __future__ import annotations

from app.notebook.cells import cell_of_model, cell_of_run

__all__ = ["cell_of_model", "cell_of_run"]
