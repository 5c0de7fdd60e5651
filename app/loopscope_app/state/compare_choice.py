"""The widgets of Compare, and the names of its kinds and of runs that are not input sets."""

from __future__ import annotations

KIND = "compare_kind"
"""The widget for the kind of the other run."""
INPUTS, RUNTIME, ROUNDED, MODEL, SOURCE = KINDS = (
    "inputs",
    "runtime",
    "precision",
    "model",
    "source",
)
"""Other inputs, the model's runtime, lower precision, another model, the source program."""
CHOICE = "compare_with"
"""The widget for the inputs of the other run: the name of a set, or a value below."""
BEFORE, UNCHANGED = "", "\n"
"""The previous inputs, and the current inputs without values set by hand; both are not names."""
PATTERN, TYPE = "compare_round_what", "compare_round_to"
"""The widgets for the rounded values and for their type."""
WHERE = "compare_source_where"
"""The widget for the location of the source program."""
CODE = "compare_source_code"
"""The widget for the code that confirms that the source program may run."""
SHOWN = "compare_shown"
"""The widget for the part of the differences that is shown."""
TABLE, BY_ITERATION, VALUES, STRUCTURE = PARTS = (
    "Table",
    "By iteration",
    "Both values",
    "Structure",
)
"""The parts: first differences, errors of all iterations, both sides of a value, operations that
only one of two models has.
"""
SIDES = "compare_sides"
"""The widget for the number of canvases."""
ONE_CANVAS, BOTH_CANVASES = "One canvas", "Side by side"
LOOP = "compare_drift_of"
"""The widget for the loop whose values the picture of a drift shows."""
WIDGETS = (KIND, CHOICE, PATTERN, TYPE, WHERE, SHOWN, SIDES, LOOP)
"""Widgets that keep their values while another view or a long run is shown."""
