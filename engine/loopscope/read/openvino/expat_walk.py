"""One pass of expat over an untrusted document: each element that means something has a row in
the table of its surroundings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NoReturn
from xml.parsers import expat

from loopscope.errors import shorten
from loopscope.ir.model import NO_ATTRIBUTES
from loopscope.read.file_limits import ReadLimits
from loopscope.read.openvino.information import InformationCollector

Attributes = dict[str, str]
Enter = Callable[[Attributes], None]
Leave = Callable[[], None]
Element = tuple[Enter | None, "Elements", Leave | None]
"""What to do where it begins, what may stand inside, what to do where it ends."""
Elements = dict[str, Element]
"""What may stand inside an element; anything else is passed over with all that is in it, as
OpenVINO does.
"""

NOTHING: Elements = {}
# What expat itself decodes, and one more name for the last of them. For any other it would ask
# Python's codecs, which do stranger things.
_ENCODINGS = frozenset(
    {"utf-8", "utf-16", "utf-16le", "utf-16be", "us-ascii", "iso-8859-1", "latin1"}
)
_CUT = (
    expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS],
    expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN],
)

# Tags after which a block may stand that is known.
_BLOCK = re.compile(rb"<(?:(?:layer|data) [^<>]*|input|output)>")

# What says that bytes above 127 may mean something else than in UTF-8.
_NOT_UTF_8 = re.compile(
    rb"\xff\xfe|\xfe\xff|[^\0]?\0|<\?xml[^>]*encoding\s*=\s*['\"](?!(?i:utf-8)['\"])"
)

# What should not stand before the declaration, and does no harm: OpenVINO reads it.
_BLANK = re.compile(rb"\s+(?=<\?xml)")


class MalformedXML(ValueError):
    """The document is not well-formed XML."""

    def __init__(self, error: expat.ExpatError, lines_left_out: int) -> None:
        self.line = error.lineno + lines_left_out
        reason = (
            "the file ends too early"
            if error.code in _CUT
            else f"{expat.ErrorString(error.code)} in column {error.offset + 1}"
        )
        super().__init__(f"this is not well-formed XML: {reason}")


class ExpatWalk:
    """Calls what the tables say; a fault anywhere is a ``ValueError``, and ``line`` is where.

    Nothing recurses, whatever the nesting. What a DTD declares is refused; a bare DOCTYPE is
    harmless.
    """

    def __init__(self, document: bytes, limits: ReadLimits) -> None:
        self.document = _in_utf8(document)
        self._limits = limits
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.XmlDeclHandler = _refuse_encoding
        self.parser.StartDoctypeDeclHandler = _refuse_external
        self.parser.EntityDeclHandler = self.parser.ElementDeclHandler = _refuse_declaration
        self.parser.AttlistDeclHandler = self.parser.NotationDeclHandler = _refuse_declaration
        self.at = 0
        """How much of the document expat has been given or was left out: where the piece ends
        that it is walking over.
        """
        self._bytes_left_out = self._lines_left_out = 0
        self._open: list[tuple[Elements, Leave | None]] = []
        self._elements: Elements = NOTHING
        self._leave: Leave | None = None
        self._collector = InformationCollector(limits)
        self.information: Mapping[str, object] = NO_ATTRIBUTES
        """What the last ``rt_info`` or ``meta_data`` held."""

    @property
    def index(self) -> int:
        """The byte of the document where the tag begins that the walk is at."""
        return self.parser.CurrentByteIndex + self._bytes_left_out

    @property
    def line(self) -> int:
        """Where in the document the walk is now."""
        return self.parser.CurrentLineNumber + self._lines_left_out

    def run(self, elements: Elements) -> None:
        """Walks the whole document; ``elements`` names what may be its outermost element."""
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
        """From an ``Enter`` whose tag ends the piece: the walk goes on at byte ``end`` of its
        element, and no ``Leave`` is called.
        """
        self._bytes_left_out += end - self.at
        self._lines_left_out += lines
        self.at = end
        self._leave = None

    def each(self, tag: str, enter: Enter) -> None:
        """From an ``Enter``: calls ``enter`` for each ``tag`` right inside its element, passing
        over the rest; faster than a table.
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
        """An ``Enter`` that puts all that is inside into ``information``, ready when the
        ``Leave`` is called.
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
                    f"the outermost element is <{shorten(tag, 40)}>, expected <net> as in an OpenVINO IR of version 10 or 11"
                )
            self._elements, self._leave = NOTHING, None
            return
        enter, self._elements, self._leave = element
        if enter is not None:
            enter(attributes)

    def _end(self, tag: str) -> None:
        leave = self._leave
        self._elements, self._leave = self._open.pop()
        if leave is not None:
            leave()


def _in_utf8(document: bytes) -> bytes:
    r"""Bytes that are no UTF-8, such as names in the code page of some computer, are written
    ``\xf6``: OpenVINO reads such documents.
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
            f"the encoding {shorten(encoding, 40)!r} is not read, expected UTF-8: save the file as UTF-8"
        )


def _refuse_external(name: str, system: str | None, public: str | None, has_subset: bool) -> None:
    if system is not None or public is not None:
        raise ValueError(
            "the DOCTYPE refers to another file, which is never opened: remove the DOCTYPE"
        )


def _refuse_declaration(*declared: object) -> NoReturn:
    raise ValueError(
        f"the DOCTYPE declares {shorten(str(declared[0]), 40)!r}, but a model needs no declarations: remove the DOCTYPE"
    )
