"""The widgets of Compare, and their values that are not input sets."""

from __future__ import annotations

CHOICE = "compare_with"
"""The widget that names an input set, or one of the following values, which are not names."""
BEFORE, UNCHANGED, RUNTIME, MODEL, ROUNDED, SOURCE = (
    "",
    "\n",
    "\n\n",
    "\n\n\n",
    "\n\n\n\n",
    "\n\n\n\n\n",
)
"""Previous inputs, run without changes, runtime, other model, rounded model, source program."""
PATTERN, TYPE = "compare_round_what", "compare_round_to"
"""The widgets for the rounded values and for their type."""
WHERE = "compare_source_where"
"""The widget for the location of the source program."""
CODE = "compare_source_code"
"""The widget for the code that confirms that the source program may run."""
LOOP = "compare_drift_of"
"""The widget for the loop whose values the picture of a drift shows."""
