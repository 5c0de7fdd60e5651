"""Elements of an XML document, created and written with lxml.

Texts that XML cannot represent are refused with an error that names them. ``rt_info`` and
``meta_data`` are made from the nested mappings of the reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from lxml import etree

from loopscope.errors import WriteError, shorten

if TYPE_CHECKING:
    # The stubs define this class, but lxml itself does not export it.
    from lxml.etree._serializer import _IncrementalFileWriter


_IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# Deeper levels are not indented further, because the tabs of nested bodies would dominate the file.
_MAX_INDENT = 40


def is_name(text: str) -> bool:
    """Return True if a text is a valid name of an element or attribute."""
    return _NAME.fullmatch(text) is not None


def element(tag: str, attributes: Mapping[str, object] | None = None) -> etree._Element:
    """Create an element; ``WriteError`` for an attribute name or text that XML cannot represent."""
    node = etree.Element(tag)
    _set_attributes(node, attributes or {})
    return node


def child(
    parent: etree._Element, tag: str, attributes: Mapping[str, object] | None = None
) -> etree._Element:
    """Create a new last child of ``parent``; ``WriteError`` as for ``element``."""
    node = etree.SubElement(parent, tag)
    _set_attributes(node, attributes or {})
    return node


def _set_attributes(node: etree._Element, attributes: Mapping[str, object]) -> None:
    for name, value in attributes.items():
        if not is_name(name):
            raise WriteError(
                f"attribute {shorten(name, 60)!r} cannot be written: its name is not a name in XML"
            )
        text = str(value)
        try:
            node.set(name, text)
        except ValueError as error:
            impossible = _IMPOSSIBLE.search(text)
            character = impossible[0] if impossible else text
            raise WriteError(
                f"{shorten(text, 60)!r} contains the character {character!r}, "
                "which XML cannot hold: rename it"
            ) from error


class DocumentWriter:
    """A writer of a document, element by element, each on its own line.

    A large document is never in memory as a whole.
    """

    def __init__(self, xml: _IncrementalFileWriter) -> None:
        self._xml = xml
        self._open: list[AbstractContextManager[object]] = []

    def begin(self, start: etree._Element) -> None:
        """Write the start tag of ``start``; further elements lie inside it until ``end``."""
        self._new_line()
        context = self._xml.element(start.tag, dict(start.attrib))
        context.__enter__()
        self._open.append(context)

    def end(self) -> None:
        """Close the element that was begun last."""
        context = self._open.pop()
        self._new_line()
        context.__exit__(None, None, None)

    def write(self, node: etree._Element) -> None:
        """Write an element with its content."""
        self._new_line()
        etree.indent(node, space="\t", level=min(len(self._open), _MAX_INDENT))
        self._xml.write(node)

    def _new_line(self) -> None:
        if self._open:
            self._xml.write("\n" + "\t" * min(len(self._open), _MAX_INDENT))


# The limit of the reader.
_MAX_DEPTH = 64


def information(
    tag: str, content: Mapping[str, object], *, of_layer: bool = False
) -> etree._Element:
    """Return an ``rt_info`` element.

    In a layer or port, mappings become ``<attribute name="..." .../>``; elsewhere they become
    sections.
    """
    root = element(tag)
    for key, value in content.items():
        _entry(root, key, value, of_layer=of_layer, depth=1)
    return root


def _entry(parent: etree._Element, key: str, value: object, *, of_layer: bool, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise WriteError(f"rt_info is nested deeper than {_MAX_DEPTH}, the limit of readers")
    plain = is_name(key) and key not in ("info", "attribute")
    tag, name = (key, {}) if plain else ("info", {"name": key})
    if not isinstance(value, Mapping):
        child(parent, tag, {**name, "value": value})
        return
    if not of_layer:
        target, content = child(parent, tag, name), value
    else:
        texts = {
            inner: text
            for inner, text in value.items()
            if not isinstance(text, Mapping) and is_name(inner) and inner != "name"
        }
        target = child(parent, "attribute", {"name": key, **texts})
        content = {inner: text for inner, text in value.items() if inner not in texts}
    for inner, text in content.items():
        _entry(target, inner, text, of_layer=False, depth=depth + 1)
