"""What runs are compared with: the widget that holds it, and what it holds where that is no
input set.
"""

from __future__ import annotations

CHOICE = "compare_with"
"""The widget: the name of an input set, or one of these, which are no names."""
BEFORE, UNCHANGED, RUNTIME, MODEL, ROUNDED, SOURCE = (
    "",
    "\n",
    "\n\n",
    "\n\n\n",
    "\n\n\n\n",
    "\n\n\n\n\n",
)
"""The inputs before, the run without what was set by hand, the runtime, another model, the same
model with values rounded, the program that the file was converted from.
"""
PATTERN, TYPE = "compare_round_what", "compare_round_to"
"""The widgets that hold what is rounded, and to what."""
WHERE = "compare_source_where"
"""The widget that holds where the source program is."""
CODE = "compare_source_code"
"""The widget that holds the code which confirms that the source program may run."""
LOOP = "compare_drift_of"
"""The widget that holds the loop whose values the picture of a drift shows."""
