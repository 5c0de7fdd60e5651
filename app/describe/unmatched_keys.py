"""Which keys of others' data about nodes name nothing in the model, in a sentence."""

from __future__ import annotations

from engine.errors import listed, shorten
from engine.view import NodeData

SHOWN = 3
"""Keys that are named."""


def unmatched_keys(data: NodeData, file: str) -> str:
    """Empty where all of them name something."""
    if not data.unmatched:
        return ""
    named = listed([shorten(one) for one in data.unmatched[:SHOWN]], SHOWN)
    keys = "1 key of {} names" if len(data.unmatched) == 1 else f"{len(data.unmatched):,} keys of {{}} name"
    return f"{keys.format(shorten(file))} nothing in this model, such as {named}"
