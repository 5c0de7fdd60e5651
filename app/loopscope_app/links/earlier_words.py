"""Parameters of addresses that earlier versions wrote, in the words of this version."""

from __future__ import annotations

from collections.abc import Mapping

_CURRENT: Mapping[tuple[str, str], tuple[str, str]] = {
    ("screen", "runs"): ("view", "many"),
    ("lens", "compare"): ("view", "compare"),
    ("lens", "timeline"): ("view", "performance"),
    ("lens", "matrix"): ("strip", "matrix"),
    ("lens", "why"): ("chain", "shown"),
    ("lens", "ask"): ("formula", "shown"),
    ("lens", "export"): ("drawer", "export"),
    ("panel", "inspect"): ("tab", "node"),
    ("panel", "code"): ("tab", "code"),
    ("panel", "inputs"): ("tab", "setup"),
    ("panel", "breakpoints"): ("tab", "setup"),
    ("panel", "problems"): ("drawer", "problems"),
    ("panel", "lesson"): ("drawer", "about"),
    ("view", "value"): ("tab", "node"),
    ("view", "origin"): ("origin", "shown"),
    ("view", "ports"): ("tab", "node"),
    ("view", "attributes"): ("tab", "node"),
}
"""The present name and word of each earlier name and word."""


def in_current_words(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return parameters of an address with earlier names and words replaced.

    >>> in_current_words({"model": "sample:collatz", "screen": "runs"})
    {'model': 'sample:collatz', 'view': 'many'}
    """
    replaced = {name: word for name, word in parameters.items() if (name, word) not in _CURRENT}
    for pair in parameters.items():
        if pair in _CURRENT:
            name, word = _CURRENT[pair]
            replaced.setdefault(name, word)
    return replaced
