"""Patterns of addresses: text that selects several values of a model at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from loopscope.ir.address import ROOT
from loopscope.ir.address_suffix import full_address, notations
from loopscope.ir.model import Model
from loopscope.ir.readable import as_written
from loopscope.ir.walk import nodes

ANY = "*"


@dataclass(frozen=True, slots=True)
class AddressPattern:
    """A pattern of addresses; ``*`` matches any text, slashes included."""

    parts: tuple[str, ...]
    """Texts between the asterisks; a single part for an exact address."""

    def names(self, address: str, output: int) -> bool:
        """Return True if the pattern selects an output of the node at a static address.

        A pattern without an output number selects all outputs of the node.
        """
        if len(self.parts) == 1:
            return self.parts[0] in (address, f"{address}:{output}")
        return any(
            self._matches(notation) or self._matches(f"{notation}:{output}")
            for notation in notations(address)
        )

    def _matches(self, text: str) -> bool:
        """Match each part at its first occurrence, without backtracking.

        The last part must match at the end.
        """
        first, *between, last = self.parts
        if not text.startswith(first):
            return False
        position = len(first)
        for part in between:
            position = text.find(part, position)
            if position < 0:
                return False
            position += len(part)
        return text.endswith(last) and len(text) - len(last) >= position


def address_patterns(model: Model, texts: Iterable[str]) -> Iterator[AddressPattern]:
    """Yield a pattern for each text: an address, a unique end of an address, or either with ``*``.

    A text with ``*`` selects all addresses that it matches as a whole or at their end. Names may be
    written as the file has them, as addresses encode them or as screens show them: ``main/*/state``
    also selects ``main/layers.0%2Floop/body/layers.0%2Fstate``. ``AddressError`` when a text
    without ``*`` is the end of several addresses.
    """
    known = {address for address, _ in nodes(model)}
    for text in texts:
        if text in known:
            yield AddressPattern((text,))
            continue
        written = as_written(text.strip()).replace(f"[{ANY}]", "")
        if ANY not in written:
            address = full_address(model, written)
            yield AddressPattern(
                (address if address.startswith(f"{ROOT}/") else f"{ROOT}/{address}",)
            )
        else:
            anchored = written.startswith((ANY, f"{ROOT}/"))
            yield AddressPattern(tuple((written if anchored else f"{ANY}/{written}").split(ANY)))
