"""The shown graph as Python: the current line follows the canvas, values are beside their lines."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

import numpy as np
import streamlit as st

from loopscope.errors import EngineError
from loopscope.executor import Plan
from loopscope.explain import CodeLine, Listing, fits_in_code, listing, runnable_code
from loopscope.ir import ROOT, Model
from loopscope.object_cache import cache_by_object
from loopscope.view import without_iterations
from loopscope_app.actions import selection
from loopscope_app.components import component
from loopscope_app.describe.code_moment import MOST_LINES, code_moment, shown_lines
from loopscope_app.describe.node_index import places
from loopscope_app.describe.signatures import bindings
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession, widget

KEY = "code"

_code = component("code", "code.js", style="code.css")
_moment = component("code_moment", "code.js")


def show(session: UserSession) -> None:
    opened, debugger = session.model.opened, session.run.debugger
    if opened is None or debugger is None:
        markup.show("Only a model that can be run is written as code: see its problems.", "quiet")
        return
    try:
        code, data = _listing(debugger.plan, session.canvas.root)
    except EngineError as error:
        markup.show(markup.sentence(error), "quiet")
        return
    shown = code.lines[:MOST_LINES]

    def picked() -> None:
        number = getattr(widget(KEY), "pick", None)
        if isinstance(number, int) and 0 <= number < len(shown):
            _pick(opened.model, shown[number])

    with st.container(gap=None, key=f"{KEY}_parts"):
        overlay = {
            **code_moment(debugger, code, without_iterations(session.canvas.selected)),
            "key": KEY,
            "hash": data["hash"],
        }
        _moment(key=f"{KEY}_moment", data=overlay, height=1)
        _code(key=KEY, data={**data, "key": KEY}, on_pick_change=picked)
    arrays = bindings(opened.model, session.model.inputs) if session.canvas.root == ROOT else []
    _take_away(
        debugger.plan, session.canvas.root, code, arrays, opened.file_name(session.canvas.root)
    )


@cache_by_object
def _listing(plan: Plan, root: str) -> tuple[Listing, dict[str, object]]:
    """Return the code of a graph and the message for the browser."""
    code = listing(plan, root)
    return code, shown_lines(plan, root, code)


def _pick(model: Model, line: CodeLine) -> None:
    """Select the node of a line, or the nearest node around it."""
    address = line.address
    nodes = places(model)
    while address and address not in nodes:
        address = address.rpartition("/")[0]
    if address:
        selection.reveal_place(address)


def _take_away(
    plan: Plan, root: str, code: Listing, inputs: Sequence[np.ndarray], name: str
) -> None:
    if len(code.lines) > MOST_LINES:
        markup.show(
            f"The first {MOST_LINES:,} of {len(code.lines):,} lines; open a body alone to read it, "
            "or download them all.",
            "quiet",
        )
    if not code.complete:
        markup.show("Very deeply nested bodies are left out: open one alone to read it.", "quiet")
        return
    inputs = inputs if all(isinstance(array, np.ndarray | np.generic) for array in inputs) else []
    packed = bool(code.weights) or not all(map(fits_in_code, inputs))
    st.download_button(
        "Download as runnable Python"
        if not packed
        else "Download as runnable Python, with weights",
        lambda: packed_file(plan, root, inputs, name),
        file_name=f"{name}.zip" if packed else f"{name}.py",
        icon=":material/download:",
        type="tertiary",
        key="code_download",
        on_click="ignore",
    )


def packed_file(
    plan: Plan, root: str, inputs: Sequence[np.ndarray] = (), name: str = ROOT
) -> bytes:
    """Return the code as a Python file that prints its outputs, or a zip with ``weights.npz`` if it
    needs weights.
    """
    whole = runnable_code(plan, root, inputs)
    if not whole.weights:
        return whole.text.encode()
    weights, file = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(weights, "w") as inner:
        for weight, array in whole.weights.items():
            with inner.open(f"{weight}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}.py", whole.text)
        archive.writestr("weights.npz", weights.getvalue())
    return file.getvalue()
