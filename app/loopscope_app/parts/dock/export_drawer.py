"""Exports: a run file, a page, traces and node data for other tools, and colours by their data.

They are made on request.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

import loopscope
from loopscope.errors import EngineError
from loopscope.explain import EXPORT_FORMATS, export, how_often
from loopscope.ir import is_trace
from loopscope.run_file import ENDING
from loopscope.view import Folding, NodeData, write_node_data
from loopscope_app.actions import colouring
from loopscope_app.links.current_link import look
from loopscope_app.page import page_of
from loopscope_app.parts.widgets import choices, markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession

KEY = "export_format"
MOST_VALUES, MOST_BYTES = 50_000, 256 * 2**20

_MEANING = {
    ".npz": "Every value in full, for numpy: the key is its address",
    ".csv": "A row for each value: address, type, shape, summary, and the value of single elements",
    ".parquet": "The same rows, typed and compressed, for pandas, DuckDB, Spark",
    ".json": "The same rows, and what every loop and branch did",
}


def show(session: UserSession) -> None:
    debugger = session.run.debugger
    if debugger is None or session.model.opened is None:
        return
    opened = session.model.opened
    if not is_trace(debugger.model):  # a trace is a file already
        with _section("Run"):
            _this_run(session, opened, debugger)
    with _section("Web page"):
        _one_page(session, opened, debugger)
    _values(opened, debugger)
    with _section("Colours"):
        _show_node_colours(session, opened, debugger)


def _section(title: str) -> DeltaGenerator:
    """Return a row for controls, below its title."""
    markup.show(markup.section(title))
    return st.container(horizontal=True, vertical_alignment="center")


def _values(opened: Opened, debugger: loopscope.Debugger) -> None:
    """Show the download of all values of the run, or why there is none."""
    markup.show(markup.section("Values"))
    if not debugger.steps:
        markup.show(
            "Run something first: then every computed value can be downloaded as one file.", "quiet"
        )
        return
    if debugger.steps > MOST_VALUES:
        markup.show(
            f"The run has {debugger.steps:,} steps; a file takes at most {MOST_VALUES:,} values. "
            'In Python, <span class="mono">loopscope.explain.export.export</span> writes as many '
            "as you allow.",
            "quiet",
        )
        return
    offered = [suffix for suffix in EXPORT_FORMATS if suffix != ".parquet" or find_spec("pyarrow")]
    with st.container(horizontal=True, vertical_alignment="center"):
        ending = (
            st.segmented_control(
                "Format", offered, default=offered[0], key=KEY, label_visibility="collapsed"
            )
            or offered[0]
        )
        st.download_button(
            f"Download {ending}",
            lambda: written(debugger, ending),
            file_name=f"{opened.file_name()}{ending}",
            icon=":material/download:",
            key=f"export_download_{ending}",
            on_click="ignore",
        )
    left_out = " Values that are not stored are left out." if debugger.plan.lacks_weights else ""
    markup.show(f"{_MEANING[ending]}. Everything up to step {debugger.steps:,}.{left_out}", "quiet")


def _this_run(session: UserSession, opened: Opened, debugger: loopscope.Debugger) -> None:
    """Show the button for a file that opens at this moment."""
    shown = look(session)
    bare = debugger.plan.lacks_weights or st.checkbox(
        "Without weights",
        width="content",
        key="take_away_without_weights",
        help=(
            "The file contains the model's structure and the values of the run, not its weights. "
            "Values that need a weight and are not stored are marked as not kept."
        ),
    )
    st.download_button(
        "Save run (.loopscope)",
        lambda: saved_run(debugger, shown, opened.document, weights=not bare),
        file_name=f"{opened.file_name()}{ENDING}",
        icon=":material/save:",
        key="take_away_run",
        on_click="ignore",
        help=(
            "Model, inputs, breakpoints, watches, values set by hand, and this moment, as one "
            "file that Loopscope opens again"
        ),
    )


def _one_page(session: UserSession, opened: Opened, debugger: loopscope.Debugger) -> None:
    """Show the button for an HTML file that opens at this moment, and the note in it."""
    folding, root, data = session.canvas.folding, session.canvas.root, session.model.node_data
    note = st.text_input(
        "Note (shown on the page)",
        key="take_away_note",
        placeholder="Note (shown on the page)",
        label_visibility="collapsed",
    )
    st.download_button(
        "Web page (.html)",
        lambda: page(debugger, opened.title, note, folding, root, data),
        file_name=f"{opened.file_name()}.html",
        icon=":material/public:",
        key="take_away_page",
        on_click="ignore",
        help=(
            "This picture with all moments of the run, tables and verdicts, as one HTML file "
            "that opens offline, at this moment, in any browser"
        ),
    )


def page(
    debugger: loopscope.Debugger,
    title: str,
    note: str,
    folding: Folding,
    root: str,
    data: NodeData | None,
) -> bytes:
    """Return the page as bytes; if it cannot be made, a text with the reason."""
    try:
        return page_of(
            debugger, title=title, note=note, folding=folding, root=root, node_data=data
        ).encode()
    except EngineError as error:
        return f"{error}\n".encode()


def saved_run(
    debugger: loopscope.Debugger, shown: Mapping[str, str], document: bytes, *, weights: bool = True
) -> bytes:
    """Return the run as bytes; if it cannot be saved, a text with the reason."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"run{ENDING}"
        try:
            loopscope.save(debugger, path, look=shown, document=document, weights=weights)
        except EngineError as error:
            return f"{error}\n".encode()
        return path.read_bytes()


def written(debugger: loopscope.Debugger, ending: str) -> bytes:
    """Return the trace as bytes; if it is too large, a text that says so."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"trace{ending}"
        try:
            export(debugger, path, most_values=MOST_VALUES, most_bytes=MOST_BYTES)
        except EngineError as error:
            return f"{error}\n".encode()
        return path.read_bytes()


UPLOAD = "node_colours_upload"


def _show_node_colours(session: UserSession, opened: Opened, debugger: loopscope.Debugger) -> None:
    """Show a menu, so that the view stays one row."""
    with st.popover(
        "Colour by data",
        icon=":material/palette:",
        key="node_colours",
        help="Colour nodes by their cost, or by numbers or texts from a file",
    ):
        choices.show_cost_colours(session, debugger)
        st.file_uploader(
            (
                "JSON with a number or a text for each node, by address or name, as Model "
                "Explorer's "
                "node data"
            ),
            type=["json"],
            key=UPLOAD,
            on_change=colouring.open_upload,
            args=(UPLOAD,),
        )
        if session.model.node_data is not None:
            st.button(
                "Remove colours",
                icon=":material/format_color_reset:",
                key="node_colours_off",
                on_click=colouring.remove_colors,
            )
        st.download_button(
            "How often each operation ran",
            lambda: write_node_data(how_often(debugger), debugger.model).encode(),
            file_name=f"{opened.file_name()} executions.json",
            icon=":material/download:",
            key="node_colours_executions",
            on_click="ignore",
            help="As node data, which Model Explorer shows, and Loopscope too",
        )
        if session.run.clock is not None:
            shares = session.run.clock.shares
            st.download_button(
                "Which part of the time it took",
                lambda: write_node_data(shares, debugger.model).encode(),
                file_name=f"{opened.file_name()} time.json",
                icon=":material/download:",
                key="node_colours_time",
                on_click="ignore",
                help="As it was measured in Performance, Clock",
            )
