"""Incomplete addresses: the end of one address, and patterns that select several values at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from loopscope.errors import AddressError, shorten
from loopscope.ir.address import ROOT, decode, must_be_text, nodes
from loopscope.ir.model import Model
from loopscope.ir.readable import STEP, as_written, pieces, readable, static_words

_OUTPUT = re.compile(r":\d{1,9}$")
_ITERATION = re.compile(r"\[(?:\d{1,18}|\*)\](?=/|$)")
_MAX_LISTED = 3

Pieces = Sequence[tuple[int, str]]
"""Names of an address in some notation, each with the number of its segment."""


def full_address(model: Model, text: str) -> str:
    """Return the address of the one node that a text names: a whole address or a unique end of one.

    Names may be written as the file has them (``layers.0/attn/Gather_0``), as addresses encode them
    (``layers.0%2Fattn%2FGather_0``) or as screens show them (``layers.0/attn › Gather_0``).
    Iterations and an output number are allowed. A tensor name selects the output of that name. A
    text that matches nothing is returned unchanged. ``AddressError`` when several nodes match.
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
        return _output_address(model, text.strip()) or text
    if len(ends) > 1:
        raise AddressError(ambiguous(text, ends))
    ((address, names),) = ends.items()
    return _with_iterations(address, names, path) + output


def _output_address(model: Model, name: str) -> str:
    """Return the address of the one output with this tensor name.

    Return "" unless there is exactly one. Outputs of the outermost graph take precedence.
    """
    outputs = [
        (address, f":{number}" if number else "")
        for address, node in nodes(model)
        for number, port in enumerate(node.outputs)
        if name in port.names
    ]
    outermost = [output for output in outputs if output[0].count("/") == 1]
    candidates = outermost or outputs
    return "".join(candidates[0]) if len(candidates) == 1 else ""


def addresses_ending(model: Model, text: str) -> tuple[str, ...]:
    """Return the static addresses of all nodes that a text, as in ``full_address``, may name."""
    path, _ = split_output(as_written(text.strip()))
    return tuple(
        ending(
            [address for address, _ in nodes(model)],
            without_iterations(path),
            static_words(text.strip()),
        )
    )


def ambiguous(text: str, ends: Collection[str]) -> str:
    """Return the message for a text that is the end of several addresses."""
    examples = ", ".join(shorten(readable(address), 120) for address in list(ends)[:_MAX_LISTED])
    more = f" and {len(ends) - _MAX_LISTED:,} more" if len(ends) > _MAX_LISTED else ""
    return (
        f"{shorten(text)!r} is the end of {len(ends):,} addresses: {examples}{more}; "
        "write more of the one that is meant"
    )


def split_output(written: str) -> tuple[str, str]:
    """Split an address into its path and its output number with the colon (empty if absent)."""
    output = match[0] if (match := _OUTPUT.search(written)) else ""
    return written.removesuffix(output), output


def without_iterations(path: str) -> str:
    return _ITERATION.sub("", path)


def ending(known: Sequence[str], bare: str, words: str) -> dict[str, Pieces]:
    """Return the addresses with this end, each with its first matching notation.

    The end may be in screen notation, in file or address notation, or without the names of bodies.
    """
    last = bare.rpartition("/")[2]
    candidates = [
        address for address in known if address.endswith(last) or decode(address).endswith(last)
    ]
    matches: dict[str, Pieces] = {
        address: pieces(address)
        for address in candidates
        if f"{STEP}{readable(address)}".endswith(f"{STEP}{words}")
    }
    if STEP in words and matches:
        return _prefer_whole(matches, words)
    return _ending_in(candidates, bare, _encoded_names, _decoded_names) or _ending_in(
        candidates, bare, pieces, _without_bodies
    )


def notations(address: str) -> tuple[str, ...]:
    """Return a static address in all notations.

    They are: unchanged, with decoded names, without the names of bodies, and as on screens.
    """
    readable_form = _join(((0, ROOT), *pieces(address)))
    return tuple(
        dict.fromkeys(
            (
                address,
                *(_join(form(address)) for form in (_decoded_names, _without_bodies)),
                readable_form,
            )
        )
    )


def _prefer_whole(matches: dict[str, Pieces], words: str) -> dict[str, Pieces]:
    """Return only the address whose readable form equals the words, if exactly one does.

    A longer address with the same end remains reachable by writing more of it.
    """
    exact = {address: names for address, names in matches.items() if readable(address) == words}
    return exact if len(exact) == 1 else matches


def _ending_in(
    addresses: Sequence[str], end: str, *forms: Callable[[str], Pieces]
) -> dict[str, Pieces]:
    """Return the addresses that end like this in one of these notations, with that notation."""
    matches: dict[str, Pieces] = {}
    for address in addresses:
        for form in forms:
            if f"/{_join(form(address))}".endswith(f"/{end}"):
                matches.setdefault(address, form(address))
    return matches


def _without_bodies(address: str) -> Pieces:
    return tuple(
        (number, name) for number, name in _decoded_names(address) if number % 2 or name != "body"
    )


def _encoded_names(address: str) -> Pieces:
    return tuple(enumerate(address.split("/")))


def _decoded_names(address: str) -> Pieces:
    return tuple((number, decode(label)) for number, label in _encoded_names(address))


def _join(names: Pieces) -> str:
    return "/".join(name for _, name in names)


def _with_iterations(address: str, names: Pieces, path: str) -> str:
    """Insert the iterations of a text into the address that it is the end of."""
    marks = _iteration_marks(path)
    segments = address.split("/")
    distance = 0
    for number, name in reversed(names):
        segments[number] += marks.pop(distance, "")
        distance += len(name) + 1
    if marks:
        raise AddressError(
            f"{shorten(path)!r}: {next(iter(marks.values()))} stands inside the name of "
            f"{shorten(readable(address))!r}"
        )
    return "/".join(segments)


def _iteration_marks(path: str) -> dict[int, str]:
    """Map the number of characters after a mark to the mark; marks themselves do not count."""
    matches: Sequence[re.Match[str]] = list(_ITERATION.finditer(path))
    return {len(without_iterations(path[match.end() :])): match[0] for match in matches}


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
