"""Names of a model as unique, readable Python identifiers that are not keywords."""

from __future__ import annotations

import builtins
import keyword
import re

from loopscope.ir.address import decode

_NON_IDENTIFIER = re.compile(r"[^0-9a-zA-Z]+")
_MAX_LENGTH = 40
_LAST_WORDS = re.compile(rf"(?<![^_]).{{1,{_MAX_LENGTH}}}$")


class Identifiers:
    """Generator of unique identifiers from names."""

    def __init__(self, reserved: frozenset[str] = frozenset()) -> None:
        self._taken = (
            set(reserved) | set(dir(builtins)) | set(keyword.kwlist) | set(keyword.softkwlist)
        )

    def give(self, name: str) -> str:
        """Return a new identifier for a name in address spelling; long names are cut to their last
        words.

        >>> names = Identifiers()
        >>> names.give("while/Add_3"), names.give("while.Add_3")
        ('while_add_3', 'while_add_3_2')
        >>> names.give("3 × x\\n"), names.give("if")
        ('v_3_x', 'if_2')
        >>> names.give("If_0_then_branch__Inline_0__%2Fdecoder%2Frnn%2FGather_2")
        'branch_inline_0_decoder_rnn_gather_2'
        """
        words = _NON_IDENTIFIER.sub("_", decode(name)[: 4 * _MAX_LENGTH]).strip("_").lower()
        whole = _LAST_WORDS.search(words)
        plain = whole[0] if whole else words[-_MAX_LENGTH:] or "value"
        plain = plain if plain[0].isalpha() else f"v_{plain}"
        identifier, number = plain, 1
        while identifier in self._taken:
            number += 1
            identifier = f"{plain}_{number}"
        self._taken.add(identifier)
        return identifier
