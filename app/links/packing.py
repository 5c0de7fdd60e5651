"""What a person has set up, as one word of the page's address."""

from __future__ import annotations

import json

LONGEST = 1200
"""Characters of one such word."""


def packed(data: object) -> str:
    """Plain data as text; empty where there is nothing, or too much for an address."""
    text = json.dumps(data, separators=(",", ":")) if data else ""
    return text if len(text) <= LONGEST else ""


def unpacked(text: str) -> object:
    """The data again; None for what is none, or too long."""
    try:
        return json.loads(text) if len(text) <= LONGEST else None
    except (ValueError, RecursionError):
        return None
