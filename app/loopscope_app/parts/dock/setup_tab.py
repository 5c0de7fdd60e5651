"""The Setup tab: the inputs of the run, and below them breakpoints and watches.

Inputs are edited as numbers and tables, generated with a seed, or uploaded; then the run starts
again.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from loopscope.ir import ElementType, Signature, is_trace
from loopscope.ops import is_tensor
from loopscope.view import value_preview
from loopscope_app.actions import input_draft
from loopscope_app.describe.random_inputs import default_shape
from loopscope_app.describe.signatures import signatures
from loopscope_app.describe.tensor_summary import values_for_editing
from loopscope_app.parts.dock import breakpoints_section
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    opened = session.model.opened
    if opened is not None and not is_trace(opened.model):
        markup.show(markup.section("Inputs"))
        _show_inputs(session)
    breakpoints_section.show(session)


EDITABLE = 1024
"""Number of elements up to which an input is shown as an editable table."""


def _show_inputs(session: UserSession) -> None:
    if session.model.opened is None:
        return
    model = session.model.opened.model
    if not model.inputs:
        markup.show("The model has no inputs.", "quiet")
        return
    for position, (key, signature) in enumerate(signatures(model).items()):
        _input(session, position, key, signature)
    _show_run_button(f"inputs_name_{session.run.generation}")
    if session.run.debugger is not None and any(
        array is not session.model.inputs.get(key) for key, array in session.model.draft.items()
    ):
        markup.show("Not run yet: the graph shows the run with the previous inputs.", "quiet")
    _show_generator(f"inputs_seed_{session.run.generation}")
    _show_upload(f"inputs_files_{session.run.generation}")


def _show_run_button(name: str) -> None:
    """Draw the button that runs the draft, and the field for a name to save it under."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Run",
            key="inputs_run",
            type="primary",
            icon=":material/replay:",
            on_click=input_draft.run_draft,
            args=(name,),
        )
        st.text_input(
            "Save as (optional)",
            key=name,
            placeholder="name",
            max_chars=input_draft.LONGEST_NAME,
            width=180,
            help="Adds these inputs to the list of inputs until you leave this page. Compare and "
            "Many runs offer them too.",
        )


def _show_generator(seed: str) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Generate",
            key="inputs_random",
            icon=":material/casino:",
            on_click=input_draft.make_up,
            args=(seed,),
            help="Random values, the same for the same seed. An input that the model compares "
            "with a constant becomes this constant.",
        )
        st.number_input("Seed", 0, 2**31 - 1, 0, key=seed, width=110)


def _show_upload(files: str) -> None:
    st.file_uploader(
        "Values from a file",
        type=["npz", "npy"],
        help="An .npz with arrays by name or position of the inputs, or an .npy that is named "
        "after its input",
        key=files,
        on_change=input_draft.upload_inputs,
        args=(files,),
    )


def _input(session: UserSession, position: int, key: str, signature: Signature) -> None:
    array = session.model.draft.get(key)
    kind = f"{signature.element_type or 'any type'} {markup.plain(signature.shape)}"
    label = f"{markup.plain(key, 60)} · {kind}"
    widget = f"input_{position}_{session.run.generation}"
    if array is None:
        markup.show(f"<b>{markup.text(key)}</b> has no value yet: upload it below.", "quiet")
    elif not is_tensor(array):
        value = f'<span class="mono quiet">{markup.text(value_preview(array))}</span>'
        markup.show(f"<b>{markup.text(key, 60)}</b> {value}")
        return
    elif array.ndim == 0:
        _scalar(label, widget, key, array)
    elif array.size <= EDITABLE and array.ndim <= 2 and array.size:
        import pandas as pd  # imported here: it takes half a second, and only tables need it

        chips = markup.chip(signature.element_type or "any type") + markup.chip(
            str(signature.shape)
        )
        markup.show(f"<b>{markup.text(key, 60)}</b> {chips}")
        matrix = array.reshape(1, -1) if array.ndim == 1 else array
        frame = pd.DataFrame(values_for_editing(matrix))
        frame.columns = [str(column) for column in range(matrix.shape[1])]
        st.data_editor(
            frame,
            key=widget,
            hide_index=array.ndim == 1,
            height="auto" if matrix.shape[0] <= 6 else 240,
            on_change=input_draft.edit_table,
            args=(widget, key),
        )
    else:
        value = f'<span class="mono quiet">{markup.text(value_preview(array))}</span>'
        markup.show(f"<b>{markup.text(key, 60)}</b> {value}")
    if not signature.shape.is_static and array is not None:
        _shape(session, position, key, signature, array)


def _scalar(label: str, widget: str, key: str, array: np.ndarray) -> None:
    kind = ElementType.of(array)
    if kind is ElementType.BOOLEAN:
        st.toggle(
            label, bool(array), key=widget, on_change=input_draft.edit_scalar, args=(widget, key)
        )
    else:
        text = (
            str(array.item()) if kind is ElementType.STRING or kind.is_integer else str(array[()])
        )
        st.text_input(
            label, text, key=widget, on_change=input_draft.edit_scalar, args=(widget, key)
        )


def _shape(
    session: UserSession, position: int, key: str, signature: Signature, array: np.ndarray
) -> None:
    """Show a field for the lengths that the model leaves open."""
    widget = f"input_shape_{position}_{session.run.generation}"
    st.text_input(
        f"Shape, within {markup.plain(signature.shape)}",
        ", ".join(map(str, array.shape or default_shape(signature.shape))),
        key=widget,
        on_change=input_draft.reshape,
        args=(widget, key),
        help="Another shape gets random values",
    )
