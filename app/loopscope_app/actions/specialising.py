"""Specialisation of the model to the branch or iteration count that ran."""

from __future__ import annotations

from loopscope_app.actions.report_errors import clear_and_show_errors
from loopscope_app.describe.specialised_model import specialised_to_run
from loopscope_app.state.user_session import current


@clear_and_show_errors
def preview(address: str) -> None:
    """Specialise the model to what an If or loop did in the run, for the menu to show."""
    session = current()
    opened, debugger = session.model.opened, session.run.at_rest
    if opened is not None and debugger is not None:
        session.run.specialised = specialised_to_run(opened.model, debugger, address)
