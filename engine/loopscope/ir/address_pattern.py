"""Patterns of addresses: what a person writes to mean several values of a model at once."""

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
    """Which values are meant; ``*`` stands for any text, slashes too."""

    parts: tuple[str, ...]
    """What stands between the asterisks; of one part for an address."""

    def names(self, address: str, output: int) -> bool:
        """Whether an output of the node at an address without iterations is meant: all are where
        no output is written.
        """
        if len(self.parts) == 1:
            return self.parts[0] in (address, f"{address}:{output}")
        return any(
            self._matches(one) or self._matches(f"{one}:{output}") for one in notations(address)
        )

    def _matches(self, text: str) -> bool:
        """Without trying again: each part where it first comes, the last one at the end."""
        first, *between, last = self.parts
        if not text.startswith(first):
            return False
        at = len(first)
        for part in between:
            at = text.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return text.endswith(last) and len(text) - len(last) >= at


def address_patterns(model: Model, texts: Iterable[str]) -> Iterator[AddressPattern]:
    """A pattern for each text: an address, an end of one that no other node has, or either with
    ``*``, in any form that is read.

    A text with ``*`` means all whose address, or an end of it, it fits, with names as the file has
    them, as addresses write them or as screens show them: ``main/*/state`` means
    ``main/layers.0%2Floop/body/layers.0%2Fstate`` too. ``AddressError`` when a text without ``*``
    is the end of several addresses.
    """
    known = {address for address, _ in nodes(model)}
    for text in texts:
        if text in known:
            yield AddressPattern((text,))
            continue
        written = as_written(text.strip()).replace(f"[{ANY}]", "")
        if ANY not in written:
            meant = full_address(model, written)
            yield AddressPattern((meant if meant.startswith(f"{ROOT}/") else f"{ROOT}/{meant}",))
        else:
            anchored = written.startswith((ANY, f"{ROOT}/"))
            yield AddressPattern(tuple((written if anchored else f"{ANY}/{written}").split(ANY)))
