"""Lines that the model has printed up to the moment."""

from __future__ import annotations

from loopscope.ir import readable
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession

MOST_LINES = 100


def show(session: UserSession) -> None:
    """Show the last lines, the newest at the end. Show nothing for a model without Print."""
    debugger = session.run.debugger
    if debugger is None or not debugger.prints:
        return
    printed = debugger.printed(MOST_LINES)
    lines = [
        f'<span title="{markup.text(readable(line.address))}">{markup.text(line.text, 400)}</span>'
        for line in printed
    ]
    if not lines:
        lines = ['<span class="quiet">Nothing has been printed yet.</span>']
    # The outer box is filled from its end, so that the newest line is in view however many there
    # are.
    markup.show(
        '<div class="printed" role="log" aria-label="Printed" '
        f'tabindex="0"><div>{"<br>".join(lines)}</div></div>'
    )
