"""Views of a model and choices inside of them. Each is a word in the page's address, unless it is
the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopscope_app.describe.backward import has_gradient
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import place, widget

DEBUG = "debug"
VIEWS: Mapping[str, str] = {
    DEBUG: "Debug",
    "compare": "Compare",
    "many": "Many runs",
    "gradients": "Gradients",
    "performance": "Performance",
}
"""Titles of the views by their word in the page's address. The default is first."""


def offered_views(opened: Opened) -> tuple[str, ...]:
    """Return the words of the views that a model can have."""
    if not opened.report.ok:
        return (DEBUG,)
    return tuple(view for view in VIEWS if view != "gradients" or has_gradient(opened.model))


@dataclass(frozen=True, slots=True)
class Look:
    """A choice inside a view. Its widget stores the chosen option."""

    name: str
    """Name in the page's address."""
    key: str
    """Key of the widget."""
    options: tuple[str, ...]

    def show(self, option: str) -> None:
        """Set the widget to an option; ignore a value that is not an option."""
        match = next(
            (candidate for candidate in self.options if candidate.lower() == option.lower()), None
        )
        if match is not None:
            place(self.key, match)

    def begin(self, option: str, offered: Sequence[str]) -> None:
        """Set the widget to an option if it shows none of those offered."""
        if widget(self.key) not in offered:
            place(self.key, option)


LENS = Look("lens", "lens", ("Iterations", "Why", "Matrix", "Ask", "Export"))
PANEL = Look(
    "panel", "debugger_panel", ("Inspect", "Code", "Lesson", "Inputs", "Breakpoints", "Problems")
)
VIEW = Look("value", "inspector_view", ("Value", "Origin", "Ports", "Attributes"))
TIMELINE = Look("timeline", "timeline_of", ("Steps", "Schedule", "Clock"))
CLOCK_OF = "clock_of"
"""The widget for the source of times: the model's runtime, or our steps."""
LOOKS = (LENS, PANEL, VIEW, TIMELINE)


def chosen() -> Mapping[str, str]:
    """Return the chosen options as words for the page's address, without defaults."""
    options = {look.name: (str(widget(look.key) or ""), look.options[0]) for look in LOOKS}
    return {
        name: option.lower()
        for name, (option, default) in options.items()
        if option not in ("", default)
    }


def choose(words: Mapping[str, str]) -> None:
    """Choose the options that the page's address names."""
    for look in LOOKS:
        look.show(words.get(look.name, ""))
