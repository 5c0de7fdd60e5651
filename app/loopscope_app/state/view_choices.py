"""Views of a model and choices inside of them. Each is a word in the page's address, unless it is
the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loopscope.ir import is_trace
from loopscope_app.describe.gradients import has_gradient
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


COMPARE_KIND = "compare_kind"
"""The widget for the kind of the other run."""
INPUTS, RUNTIME, ROUNDED, MODEL, SOURCE = COMPARE_KINDS = (
    "inputs",
    "runtime",
    "precision",
    "model",
    "source",
)
"""Other inputs, the model's runtime, lower precision, another model, the source program."""
COMPARE_WITH = "compare_with"
"""The widget for the inputs of the other run: the name of a set, or a value below."""
BEFORE, UNCHANGED = "", "\n"
"""The previous inputs, and the current inputs without values set by hand; both are not names."""
ROUNDED_PATTERN, ROUNDED_TYPE = "compare_round_what", "compare_round_to"
"""The widgets for the rounded values and for their type."""
SOURCE_WHERE = "compare_source_where"
"""The widget for the location of the source program."""
SOURCE_CODE = "compare_source_code"
"""The widget for the code that confirms that the source program may run."""
COMPARE_SHOWN = "compare_shown"
"""The widget for the part of the differences that is shown."""
TABLE, BY_ITERATION, VALUES, STRUCTURE = COMPARE_PARTS = (
    "Table",
    "By iteration",
    "Both values",
    "Structure",
)
"""The parts: first differences, errors of all iterations, both sides of a value, operations that
only one of two models has.
"""
COMPARE_SIDES = "compare_sides"
"""The widget for the number of canvases."""
ONE_CANVAS, BOTH_CANVASES = "One canvas", "Side by side"
COMPARE_LOOP = "compare_drift_of"
"""The widget for the loop whose values the picture of a drift shows."""
COMPARE_WIDGETS = (
    COMPARE_KIND,
    COMPARE_WITH,
    ROUNDED_PATTERN,
    ROUNDED_TYPE,
    SOURCE_WHERE,
    COMPARE_SHOWN,
    COMPARE_SIDES,
    COMPARE_LOOP,
)
"""Widgets that keep their values while another view or a long run is shown."""

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
COMPARED = Look("with", COMPARE_KIND, COMPARE_KINDS)
"""Kinds of the other run in Compare."""
DIFFERENCES = Look("differences", COMPARE_SHOWN, COMPARE_PARTS)
"""Parts of the differences in Compare."""
CANVASES = Look("canvases", COMPARE_SIDES, (ONE_CANVAS, BOTH_CANVASES))
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

KEPT = (*(look.key for look in LOOKS), *COMPARE_WIDGETS, CLOCK_OF)
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
