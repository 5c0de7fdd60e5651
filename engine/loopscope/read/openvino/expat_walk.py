"""One expat pass over an untrusted document, driven by tables of the expected elements."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NoReturn
from xml.parsers import expat

from loopscope.errors import shorten
from loopscope.ir.model import NO_ATTRIBUTES
from loopscope.read.file_limits import ReadLimits

Attributes = dict[str, str]
Enter = Callable[[Attributes], None]
Leave = Callable[[], None]
Element = tuple[Enter | None, "Elements", Leave | None]
"""Handler for the start tag, elements allowed inside, handler for the end tag."""
Elements = dict[str, Element]
"""Elements allowed inside an element. Others are skipped with their content, as in OpenVINO."""

NO_ELEMENTS: Elements = {}
# Encodings that expat decodes itself, plus an alias of the last. For others expat would use
# Python's codecs, some of which are not text encodings.
_ENCODINGS = frozenset(
    {"utf-8", "utf-16", "utf-16le", "utf-16be", "us-ascii", "iso-8859-1", "latin1"}
)
_TRUNCATION_ERRORS = (
    expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS],
    expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN],
)

# Start tags after which a known block may follow.
_BLOCK = re.compile(rb"<(?:(?:layer|data) [^<>]*|input|output)>")

# Signs that bytes above 127 may have another meaning than in UTF-8.
_NOT_UTF_8 = re.compile(
    rb"\xff\xfe|\xfe\xff|[^\0]?\0|<\?xml[^>]*encoding\s*=\s*['\"](?!(?i:utf-8)['\"])"
)

# Whitespace before the XML declaration is invalid, but OpenVINO accepts it.
_BLANK = re.compile(rb"\s+(?=<\?xml)")


class MalformedXML(ValueError):
    """A document that is not well-formed XML."""

    def __init__(self, error: expat.ExpatError, lines_left_out: int) -> None:
        self.line = error.lineno + lines_left_out
        reason = (
            "the file ends too early"
            if error.code in _TRUNCATION_ERRORS
            else f"{expat.ErrorString(error.code)} in column {error.offset + 1}"
        )
        super().__init__(f"this is not well-formed XML: {reason}")


# Elements whose key is their attribute "name" instead of their tag.
_NAMED = ("info", "attribute")


class InformationCollector:
    """Collector of the elements inside one ``rt_info``; ``finished`` is the mapping after its end
    tag.
    """

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._open: list[tuple[str, dict[str, object]]] = [("", {})]

    @property
    def depth(self) -> int:
        """Number of open elements inside the outermost one."""
        return len(self._open) - 1

    @property
    def finished(self) -> Mapping[str, object]:
        return MappingProxyType(self._open[0][1])

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Enter an element. ``ValueError`` if it exceeds the limits on depth or text."""
        if self.depth >= self._limits.information_depth:
            raise ValueError(
                "elements of rt_info are nested deeper than"
                f" {self._limits.information_depth}, the limit 'information_depth'"
            )
        self._limits.short_texts(attributes)
        key = attributes.pop("name", tag) if tag in _NAMED else tag
        self._open.append((key, dict(attributes)))

    def end(self) -> None:
        """Leave the innermost element: ``<key value="..."/>`` becomes a text, any other element a
        mapping.
        """
        key, inside = self._open.pop()
        value: object = inside["value"] if inside.keys() == {"value"} else MappingProxyType(inside)
        self._open[-1][1][key] = value


class ExpatWalk:
    """A pass over a document that calls the handlers of the tables.

    A fault is a ``ValueError``, and ``line`` is its line. Nesting does not cause recursion. A DTD
    with declarations is refused; a bare DOCTYPE is allowed.
    """

    def __init__(self, document: bytes, limits: ReadLimits) -> None:
        self.document = _as_utf8(document)
        self._limits = limits
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.XmlDeclHandler = _refuse_encoding
        self.parser.StartDoctypeDeclHandler = _refuse_external
        self.parser.EntityDeclHandler = self.parser.ElementDeclHandler = _refuse_declaration
        self.parser.AttlistDeclHandler = self.parser.NotationDeclHandler = _refuse_declaration
        self.at = 0
        """End of the part of the document that was passed to expat or skipped."""
        self._bytes_left_out = self._lines_left_out = 0
        self._open: list[tuple[Elements, Leave | None]] = []
        self._elements: Elements = NO_ELEMENTS
        self._leave: Leave | None = None
        self._collector = InformationCollector(limits)
        self.information: Mapping[str, object] = NO_ATTRIBUTES
        """Content of the last ``rt_info`` or ``meta_data``."""

    @property
    def index(self) -> int:
        """Offset of the current tag in the document."""
        return self.parser.CurrentByteIndex + self._bytes_left_out

    @property
    def line(self) -> int:
        """Current line of the document."""
        return self.parser.CurrentLineNumber + self._lines_left_out

    def run(self, elements: Elements) -> None:
        """Parse the whole document; ``elements`` lists the allowed root elements."""
        self._elements = elements
        self._resume()
        document, parse, search = self.document, self.parser.Parse, _BLOCK.search
        if blank := _BLANK.match(document):
            self.leave_out(blank.end(), blank[0].count(b"\n"))
        try:
            while (tag := search(document, self.at)) is not None:
                begin, self.at = self.at, tag.end()
                parse(document[begin : self.at])
            begin, self.at = self.at, len(document)
            parse(document[begin:], True)
        except expat.ExpatError as error:
            raise MalformedXML(error, self._lines_left_out) from None

    def leave_out(self, end: int, lines: int) -> None:
        """Skip the document up to offset ``end`` without calling the end-tag handler.

        It must be called from a start-tag handler whose tag ends the current piece.
        """
        self._bytes_left_out += end - self.at
        self._lines_left_out += lines
        self.at = end
        self._leave = None

    def each(self, tag: str, enter: Enter) -> None:
        """Call ``enter`` for each direct child ``tag`` of the current element, which is faster than
        a table.

        It must be called from a start-tag handler. Other children are skipped.
        """
        depth = 0

        def start(name: str, attributes: Attributes) -> None:
            nonlocal depth
            if depth == 0 and name == tag:
                enter(attributes)
            depth += 1

        def end(name: str) -> None:
            nonlocal depth
            if depth == 0:
                self._resume()
                self._end(name)
            depth -= 1

        self._divert(start, end)

    def collect(self, attributes: Attributes) -> None:
        """Store the content of the current element in ``information``.

        It is a start-tag handler; ``information`` is set when the end-tag handler is called.
        """
        self._collector = InformationCollector(self._limits)
        self._divert(self._collector.start, self._collect_end)

    def _collect_end(self, tag: str) -> None:
        if self._collector.depth:
            self._collector.end()
            return
        self.information = self._collector.finished
        self._resume()
        self._end(tag)

    def _divert(
        self, start: Callable[[str, Attributes], None] | None, end: Callable[[str], None]
    ) -> None:
        self.parser.StartElementHandler, self.parser.EndElementHandler = start, end

    def _resume(self) -> None:
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end

    def _start(self, tag: str, attributes: Attributes) -> None:
        self._open.append((self._elements, self._leave))
        element = self._elements.get(tag)
        if element is None:
            if len(self._open) == 1:
                raise ValueError(
                    f"the outermost element is <{shorten(tag, 40)}>, expected <net> as in an"
                    " OpenVINO IR of version 10 or 11"
                )
            self._elements, self._leave = NO_ELEMENTS, None
            return
        enter, self._elements, self._leave = element
        if enter is not None:
            enter(attributes)

    def _end(self, tag: str) -> None:
        leave = self._leave
        self._elements, self._leave = self._open.pop()
        if leave is not None:
            leave()


def _as_utf8(document: bytes) -> bytes:
    r"""Replace bytes that are not UTF-8, such as names in a code page, by escapes such as ``\xf6``.

    OpenVINO reads such documents.
    """
    if document.isascii() or _NOT_UTF_8.match(document):
        return document
    try:
        document.decode()
    except UnicodeDecodeError:
        return document.decode(errors="backslashreplace").encode()
    return document


def _refuse_encoding(version: str, encoding: str | None, standalone: int) -> None:
    if encoding is not None and encoding.lower() not in _ENCODINGS:
        raise ValueError(
            f"the encoding {shorten(encoding, 40)!r} is not read, expected UTF-8:"
            " save the file as UTF-8"
        )


def _refuse_external(name: str, system: str | None, public: str | None, has_subset: bool) -> None:
    if system is not None or public is not None:
        raise ValueError(
            "the DOCTYPE refers to another file, which is never opened: remove the DOCTYPE"
        )


def _refuse_declaration(*declared: object) -> NoReturn:
    raise ValueError(
        f"the DOCTYPE declares {shorten(str(declared[0]), 40)!r}, but a model needs no"
        " declarations: remove the DOCTYPE"
    )
