"""Names and messages as parts of a Markdown text."""

from __future__ import annotations

from loopscope.errors import elided, neutral


def code_span(text: str, limit: int = 80) -> str:
    """Return a text on one line as a code span that cannot leave its span or table cell."""
    shown = neutral(elided(" ".join(text.split()), limit), 4 * limit)
    return f"`{shown.replace('`', chr(39)).replace('|', '¦')}`"
