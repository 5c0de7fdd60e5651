"""Addresses by their ends: what a person or a script may write in place of a whole address."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from loopscope.errors import AddressError, shorten
from loopscope.ir.address import ROOT, decode, must_be_text
from loopscope.ir.model import Model
from loopscope.ir.readable import STEP, as_written, pieces, readable, static_words
from loopscope.ir.walk import nodes

_OUTPUT = re.compile(r":\d{1,9}$")
_ITERATION = re.compile(r"\[(?:\d{1,18}|\*)\](?=/|$)")
_SHOWN = 3

Pieces = Sequence[tuple[int, str]]
"""The names of an address as they are written, with the numbers of their segments."""


def full_address(model: Model, text: str) -> str:
    """The address of the one node that a text means: a whole address, or an end of one that no
    other node has.

    Names in it may stand as the file has them (``layers.0/attn/Gather_0``), as addresses write them
    (``layers.0%2Fattn%2FGather_0``) or as screens show them (``layers.0/attn › Gather_0``), with
    iterations and an output number. A tensor name means the output that has it. What is none of
    these comes back as it is. ``AddressError`` when several nodes have that end.
    """
    must_be_text(text)
    written = as_written(text.strip())
    path, output = split_output(written)
    bare = without_iterations(path)
    known = [address for address, _ in nodes(model)]
    if bare in known or f"{ROOT}/{bare}" in known:
        return written
    ends = ending(known, bare, static_words(text.strip()))
    if not ends:
        return _of_tensor(model, text.strip()) or text
    if len(ends) > 1:
        raise AddressError(ambiguous(text, ends))
    ((address, names),) = ends.items()
    return _with_iterations(address, names, path) + output


def _of_tensor(model: Model, name: str) -> str:
    """The address of the one output of this tensor name, of the outermost graph at first; empty
    where there is none, or several.
    """
    found = [
        (address, f":{number}" if number else "")
        for address, node in nodes(model)
        for number, port in enumerate(node.outputs)
        if name in port.names
    ]
    outermost = [one for one in found if one[0].count("/") == 1]
    chosen = outermost or found
    return "".join(chosen[0]) if len(chosen) == 1 else ""


def addresses_ending(model: Model, text: str) -> tuple[str, ...]:
    """The static addresses of all nodes that a text may mean, as ``full_address`` takes it."""
    path, _ = split_output(as_written(text.strip()))
    return tuple(
        ending(
            [address for address, _ in nodes(model)],
            without_iterations(path),
            static_words(text.strip()),
        )
    )


def ambiguous(text: str, ends: Collection[str]) -> str:
    """The sentence for a text that is the end of several addresses."""
    some = ", ".join(shorten(readable(address), 120) for address in list(ends)[:_SHOWN])
    more = f" and {len(ends) - _SHOWN:,} more" if len(ends) > _SHOWN else ""
    return f"{shorten(text)!r} is the end of {len(ends):,} addresses: {some}{more}; write more of the one that is meant"


def split_output(written: str) -> tuple[str, str]:
    """An address and the output number at its end with the colon, empty where there is none."""
    output = found[0] if (found := _OUTPUT.search(written)) else ""
    return written.removesuffix(output), output


def without_iterations(path: str) -> str:
    return _ITERATION.sub("", path)


def ending(known: Sequence[str], bare: str, words: str) -> dict[str, Pieces]:
    """Of these addresses the ones that end so: as screens show them, as files and addresses
    write names, or without the names of bodies.
    """
    last = bare.rpartition("/")[2]
    likely = [
        address for address in known if address.endswith(last) or decode(address).endswith(last)
    ]
    shown: dict[str, Pieces] = {
        address: pieces(address)
        for address in likely
        if f"{STEP}{readable(address)}".endswith(f"{STEP}{words}")
    }
    if STEP in words and shown:
        return _the_whole(shown, words)
    return _with_end(likely, bare, _labels, _decoded) or _with_end(
        likely, bare, pieces, _without_bodies
    )


def notations(address: str) -> tuple[str, ...]:
    """An address without iterations as it is, with names as files have them, without the names
    of bodies, and as screens show it.
    """
    shown = _joined(((0, ROOT), *pieces(address)))
    return tuple(
        dict.fromkeys(
            (address, *(_joined(form(address)) for form in (_decoded, _without_bodies)), shown)
        )
    )


def _the_whole(found: dict[str, Pieces], words: str) -> dict[str, Pieces]:
    """The one that these words are all of, where there is one: a longer address that ends so
    could be written longer.
    """
    whole = {address: names for address, names in found.items() if readable(address) == words}
    return whole if len(whole) == 1 else found


def _with_end(
    addresses: Sequence[str], end: str, *forms: Callable[[str], Pieces]
) -> dict[str, Pieces]:
    """Those that end so in any of these forms, in the first such form."""
    found: dict[str, Pieces] = {}
    for address in addresses:
        for form in forms:
            if f"/{_joined(form(address))}".endswith(f"/{end}"):
                found.setdefault(address, form(address))
    return found


def _without_bodies(address: str) -> Pieces:
    return tuple(
        (number, name) for number, name in _decoded(address) if number % 2 or name != "body"
    )


def _labels(address: str) -> Pieces:
    return tuple(enumerate(address.split("/")))


def _decoded(address: str) -> Pieces:
    return tuple((number, decode(label)) for number, label in _labels(address))


def _joined(names: Pieces) -> str:
    return "/".join(name for _, name in names)


def _with_iterations(address: str, names: Pieces, path: str) -> str:
    """An address with the iterations of a text that ends as it does."""
    marks = _marks(path)
    segments = address.split("/")
    behind = 0
    for number, name in reversed(names):
        segments[number] += marks.pop(behind, "")
        behind += len(name) + 1
    if marks:
        raise AddressError(
            f"{shorten(path)!r}: {next(iter(marks.values()))} stands inside the name of {shorten(readable(address))!r}"
        )
    return "/".join(segments)


def _marks(path: str) -> dict[int, str]:
    """The iterations in a text, by the number of characters after them, other iterations not
    counted.
    """
    found: Sequence[re.Match[str]] = list(_ITERATION.finditer(path))
    return {len(without_iterations(path[one.end() :])): one[0] for one in found}
