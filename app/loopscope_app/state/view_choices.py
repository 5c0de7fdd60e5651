"""Views of a model and choices inside of them. Each is a word in the page's address, unless it is
the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopscope.ir import is_trace
from loopscope_app.describe.gradients import has_gradient
from loopscope_app.state import compare_choice
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
    if is_trace(opened.model):
        return (DEBUG, "compare")
    return tuple(view for view in VIEWS if view != "gradients" or has_gradient(opened.model))


@dataclass(frozen=True, slots=True)
class Look:
    """A choice inside a view."""

    name: str
    """Name in the page's address."""
    key: str
    """Key of the chosen option in the session state."""
    options: tuple[str, ...]

    def shown(self) -> str:
        """Return the chosen option; the first one before a choice."""
        option = widget(self.key)
        return option if option in self.options else self.options[0]

    def show(self, option: str) -> None:
        """Choose an option; ignore a value that is not an option."""
        match = next(
            (candidate for candidate in self.options if candidate.lower() == option.lower()), None
        )
        if match is not None and match != widget(self.key):
            place(self.key, match)
            place(f"{self.key}_shows", self._shows() + 1)

    def choose_from(self, tabs_key: str) -> None:
        """Take the option of tabs, unless ``show`` has replaced these tabs since.

        Streamlit calls the callback of replaced tabs if a busy page sends their state once more.
        """
        if tabs_key == self.tabs_key():
            place(self.key, widget(tabs_key))

    def begin(self, option: str, offered: Sequence[str]) -> None:
        """Choose an option if none of those offered is chosen."""
        if widget(self.key) not in offered:
            self.show(option)

    def tabs_key(self) -> str:
        """Return the key of the tabs that show the choice. Each ``show`` changes it.

        A busy page still sends the state of the tabs from before ``show`` with its next message;
        under the same key, that would undo ``show``.
        """
        return f"{self.key}_{self._shows()}"

    def _shows(self) -> int:
        return int(widget(f"{self.key}_shows") or 0)


HIDDEN, SHOWN = "", "shown"
DOCK = Look("tab", "dock_tab", ("Iterations", "Node", "Code", "Setup"))
"""Tabs of the dock."""
DRAWER = Look("drawer", "drawer", (HIDDEN, "Problems", "Export", "Keyboard", "About"))
"""Drawers over the dock."""
STRIP = Look("strip", "strip_lanes", (HIDDEN, "Steps", "Matrix"))
"""Lanes that the strip's handle opens."""
CHAIN = Look("chain", "chain_shown", (HIDDEN, SHOWN))
"""The proof below the verdict."""
WIDE = Look("wide", "wide_shown", (HIDDEN, SHOWN))
"""Table and matrix over the canvas."""
FORMULA = Look("formula", "formula_shown", (HIDDEN, SHOWN))
"""The field for a column that a formula computes."""
ORIGIN = Look("origin", "origin_shown", (HIDDEN, SHOWN))
"""The origin of the value on the page of a node."""
TIMELINE = Look("timeline", "timeline_of", ("Steps", "Schedule", "Clock", "Cost"))
COMPARED = Look("with", compare_choice.KIND, compare_choice.KINDS)
"""Kinds of the other run in Compare."""
DIFFERENCES = Look("differences", compare_choice.SHOWN, compare_choice.PARTS)
"""Parts of the differences in Compare."""
CANVASES = Look(
    "canvases", compare_choice.SIDES, (compare_choice.ONE_CANVAS, compare_choice.BOTH_CANVASES)
)
"""Canvases of Compare: the run here, or both runs."""
CLOCK_OF = "clock_of"
"""The widget for the source of times: the model's runtime, or our steps."""
LOOKS = (
    DOCK,
    DRAWER,
    STRIP,
    CHAIN,
    WIDE,
    FORMULA,
    ORIGIN,
    TIMELINE,
    COMPARED,
    DIFFERENCES,
    CANVASES,
)

KEPT = (*(look.key for look in LOOKS), *compare_choice.WIDGETS, CLOCK_OF)
"""Keys of widgets that keep their values while another view or a long run hides them."""


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
        if look.name in words:
            look.show(words[look.name])
