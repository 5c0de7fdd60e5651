"""Addresses, iterations and numbers in the form that people read, for sentences and screens.

An address is ``while_3 · iteration 2 › layers.0/attn › Gather_0``, an iteration has its number in
the model (from 0), and a number is rounded to significant digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from loopscope.errors import AddressError
from loopscope.ir.address import ANY_ITERATION, ROOT, Address, Segment, decode


def iteration_words(number: int, count: int | None = None) -> str:
    """Return the words for an iteration.

    ``count`` is the known number of iterations of the loop, or the highest number that it may run.

    >>> iteration_words(0), iteration_words(3, 12), iteration_words(6, 7), iteration_words(1199)
    ('iteration 0', 'iteration 3 of 12', 'iteration 6, the last of 7', 'iteration 1,199')
    >>> iteration_words(0, 1)
    'iteration 0, the only one'
    """
    position = "" if count is None else place_among(number, count)
    separator = " " if position.startswith("of") else ", "
    return f"iteration {number:,}{separator}{position}" if position else f"iteration {number:,}"


def place_among(number: int, count: int) -> str:
    """Return the words for the position of an iteration among all iterations of its loop.

    >>> place_among(3, 12), place_among(6, 7), place_among(0, 1)
    ('of 12', 'the last of 7', 'the only one')
    """
    if number + 1 < count:
        return f"of {count:,}"
    return "the only one" if count == 1 else f"the last of {count:,}"


def iteration_range(first: int, last: int) -> str:
    """Return the words for consecutive iterations, both ends included.

    >>> iteration_range(3, 3), iteration_range(0, 1199)
    ('iteration 3', 'iterations 0 to 1,199')
    """
    return iteration_words(first) if first == last else f"iterations {first:,} to {last:,}"


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


_SMALLEST, _LARGEST = 1e-4, 1e6
"""Magnitudes between which a number is written without an exponent."""


def significant(number: float | int | np.generic, digits: int = 4) -> str:
    """Return a number rounded to significant digits, without trailing zeros.

    Integers are exact. The integer part of other numbers keeps all its digits below a million,
    where no exponent is used.

    >>> significant(3.0), significant(0.123456), significant(-0.5), significant(12345.67)
    ('3', '0.1235', '-0.5', '12346')
    >>> significant(0.0001), significant(3e-10), significant(1234567.0), significant(1e20, 2)
    ('0.0001', '3e-10', '1.235e6', '1e20')
    >>> significant(float("nan")), significant(float("-inf")), significant(1234567)
    ('NaN', '-infinity', '1234567')
    """
    if isinstance(number, bool | np.bool_):
        return "true" if number else "false"
    if isinstance(number, int | np.integer):
        return str(int(number))
    value = float(number)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value}inity"
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    return f"{value:.0f}" if _SMALLEST <= abs(value) < _LARGEST else short_exponent(text)


def short_exponent(text: str) -> str:
    """Return the text of a number without a plus and leading zeros in its exponent.

    >>> short_exponent("1e-07"), short_exponent("1.5e+20"), short_exponent("0.25")
    ('1e-7', '1.5e20', '0.25')
    """
    mantissa, marked, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if marked else text
