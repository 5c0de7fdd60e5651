"""Addresses by their ends: what a person or a script may write in place of a whole address."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.errors import AddressError, shorten
from engine.ir.address import ROOT, decode, must_be_text
from engine.ir.model import Model
from engine.ir.walk import nodes

_OUTPUT = re.compile(r":\d{1,9}$")
_ITERATION = re.compile(r"\[(?:\d{1,18}|\*)\](?=/|$)")
_SHOWN = 3


def full_address(model: Model, text: str) -> str:
    """The address of the one node that a text means: a whole address, or an end of one that no other node has.

    Names in it may stand as the file has them (``layers.0/attn/Gather_0``) or as addresses write them
    (``layers.0%2Fattn%2FGather_0``), with iterations and an output number. What is the end of no address comes back as it is.
    ``AddressError`` when several nodes have that end.
    """
    must_be_text(text)
    output = found[0] if (found := _OUTPUT.search(text)) else ""
    path = text.removesuffix(output)
    bare = _ITERATION.sub("", path)
    known = [address for address, _ in nodes(model)]
    if bare in known or f"{ROOT}/{bare}" in known:
        return text
    ends = [address for address in known if f"/{address}".endswith(f"/{bare}") or f"/{decode(address)}".endswith(f"/{bare}")]
    if not ends:
        return text
    if len(ends) > 1:
        some = ", ".join(shorten(address, 120) for address in ends[:_SHOWN])
        more = f" and {len(ends) - _SHOWN:,} more" if len(ends) > _SHOWN else ""
        raise AddressError(f"{shorten(text)!r} is the end of {len(ends):,} addresses: {some}{more}; write more of the one that is meant")
    return _with_iterations(ends[0], path, is_encoded=f"/{ends[0]}".endswith(f"/{bare}")) + output


def _with_iterations(address: str, path: str, *, is_encoded: bool) -> str:
    """An address with the iterations of a text that ends as it does."""
    marks = _marks(path)
    segments = address.split("/")
    behind = 0
    for number in range(len(segments) - 1, -1, -1):
        length = len(segments[number] if is_encoded else decode(segments[number]))
        segments[number] += marks.pop(behind, "")
        behind += length + 1
    if marks:
        raise AddressError(f"{shorten(path)!r}: {next(iter(marks.values()))} stands inside the name of {shorten(address)!r}")
    return "/".join(segments)


def _marks(path: str) -> dict[int, str]:
    """The iterations in a text, by the number of characters after them, other iterations not counted."""
    found: Sequence[re.Match[str]] = list(_ITERATION.finditer(path))
    return {len(_ITERATION.sub("", path[one.end() :])): one[0] for one in found}
