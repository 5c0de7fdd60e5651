"""Errors of the engine, each with one sentence and an optional place; and names shortened for
sentences.
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
    """Line of the file, from 1; 0 if unknown."""
    address: str = ""
    """Static address such as ``main/while_3/body/Add_1``."""
    operation: str = ""
    """Operation type with its version, such as ``Add-1``."""
    port: str = ""
    """Port such as ``input 1``."""

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
    """Base class of all errors of the engine."""


class ReadError(EngineError):
    """A file that cannot be read as a model."""

    def __init__(self, message: str, where: Where = Where()) -> None:
        self.where = where
        place = str(where)
        super().__init__(f"{place}: {message}" if place else message)


class WriteError(EngineError):
    """A model that cannot be written in the requested format."""


class InputError(EngineError):
    """Inputs of a run that do not fit the model's inputs."""


class MissingInput(InputError):
    """A required input without a value."""


class AddressError(EngineError):
    """An address that cannot be parsed, or that does not name a place in the model or run."""


class ValueUnavailable(EngineError):
    """An address without a value; the message explains why."""


class NotKept(ValueUnavailable, ValueError):
    """A value that depends on weights which the file of a run does not contain."""


class ExpressionError(EngineError):
    """An expression that is outside the small safe language, or that has no value here."""


class BuildError(EngineError, ValueError):
    """A graph under construction got an argument that it cannot be built from."""


MOST_OF_A_SENTENCE = 20_000
"""Maximum characters of a message; a user's kernel or another runtime may raise one of any
length.
"""
_PLACES = re.compile(
    r"(Exception from \S+:\d+:|Check '[^']*' failed at \S+:\d+:|FrontEnd API failed with \w+:)\s*"
)


def without_places(text: str) -> str:
    """Remove the places in OpenVINO's own source from its message, because they do not help
    users.
    """
    return _PLACES.sub("", text).strip().rstrip(".")


def listed(names: Sequence[str], limit: int = 8) -> str:
    """List names for a sentence, at most ``limit`` of them.

    >>> listed(["a", "b"])
    "'a', 'b'"
    """
    shown = ", ".join(repr(elided(name)) for name in names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


def elided(text: str, limit: int = 80) -> str:
    """Shorten a name or address for a sentence by removing its middle, because its end is most
    specific.

    Another program's sentence is only shortened if it is longer than a page
    (``MOST_OF_A_SENTENCE``).

    >>> elided("a" * 100 + "/body/Add_1")
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…aaaaaaaaaaaaaaaaaaaaaaaaaaaaa/body/Add_1'
    """
    half = limit // 2
    return text if len(text) <= limit else f"{text[: half - 1]}…{text[-half:]}"


def in_one_line(message: str) -> str:
    """Join the lines of a message.

    >>> in_one_line("There is 1 error.\\nLS404 main/loop: Input 3 is mapped to nothing.")
    'There is 1 error; LS404 main/loop: Input 3 is mapped to nothing.'
    """
    return message.replace(".\n", "; ").replace("\n", "; ")


def shorten(text: str, limit: int = 120) -> str:
    """Shorten text that may come from a file to ``limit`` characters. Quoted text stays quoted.

    >>> shorten("abcdef", 5)
    'ab...'
    >>> shorten(repr("abcdef"), 7)
    "'ab...'"
    """
    if len(text) <= limit:
        return text
    end = "..." + (text[-1] if text[0] == text[-1] and text[0] in "'\"" else "")
    return text[: limit - len(end)] + end


MOST_OF_A_NAME = 160


def neutral(text: str, limit: int = MOST_OF_A_NAME) -> str:
    """Shorten text in the middle to ``limit`` characters, and remove characters that could hide or
    reorder it.

    Control characters, surrogates, private and format characters (including bidirectional
    overrides) become U+FFFD; line breaks and tabs become spaces.

    >>> neutral("a\\tb\\x00c"), neutral("abc\\u202egnp.exe"), neutral("encoder/layer/add", 9)
    ('a b\\ufffdc', 'abc\\ufffdgnp.exe', 'enco…/add')
    """
    if len(text) > limit:
        tail = (limit - 1) // 2
        text = f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}" if tail else text[:limit]
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character in "\n\r\t\u2028\u2029":
        return " "
    category = unicodedata.category(character)
    # Zs contains unusual but harmless spaces; every class C character hides something.
    return "\ufffd" if category[0] == "C" or character in "\ufffe\uffff" else character


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun in a sentence.

    >>> counted(1, "value"), counted(1200, "entry", "entries")
    ('1 value', '1,200 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
