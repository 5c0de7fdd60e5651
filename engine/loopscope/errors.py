"""Every way the engine says no: a place, a small family of errors, one sentence each; and names
as sentences show them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file or in a graph; every part is optional."""

    file: str = ""
    line: int = 0
    """1-based line of the file; 0 when unknown."""
    address: str = ""
    """Static address such as ``main/while_3/body/Add_1``."""
    operation: str = ""
    """Operation type with its version, such as ``Add-1``."""
    port: str = ""
    """Such as ``input 1``."""

    def __str__(self) -> str:
        line = f":{self.line}" if self.file else f"line {self.line}"
        file = self.file + (line if self.line else "")
        operation = (
            f"{self.address} ({self.operation})"
            if self.address and self.operation
            else self.address or self.operation
        )
        return ", ".join(part for part in (file, operation, self.port) if part)


class EngineError(Exception):
    """Everything that the engine refuses or fails at."""


class ReadError(EngineError):
    """No model can be made of the file."""

    def __init__(self, message: str, where: Where = Where()) -> None:
        self.where = where
        place = str(where)
        super().__init__(f"{place}: {message}" if place else message)


class WriteError(EngineError):
    """The model cannot be written in the form that was asked for."""


class InputError(EngineError):
    """The inputs given for a run do not fit the model's inputs."""


class MissingInput(InputError):
    """A run needs a value for an input, and none is given."""


class AddressError(EngineError):
    """An address that cannot be parsed, or that names no place in the model or run."""


class ValueUnavailable(EngineError):
    """There is no value at an address, and the message says why."""


class NotKept(ValueUnavailable, ValueError):
    """A value that depends on weights which the file of a run was saved without."""


class ExpressionError(EngineError):
    """An expression that is outside the small safe language, or that has no value here."""


class BuildError(EngineError, ValueError):
    """A graph under construction was given something that it cannot be built from."""


MOST_OF_A_SENTENCE = 20_000
"""Characters; a user's kernel or another runtime may say any number of them."""
_PLACES = re.compile(
    r"(Exception from \S+:\d+:|Check '[^']*' failed at \S+:\d+:|FrontEnd API failed with \w+:)\s*"
)


def without_places(text: str) -> str:
    """A message of OpenVINO without the places in OpenVINO's own source, which mean nothing to
    users.
    """
    return _PLACES.sub("", text).strip().rstrip(".")


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a sentence, cut when there are many.

    >>> listed(["a", "b"])
    "'a', 'b'"
    """
    shown = ", ".join(repr(elided(name)) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def elided(text: str, most: int = 80) -> str:
    """A name or address for a sentence, which is never cut itself: a long name loses its middle,
    since its end tells most.

    A sentence of others loses its middle only where it is longer than a page
    (``MOST_OF_A_SENTENCE``).

    >>> elided("a" * 100 + "/body/Add_1")
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…aaaaaaaaaaaaaaaaaaaaaaaaaaaaa/body/Add_1'
    """
    half = most // 2
    return text if len(text) <= most else f"{text[: half - 1]}…{text[-half:]}"


def in_one_line(message: str) -> str:
    """A message of several lines as one.

    >>> in_one_line("There is 1 error.\\nLS404 main/loop: Input 3 is mapped to nothing.")
    'There is 1 error; LS404 main/loop: Input 3 is mapped to nothing.'
    """
    return message.replace(".\n", "; ").replace("\n", "; ")


def shorten(text: str, most: int = 120) -> str:
    """Text that may come from a file, cut to a length that a message can bear; what is quoted stays
    quoted.

    >>> shorten("abcdef", 5)
    'ab...'
    >>> shorten(repr("abcdef"), 7)
    "'ab...'"
    """
    if len(text) <= most:
        return text
    end = "..." + (text[-1] if text[0] == text[-1] and text[0] in "'\"" else "")
    return text[: most - len(end)] + end


MOST_OF_A_NAME = 160


def neutral(text: str, most: int = MOST_OF_A_NAME) -> str:
    """Text cut in the middle to ``most`` characters, without characters that could hide or reorder
    what is shown.

    Control characters, surrogates, private and format characters (bidirectional overrides among
    them) become U+FFFD; line breaks and tabs become spaces.

    >>> neutral("a\\tb\\x00c"), neutral("abc\\u202egnp.exe"), neutral("encoder/layer/add", 9)
    ('a b\\ufffdc', 'abc\\ufffdgnp.exe', 'enco…/add')
    """
    if len(text) > most:
        tail = (most - 1) // 2
        text = f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}" if tail else text[:most]
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\r\t\u2028\u2029":
        return " "
    category = unicodedata.category(character)
    # Zs holds odd spaces that are harmless; everything of class C hides something.
    return "\ufffd" if category[0] == "C" or character in "\ufffe\uffff" else character


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun in a sentence.

    >>> counted(1, "value"), counted(1200, "entry", "entries")
    ('1 value', '1,200 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
