"""Addresses in the form that people read: ``while_3 · iteration 2 › layers.0/attn › Gather_0``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from loopscope.errors import AddressError
from loopscope.ir.address import ANY_ITERATION, ROOT, Address, Segment, decode
from loopscope.ir.iteration import iteration_words

STEP = " › "
PART = " · "
"""Separator inside a step: loop and iteration, If and branch, or node and output."""
_EVERY_ITERATION = f"{PART}every iteration"
_ITERATION = re.compile(
    r" · iteration (\d(?:[\d,]{0,21}\d)?)(?: of [\d,]+|, the (?:last of [\d,]+|only one))?"
)
_OUTPUT = re.compile(r" · output (\d{1,9})$")


def readable(address: str) -> str:
    """Return an address in words, without the scopes that a node shares with the node around it.

    >>> readable("main/layers.0%2Fattn%2FGather_0:1")
    'layers.0/attn › Gather_0 · output 1'
    >>> readable("main/while_3[1199]/body/if_2/then/Add_1")
    'while_3 · iteration 1,199 › if_2 · then › Add_1'
    >>> readable("main/while_3[*]/body/x"), readable("main")
    ('while_3 · every iteration › x', 'main')
    """
    return STEP.join(readable_steps(address))


def readable_around(address: str) -> str:
    """Return in words the graphs around the node of an address, and the scopes of its name.

    >>> readable_around("main/while_3[2]/body/attn%2FAdd_1")
    'while_3 · iteration 2 › attn'
    """
    return STEP.join(readable_steps(address)[:-1])


def readable_steps(address: str) -> tuple[str, ...]:
    """Return the steps of an address in words, outermost first.

    ``("main",)`` for the outermost graph. A text that is not an address is returned unchanged, as
    the only step.

    >>> readable_steps("main/a%2Floop[2]/body/a%2Fx")
    ('a', 'loop · iteration 2', 'x')
    """
    try:
        parsed = Address.parse(address)
    except AddressError:
        return (address,)
    steps: list[str] = []
    for index, name in _names(parsed.segments):
        segment = parsed.segments[index]
        if index % 2 == 0:
            steps[-1] += f"{PART}{name}"
            continue
        if (scope := _scope(name)) and len(name) > len(scope):
            steps.append(scope.strip("/") or scope)
        steps.append(name[len(scope) :] + _iteration_of(segment))
    if steps and parsed.output:
        steps[-1] += f"{PART}output {parsed.output}"
    return tuple(steps) or (ROOT,)


def pieces(address: str) -> tuple[tuple[int, str], ...]:
    """Return the names in a static address that people see, each with its segment number."""
    return tuple(_names(tuple(Segment(label) for label in address.split("/"))))


def static_words(text: str) -> str:
    """Return readable words without iterations and output number.

    >>> static_words("while_3 · iteration 2 › if_2 · then › Add_1 · output 1")
    'while_3 › if_2 · then › Add_1'
    """
    return _ITERATION.sub("", _OUTPUT.sub("", text)).replace(_EVERY_ITERATION, "")


def as_written(text: str) -> str:
    """Convert words copied from a screen to the notation of addresses; names are not encoded.

    >>> as_written("while_3 · iteration 1,199 › if_2 · then › attn › Add_1 · output 1")
    'while_3[1199]/if_2/then/attn/Add_1:1'
    """
    text = _OUTPUT.sub(r":\1", text)
    text = _ITERATION.sub(lambda match: f"[{match[1].replace(',', '')}]", text).replace(
        _EVERY_ITERATION, "[*]"
    )
    return text.replace(PART, "/").replace(STEP, "/")


def _names(segments: tuple[Segment, ...]) -> Iterator[tuple[int, str]]:
    """Yield the names of nodes and branches with their segment numbers.

    Each name lacks the scope of the node around it.
    """
    outer_scope = ""
    for index, segment in enumerate(segments[1:], 1):
        name = decode(segment.label)
        if index % 2 == 0:
            if name != "body":
                yield index, name
            continue
        scope = _scope(name)
        yield (
            index,
            name[len(outer_scope) :]
            if outer_scope and scope.startswith(outer_scope) and len(name) > len(outer_scope)
            else name,
        )
        outer_scope = scope


def _scope(name: str) -> str:
    """Return the scope that a name begins with, with its slash; empty if the name ends with one."""
    return name[: name.rfind("/") + 1] if not name.endswith("/") else ""


def _iteration_of(segment: Segment) -> str:
    match segment.iteration:
        case None:
            return ""
        case number if number == ANY_ITERATION:
            return _EVERY_ITERATION
        case number:
            return f"{PART}{iteration_words(number)}"
