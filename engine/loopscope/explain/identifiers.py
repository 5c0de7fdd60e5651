"""Names of a model as Python identifiers: readable, never a keyword, never twice."""

from __future__ import annotations

import builtins
import keyword
import re

from loopscope.ir.address import decode

_OTHER = re.compile(r"[^0-9a-zA-Z]+")
_LONGEST = 40
_LAST_WORDS = re.compile(rf"(?<![^_]).{{1,{_LONGEST}}}$")


class Identifiers:
    """Gives each thing its own identifier, near to its name."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self._taken = (
            set(taken) | set(dir(builtins)) | set(keyword.kwlist) | set(keyword.softkwlist)
        )

    def give(self, name: str) -> str:
        """A new identifier, from a name as addresses write it; of a long one the last words.

        >>> names = Identifiers()
        >>> names.give("while/Add_3"), names.give("while.Add_3"), names.give("3 × x\\n"), names.give("if")
        ('while_add_3', 'while_add_3_2', 'v_3_x', 'if_2')
        >>> names.give("If_0_then_branch__Inline_0__%2Fdecoder%2Frnn%2FGather_2")
        'branch_inline_0_decoder_rnn_gather_2'
        """
        words = _OTHER.sub("_", decode(name)[: 4 * _LONGEST]).strip("_").lower()
        whole = _LAST_WORDS.search(words)
        plain = whole[0] if whole else words[-_LONGEST:] or "value"
        plain = plain if plain[0].isalpha() else f"v_{plain}"
        found, number = plain, 1
        while found in self._taken:
            number += 1
            found = f"{plain}_{number}"
        self._taken.add(found)
        return found
