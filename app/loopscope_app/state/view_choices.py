"""Ways to look at the moment: each is chosen in a widget, and is a word in the page's address
when it is not the usual one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopscope_app.state.user_session import place, widget


@dataclass(frozen=True, slots=True)
class Look:
    """One choice between ways to look."""

    name: str
    """In the page's address."""
    key: str
    """Of its widget."""
    options: tuple[str, ...]

    def show(self, option: str) -> None:
        """Makes the widget show an option when it is drawn next; ignores a value that is not an
        option.
        """
        found = next((one for one in self.options if one.lower() == option.lower()), None)
        if found is not None:
            place(self.key, found)

    def begin(self, option: str, offered: Sequence[str]) -> None:
        """Makes a widget that shows nothing yet, or what is not offered here, begin with an
        option.
        """
        if widget(self.key) not in offered:
            place(self.key, option)


LENS = Look("lens", "lens", ("Iterations", "Why", "Timeline", "Matrix", "Ask", "Compare", "Export"))
PANEL = Look(
    "panel", "debugger_panel", ("Inspect", "Code", "Lesson", "Inputs", "Breakpoints", "Problems")
)
VIEW = Look("view", "inspector_view", ("Value", "Origin", "Ports", "Attributes"))
TIMELINE = Look("timeline", "timeline_of", ("Steps", "Schedule", "Clock"))
CLOCK_OF = "clock_of"
"""The widget that holds what measures: the runtime of the model, or our steps."""
LOOKS = (LENS, PANEL, VIEW, TIMELINE)


def chosen() -> Mapping[str, str]:
    """What is looked at, as words for the page's address; what is usual is left out."""
    shown = {look.name: (str(widget(look.key) or ""), look.options[0]) for look in LOOKS}
    return {
        name: option.lower() for name, (option, usual) in shown.items() if option not in ("", usual)
    }


def choose(words: Mapping[str, str]) -> None:
    """Looks at what the page's address says."""
    for look in LOOKS:
        look.show(words.get(look.name, ""))
