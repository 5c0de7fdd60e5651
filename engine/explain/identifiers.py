"""Names of a model as Python identifiers: readable, never a keyword, never twice."""

from __future__ import annotations

import builtins
import keyword
import re

_OTHER = re.compile(r"[^0-9a-zA-Z_]+")
_LONGEST = 40


class Identifiers:
    """Gives each thing its own identifier, near to its name."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self._taken = set(taken) | set(dir(builtins)) | set(keyword.kwlist) | set(keyword.softkwlist)

    def give(self, name: str) -> str:
        """A new identifier.

        >>> names = Identifiers()
        >>> names.give("while/Add_3"), names.give("while.Add_3"), names.give("3 × x\\n"), names.give("if")
        ('while_add_3', 'while_add_3_2', 'v_3_x', 'if_2')
        """
        plain = _OTHER.sub("_", name[: 4 * _LONGEST]).strip("_").lower()[-_LONGEST:].strip("_") or "value"
        plain = plain if plain[0].isalpha() else f"v_{plain}"
        found, number = plain, 1
        while found in self._taken:
            number += 1
            found = f"{plain}_{number}"
        self._taken.add(found)
        return found
