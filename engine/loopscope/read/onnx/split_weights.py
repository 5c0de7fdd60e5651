"""Split of an ONNX file into an outline without large tensor data and views of that data.

Most of a file is never copied or parsed. Data is left out of initializers and Constants in the
outermost graph and in bodies of If and Loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from loopscope.read.onnx.message_limit import varint

SMALL_FILE = 2**16
"""Size in bytes up to which a file is parsed whole."""
_LARGE = 2**13
"""Size in bytes above which tensor data is left out. Shapes and axes are smaller, and inference
needs them.
"""
_MAX_FIELDS, _MAX_DEPTH = 2**20, 100
"""Limits on fields and nesting depth; a file beyond them is parsed whole."""

_Pieces = list[bytes | memoryview]
_Field = tuple[int, int, int, int]
"""Start of a field, its tag, start and end of its content."""


@dataclass(frozen=True, slots=True)
class WeightViews:
    """Views of the tensor data of one graph that was not parsed."""

    initializers: dict[int, memoryview] = field(default_factory=dict[int, memoryview])
    """``raw_data`` by the index of the initializer."""
    constants: dict[int, memoryview] = field(default_factory=dict[int, memoryview])
    """``raw_data`` of attribute ``value`` by the index of the node."""
    bodies: dict[tuple[int, str], WeightViews] = field(
        default_factory=dict[tuple[int, str], "WeightViews"]
    )
    """Views for the graphs inside, by node index and attribute name."""


NO_VIEWS = WeightViews()
"""Views of a graph that was parsed whole. They stay empty."""


@dataclass(frozen=True, slots=True)
class SplitFile:
    """An outline that parses to the file's ModelProto without the data in ``views``."""

    outline: bytes
    views: WeightViews = NO_VIEWS


def split_weights(document: bytes, small: int = SMALL_FILE, large: int = _LARGE) -> SplitFile:
    """Split an ONNX file. Small files, and files that are not valid protobuf, are returned
    unchanged.
    """
    if len(document) <= small:
        return SplitFile(document)
    try:
        return _Splitter(document, large).split()
    except (IndexError, _CannotSplit):
        return SplitFile(document)


class _CannotSplit(Exception):
    """Invalid or too many protobuf fields, so the file is parsed whole."""


class _Splitter:
    """One pass over the fields of the model, its graph, and the large messages in it."""

    def __init__(self, document: bytes, large: int) -> None:
        self.document, self.view = document, memoryview(document)
        self.large = large
        self.fields = 0

    def split(self) -> SplitFile:
        fields = self._fields(0, len(self.document))
        graphs = [entry for entry in fields if entry[1] == _GRAPH]
        if len(graphs) != 1:
            raise _CannotSplit
        ((start, _, begin, end),) = graphs
        views = WeightViews()
        # A model function may redefine any operation and use the tensors in its attributes.
        has_functions = any(tag == _FUNCTION for _, tag, _, _ in fields)
        graph = self._graph(begin, end, views, 0, enters_nodes=not has_functions)
        return SplitFile(
            b"".join((self.view[:start], *_encode_field(_GRAPH, graph), self.view[end:])), views
        )

    def _graph(
        self, begin: int, end: int, views: WeightViews, depth: int, *, enters_nodes: bool
    ) -> _Pieces:
        if depth > _MAX_DEPTH:
            raise _CannotSplit
        pieces, copied = _Pieces(), begin
        for start, tag, inside, stop, number in self._large_fields(begin, end):
            shortened = None
            if tag == _NODE and enters_nodes:
                shortened = self._node(inside, stop, number, views, depth)
            elif tag == _INITIALIZER:
                shortened = self._tensor(inside, stop, views.initializers, number)
            if shortened is not None:
                pieces += (self.view[copied:start], *_encode_field(tag, shortened))
                copied = stop
        return [*pieces, self.view[copied:end]]

    def _node(
        self, begin: int, end: int, number: int, views: WeightViews, depth: int
    ) -> _Pieces | None:
        """Return the node without its large data, or None if the node must be parsed whole.

        That is the case if the large field is not ``value.raw_data`` or a body, or a field is
        repeated.
        """
        fields = self._fields(begin, end)
        kind = _last_text(self._texts(fields, _KIND))
        if any(self._texts(fields, _DOMAIN)) or kind not in _OPERATIONS_WITH_DATA:
            return None
        attributes = [entry for entry in fields if entry[1] == _ATTRIBUTE]
        names = [
            _last_text(self._texts(self._fields(inside, stop), _NAME))
            for _, _, inside, stop in attributes
        ]
        if len({*names}) < len(names) or (kind == b"Constant" and names != [b"value"]):
            return None
        pieces, copied = _Pieces(), begin
        for (start, tag, inside, stop), name in zip(attributes, names, strict=True):
            shortened = (
                self._attribute(inside, stop, number, name, views, depth)
                if stop - inside > self.large
                else None
            )
            if shortened is not None:
                pieces += (self.view[copied:start], *_encode_field(tag, shortened))
                copied = stop
        return [*pieces, self.view[copied:end]]

    def _attribute(
        self, begin: int, end: int, number: int, name: bytes, views: WeightViews, depth: int
    ) -> _Pieces | None:
        fields = self._fields(begin, end)
        tags = [tag for _, tag, _, _ in fields]
        expected_tag = _TENSOR if name == b"value" else _BODY
        types = [
            varint(self.document, inside, stop)[0]
            for _, tag, inside, stop in fields
            if tag == _TYPE
        ]
        if (
            tags.count(expected_tag) != 1
            or _REFERENCE in tags
            or types[-1:] != [_ATTRIBUTE_TYPES[expected_tag]]
            or not name.isascii()
        ):
            return None
        start, tag, inside, stop = fields[tags.index(expected_tag)]
        if tag == _TENSOR:
            shortened = self._tensor(inside, stop, views.constants, number)
        else:
            body_views = views.bodies[number, name.decode()] = WeightViews()
            shortened = self._graph(inside, stop, body_views, depth + 1, enters_nodes=True)
        return (
            None
            if shortened is None
            else [self.view[begin:start], *_encode_field(tag, shortened), self.view[stop:end]]
        )

    def _tensor(
        self, begin: int, end: int, views: dict[int, memoryview], number: int
    ) -> _Pieces | None:
        """Return a tensor without its data and store a view of the data in ``views``; None if it is
        small.

        If ``raw_data`` is repeated, the last one counts, as in protobuf.
        """
        pieces, copied, data = _Pieces(), begin, self.view[:0]
        for start, tag, inside, stop in self._fields(begin, end):
            if tag == _RAW_DATA:
                pieces.append(self.view[copied:start])
                data, copied = self.view[inside:stop], stop
        if len(data) <= self.large:
            return None
        views[number] = data
        return [*pieces, self.view[copied:end]]

    def _texts(self, fields: Sequence[_Field], expected_tag: int) -> list[bytes]:
        return [self.document[begin:end] for _, tag, begin, end in fields if tag == expected_tag]

    def _large_fields(self, position: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield the large fields of a graph: start, tag, content start, content end, and index.

        The index counts the nodes or initializers before the field.
        """
        document, large, tags = self.document, self.large, bytearray()
        append_tag = tags.append
        numbers, counted = Counter[int](), 0
        for _ in range(_MAX_FIELDS):
            if position >= end:
                break
            start, tag, length = position, document[position], document[position + 1]
            # Fast path for nearly all fields: a tag of one byte and a length of one or two.
            if tag in _ONE_BYTE_TAGS and (length < 128 or document[position + 2] < 128):
                position += 2
                if length >= 128:
                    length, position = length & 127 | document[position] << 7, position + 1
                position += length
                append_tag(tag)
            else:
                _, tag, inside, position = self._field(position, end)
                length = position - inside
                append_tag(tag if tag < 256 else 0)
            if length > large:
                for kind in (_NODE, _INITIALIZER):
                    numbers[kind] += tags.count(kind, counted, -1)
                counted = len(tags) - 1
                yield start, tag, position - length, position, numbers[tag]
        self._counted(len(tags), position, end)

    def _fields(self, position: int, end: int) -> list[_Field]:
        """Return the fields of the message in these bytes."""
        fields = list[_Field]()
        while position < end and len(fields) <= _MAX_FIELDS:
            fields.append(self._field(position, end))
            position = fields[-1][-1]
        self._counted(len(fields), position, end)
        return fields

    def _counted(self, fields: int, position: int, end: int) -> None:
        self.fields += fields
        if position != end or self.fields > _MAX_FIELDS:
            raise _CannotSplit

    def _field(self, position: int, end: int) -> _Field:
        start, tag, length = position, self.document[position], self.document[position + 1]
        if length < 128 and tag in _ONE_BYTE_TAGS:
            return start, tag, position + 2, position + 2 + length
        tag, position = varint(self.document, start, end)
        kind = tag & 7
        if kind == 2:
            length, position = varint(self.document, position, end)
            return start, tag, position, position + length
        if kind == 0:
            return start, tag, position, varint(self.document, position, end)[1]
        if kind in _FIXED_SIZES:
            return start, tag, position, position + _FIXED_SIZES[kind]
        raise _CannotSplit


# Tags of fields in onnx.proto: field number << 3 | wire type (0: varint, 2: length-delimited).
_GRAPH, _FUNCTION = 7 << 3 | 2, 25 << 3 | 2
_NODE, _INITIALIZER = 1 << 3 | 2, 5 << 3 | 2
_KIND, _ATTRIBUTE, _DOMAIN = 4 << 3 | 2, 5 << 3 | 2, 7 << 3 | 2
_NAME, _TENSOR, _BODY, _TYPE, _REFERENCE = 1 << 3 | 2, 5 << 3 | 2, 6 << 3 | 2, 20 << 3, 21 << 3 | 2
_RAW_DATA = 9 << 3 | 2
_ONE_BYTE_TAGS = frozenset(number << 3 | 2 for number in range(1, 16))
"""One-byte tags of length-delimited fields, which nearly all fields have."""
_FIXED_SIZES = {1: 8, 5: 4}
"""Size in bytes of the fixed-size wire types."""
_ATTRIBUTE_TYPES = {_TENSOR: 4, _BODY: 5}
_OPERATIONS_WITH_DATA = (b"Constant", b"If", b"Loop")


def _last_text(texts: Sequence[bytes]) -> bytes:
    """Return the last of the texts, which protobuf uses for a repeated singular field."""
    return texts[-1] if texts else b""


def _encode_field(tag: int, pieces: _Pieces) -> _Pieces:
    """Encode a field with these pieces as content. All tags used in this module are one byte."""
    length = sum(map(len, pieces))
    header = bytearray([tag])
    while length >= 128:
        header.append(length & 127 | 128)
        length >>= 7
    header.append(length)
    return [bytes(header), *pieces]
