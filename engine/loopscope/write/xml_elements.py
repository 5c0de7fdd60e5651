"""Elements of an XML document, made and written with lxml; what XML cannot hold is refused by
name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from lxml import etree

from loopscope.errors import WriteError, shorten

if TYPE_CHECKING:
    # The stubs name this class, which lxml itself does not give out.
    from lxml.etree._serializer import _IncrementalFileWriter

_IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# Deeper levels are not indented any further, or the tabs of nested bodies would outgrow the rest.
_DEEPEST = 40


def is_name(text: str) -> bool:
    """Whether a text can be the name of an element or attribute."""
    return _NAME.fullmatch(text) is not None


def element(tag: str, attributes: Mapping[str, object] | None = None) -> etree._Element:
    """A new element; ``WriteError`` names the attribute, or the text in it, that XML cannot
    hold.
    """
    made = etree.Element(tag)
    _fill(made, attributes or {})
    return made


def child(
    parent: etree._Element, tag: str, attributes: Mapping[str, object] | None = None
) -> etree._Element:
    """A new last child of ``parent``; refuses what ``element`` refuses."""
    made = etree.SubElement(parent, tag)
    _fill(made, attributes or {})
    return made


def _fill(made: etree._Element, attributes: Mapping[str, object]) -> None:
    for name, value in attributes.items():
        if not is_name(name):
            raise WriteError(
                f"attribute {shorten(name, 60)!r} cannot be written: its name is not a name in XML"
            )
        text = str(value)
        try:
            made.set(name, text)
        except ValueError as error:
            impossible = _IMPOSSIBLE.search(text)
            character = impossible[0] if impossible else text
            raise WriteError(
                f"{shorten(text, 60)!r} contains the character {character!r}, which XML cannot hold: rename it"
            ) from error


class DocumentWriter:
    """Writes a document element by element, each on a line of its own, so that a large one is
    never held as a whole.
    """

    def __init__(self, xml: _IncrementalFileWriter) -> None:
        self._xml = xml
        self._open: list[AbstractContextManager[object]] = []

    def begin(self, start: etree._Element) -> None:
        """Writes the start tag of ``start``; what follows lies inside it until ``end``."""
        self._new_line()
        context = self._xml.element(start.tag, dict(start.attrib))
        context.__enter__()
        self._open.append(context)

    def end(self) -> None:
        """Closes the element that was begun last."""
        context = self._open.pop()
        self._new_line()
        context.__exit__(None, None, None)

    def write(self, whole: etree._Element) -> None:
        """Writes an element with all that is inside it."""
        self._new_line()
        etree.indent(whole, space="\t", level=min(len(self._open), _DEEPEST))
        self._xml.write(whole)

    def _new_line(self) -> None:
        if self._open:
            self._xml.write("\n" + "\t" * min(len(self._open), _DEEPEST))
