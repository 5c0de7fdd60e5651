"""The card of the first steps: step, run to the end, ask what if, compare two inputs."""

from __future__ import annotations

import streamlit as st

from loopscope import verdict
from loopscope.errors import EngineError
from loopscope_app.actions import lesson_actions, models
from loopscope_app.describe import lessons
from loopscope_app.describe.lessons import ALL_STEPS, LOOP, PRESSES
from loopscope_app.describe.wording import times
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession


def show(session: UserSession) -> None:
    """Show the card with the next step, beside what it speaks of: its last words in Compare, all
    others in Debug.
    """
    if not session.learning.first_run or session.run.debugger is None:
        return
    lesson_actions.note_progress(session)
    done = session.learning.first_steps
    if session.view and done < ALL_STEPS:
        return
    with st.container(key="first_run", border=True, gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", key="first_run_head"):
            title = f"Step {done + 1} of {ALL_STEPS}" if done < ALL_STEPS else "What next?"
            markup.show(f"<b>{title}</b>")
            st.button(
                "Close", key="first_run_close", type="tertiary", on_click=lesson_actions.dismiss
            )
        _step(session, done)


def _step(session: UserSession, done: int) -> None:
    match done:
        case 0:
            left = max(1, PRESSES - session.run.debugger.cursor.step) if session.run.debugger else 3
            often = {3: "three times", 2: "twice more", 1: "once more"}.get(left, "three times")
            markup.show(
                f"Press <kbd>→</kbd> {often}. Each press runs one operation, and its value "
                "appears on the wire."
            )
        case 1:
            markup.show(
                "Press <kbd>End</kbd> to run to the end. The loop stops when its condition becomes "
                "false."
            )
        case 2:
            markup.show(markup.prose(_why(session)))
            markup.show("What if the condition had been false in iteration 3?", "quiet")
            st.button(
                "Make it false there",
                key="first_run_false",
                type="primary",
                on_click=lesson_actions.make_false,
            )
        case 3:
            markup.show(markup.prose(_why(session)))
            markup.show("The loop began with 3. And for 17?", "quiet")
            st.button(
                "Compare with 17",
                key="first_run_compare",
                type="primary",
                on_click=lesson_actions.compare_inputs,
            )
        case _:
            markup.show("The two tapes show where both runs take different branches.")
            st.button(
                "Open your own model",
                key="first_run_own",
                icon=":material/upload_file:",
                on_click=models.close,
                width="stretch",
            )
            st.button(
                f"{len(lessons.lessons())} lessons",
                key="first_run_lessons",
                icon=":material/school:",
                on_click=lesson_actions.go_on,
                width="stretch",
            )


def _why(session: UserSession) -> str:
    """Return how often the loop ran, and why it stopped."""
    debugger = session.run.at_rest
    if debugger is None:
        return ""
    try:
        result = verdict(debugger, LOOP)
    except EngineError:
        return ""
    count = result.record.iterations or 0
    reason = result.sentence.partition(" because ")[2]
    return f"It ran {times(count)}" + (f", because {reason}" if reason else ".")
