"""*What if*: the editor beside a value, and the line that lists values set by hand and their
effect.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

import loopscope
from loopscope.errors import shorten
from loopscope.explain import first_control_flow, walks_of
from loopscope.ir import ElementType, readable_steps, significant
from loopscope.object_cache import cache_by_object
from loopscope.timeline import ControlFlowRecord
from loopscope.view import value_preview
from loopscope_app.actions import views, what_if_changes
from loopscope_app.actions.what_if_changes import by_hand, copies, is_in_backward_pass
from loopscope_app.describe.both_runs import Compared
from loopscope_app.describe.tensor_summary import values_for_editing
from loopscope_app.describe.wording import name_of
from loopscope_app.links.codec import has_room
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession, current
from loopscope_app.state.view_choices import UNCHANGED

_HELP = "Set this value by hand, and run from here with it"


def editor(debugger: loopscope.Debugger, address: str, array: np.ndarray) -> None:
    """Show the editor of a value, and a link to the run that has it."""
    # Another run brings another popover, which is closed; what is in it is drawn only while it is
    # open.
    popover = st.popover(
        "What if …",
        key=what_if_changes.editor_key(),
        on_change="rerun",
        help=_HELP,
    )
    if not popover.open:
        return
    with popover:
        reason = what_if_changes.refusal(debugger, address, array)
        if reason:
            markup.show(markup.sentence(reason), "quiet")
            return
        key = f"what_if_{address}_{current().run.generation}"
        markup.show(f"What if <b>{markup.text(shorten(_place(address), 120))}</b> were")
        with st.form(f"form_{key}", border=False):
            _field(key, markup.plain(name_of(address), 60), array)
            st.form_submit_button(
                "Run from here",
                key="what_if_run",
                type="primary",
                icon=":material/alt_route:",
                on_click=what_if_changes.set_value,
                args=(address, key),
            )


def _field(key: str, name: str, array: np.ndarray) -> None:
    kind = ElementType.of(array)
    if array.size > 1:
        import pandas as pd  # imported here: it takes half a second, and only tables need it

        table = what_if_changes.as_table(array)
        frame = pd.DataFrame(values_for_editing(table))
        frame.columns = [str(column) for column in range(table.shape[1])]
        st.data_editor(
            frame, key=key, hide_index=len(table) == 1, height="auto" if len(table) <= 6 else 240
        )
        return
    element = array.reshape(-1)[0]
    if kind is ElementType.BOOLEAN:
        st.segmented_control(
            name,
            ["false", "true"],
            default=str(not element).lower(),
            key=key,
            required=True,
            label_visibility="collapsed",
        )
    else:
        st.text_input(
            name,
            str(element.item()) if kind.is_integer else str(element),
            key=key,
            label_visibility="collapsed",
        )


def show(session: UserSession) -> None:
    """Show the values set by hand, each with a button that removes it, and their effect."""
    debugger = session.run.debugger
    if debugger is None or not session.run.changes:
        return
    reached, again = _reached(session), copies(debugger.plan, session.run.changes)
    with st.container(key="what_if", horizontal=True, vertical_alignment="center"):
        markup.show("<b>What if</b>")
        for number, (address, value) in enumerate(
            by_hand(debugger.plan, session.run.changes).items()
        ):
            back = is_in_backward_pass(debugger.plan, address)
            place = _place(address) + (" of the way back" if back else "")
            words = f"{place} = {value_preview(value)}" + (
                ", on the way back too" if address in again else ""
            )
            words += "" if address in reached else " (never reached)"
            st.button(
                markup.plain(words, 90),
                key=f"what_if_undo_{number}",
                icon=":material/close:",
                help=f"Back to the run without this: {markup.plain(address, 200)}",
                on_click=what_if_changes.undo,
                args=(address,),
            )
        if session.run.compared is not None and session.run.compared.name == UNCHANGED:
            markup.show(markup.text(outcome(session.run.compared), 200))
            st.button(
                "Compare",
                key="what_if_compare",
                type="tertiary",
                on_click=views.show,
                args=("compare",),
                help="The run beside the run without this",
            )
        if session.model.opened and session.model.opened.link and not has_room(session.run.changes):
            markup.show("This change is too long for the page's link.", "quiet")


def _reached(session: UserSession) -> set[str]:
    """Return the changes that the run reaches; all of them until the run ends."""
    ahead = (
        session.run.compared.run
        if session.run.compared and session.run.compared.name == UNCHANGED
        else session.run.debugger
    )
    if ahead is None or ahead.state != "finished":
        return set(session.run.changes)
    return {change.address for change in ahead.changes if change.reached}


def _place(address: str) -> str:
    """Return a place as words, with the iterations of all loops, outermost first.

    >>> _place("main/while_3[2]/body/keep"), _place("main/while_3[2]/body/loop_7[0]/body/keep")
    ('keep at iteration 2', 'keep at iterations 2 › 0')
    """
    *around, name = readable_steps(address)
    iterations = [word.partition(" · iteration ")[2] for word in around if " · iteration " in word]
    return (
        f"{name} at iteration{'s' if len(iterations) > 1 else ''} {' › '.join(iterations)}"
        if iterations
        else name
    )


@cache_by_object(key=lambda compared: (compared.run.steps, compared.other.steps), newest_only=True)
def outcome(compared: Compared) -> str:
    """Return the effect of a change as a phrase: the iteration count of a loop, else the first
    difference.
    """
    return _iterations(compared) or _parted(compared)


def _iterations(compared: Compared) -> str:
    """Return the first loop of the main graph with another iteration count, or an empty text."""
    main = compared.run.plan.main
    for label in (main.instructions[number].label for number in main.regions):
        left, right = (run.record(f"main/{label}") for run in (compared.run, compared.other))
        if (
            left is not None
            and right is not None
            and None not in (left.ended_by, right.ended_by)
            and left.iterations != right.iterations
        ):
            return f"{name_of(left.address)}: {_count(left)} instead of {_count(right)} iterations"
    return ""


def _count(record: ControlFlowRecord) -> str:
    return (
        "endless"
        if record.endless
        else f"{record.iterations:,}" + (" and more" if record.ended_by == "limit" else "")
    )


def _parted(compared: Compared) -> str:
    difference = first_control_flow(compared.run, compared.other)
    if difference is None:
        return _adjoint(compared) or "the same operations run with other values"
    return f"{_place(difference.address)}: {difference.one} instead of {difference.other}"


def _adjoint(compared: Compared) -> str:
    """Return the first adjoint that changes, or an empty text."""
    walks = zip(walks_of(compared.run), walks_of(compared.other), strict=False)
    for mine, was in (
        (mine, was)
        for left, right in walks
        for mine, was in zip(left.adjoints, right.adjoints, strict=True)
    ):
        if mine.fate.kind != was.fate.kind:
            return (
                f"the gradient of {mine.name} {mine.fate.kind}; "
                f"without the change it {was.fate.kind}"
            )
        if mine.fate.last != was.fate.last:
            return (
                f"the gradient of {mine.name} arrives as {significant(mine.fate.last, 2)} "
                f"instead of {significant(was.fate.last, 2)}"
            )
    return ""
