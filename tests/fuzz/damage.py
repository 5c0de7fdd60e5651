"""Ways to damage a model file: blindly in its bytes, and knowing what an XML document, weights,
an ONNX model or an archive is made of.
"""

from __future__ import annotations

import copy
import io
import random
import struct
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message
from lxml import etree

from tests.fuzz import knots
from tests.fuzz.onnx_mutants import changed

NUMBERS = (
    *(
        "0",
        "1",
        "2",
        "-1",
        "-2",
        "3",
        "7",
        "64",
        "255",
        "65536",
        "1000000",
        "2147483647",
        "2147483648",
        "-2147483648",
        "4294967295",
    ),
    *(
        "1000000000000",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551616",
        "1e30",
        "nan",
        "inf",
        "-0",
        "+1",
        "0x10",
    ),
)
SHAPES = (
    "",
    "0",
    "1",
    "?",
    "-1",
    "...",
    "1,1",
    "2,3",
    "0,0",
    "1000000,1000000",
    "?,3",
    "1..5,3",
    "65536,65536",
    "1,1,1,1,1,1,1,1",
)
TYPES = (
    "f32",
    "f16",
    "bf16",
    "f64",
    "i8",
    "i32",
    "i64",
    "u8",
    "u64",
    "boolean",
    "string",
    "i4",
    "u4",
    "u1",
    "nf4",
    "dynamic",
    "f8e4m3",
    "undefined",
)
PRECISIONS = (
    "FP32",
    "FP16",
    "I64",
    "I32",
    "BOOL",
    "U8",
    "STRING",
    "I4",
    "U1",
    "UNSPECIFIED",
    "FP64",
    "BF16",
    "dynamic",
)
WORDS = (
    "",
    " ",
    "numpy",
    "pdv",
    "none",
    "true",
    "false",
    "max",
    "explicit",
    "same_upper",
    "a" * 3000,
    "é\u202e<&\"'",
    "\n\t",
    "%s%n",
    "../../x",
    "main/x",
)
BYTES = (
    b"",
    b"<",
    b">",
    b'"',
    b"\0",
    b"\xff",
    b"&#0;",
    b"&lt;",
    b"]]>",
    b"<!--",
    b"<a>",
    b"</layer>",
    b"</body>",
    b"-1",
    b"99999999999999999999",
)


def mutated(dice: random.Random, document: bytes, weights: bytes) -> tuple[bytes, bytes]:
    """The same files with one to four things changed; equal dice give equal files."""
    for _ in range(dice.choice((1, 1, 1, 2, 3, 4))):
        if weights and dice.random() < 0.2:
            weights = _weights(dice, weights)
        elif dice.random() < 0.2:
            document = bytes_changed(dice, document)
        elif document.startswith(b"\x08"):
            document = _onnx(dice, document)
        elif document.startswith(b"PK"):
            document = _archive(dice, document)
        else:
            document = _xml(dice, document)
    return document, weights


def bytes_changed(dice: random.Random, data: bytes) -> bytes:
    if not data:
        return dice.choice(BYTES)
    begin = dice.randrange(len(data))
    length = dice.choice((1, 1, 2, 8, 64, 500))
    part = data[begin : begin + length]
    match dice.randrange(6):
        case 0:
            return data[:begin] + bytes([data[begin] ^ 1 << dice.randrange(8)]) + data[begin + 1 :]
        case 1:
            return data[:begin] + data[begin + length :]
        case 2:
            return data[:begin] + part * dice.choice((2, 2, 3, 100)) + data[begin + length :]
        case 3:
            return data[:begin] + dice.choice(BYTES) + data[begin:]
        case 4:
            to = dice.randrange(len(data))
            return data[:to] + part + data[to:]
        case _:
            return (
                data[:begin]
                if dice.random() < 0.2
                else data[:begin] + dice.randbytes(len(part)) + data[begin + length :]
            )


def _weights(dice: random.Random, data: bytes) -> bytes:
    if dice.random() < 0.2:
        return bytes_changed(dice, data)
    kind = dice.choice(["<q", "<i", "<f", "<d", "<b"])
    size = struct.calcsize(kind)
    if len(data) < size:
        return bytes_changed(dice, data)
    begin = dice.randrange(0, len(data) - size + 1, size if dice.random() < 0.5 else 1)
    if kind in ("<f", "<d"):
        value: float = dice.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), -0.0, 0.5, 1e-40))
    else:
        most = 2 ** (8 * size - 1) - 1
        value = dice.choice(
            (
                0,
                1,
                2,
                3,
                -1,
                -2,
                7,
                100,
                most,
                -most - 1,
                most // 2,
                1 << 4 * size,
                min(10**12, most),
                min(100_000, most),
            )
        )
    return data[:begin] + struct.pack(kind, value) + data[begin + size :]


# -- XML
# ----------------------------------------------------------------------------------------------------------


def _xml(dice: random.Random, document: bytes) -> bytes:
    try:
        root = etree.fromstring(document, etree.XMLParser(resolve_entities=False, huge_tree=True))
    except etree.XMLSyntaxError:
        return bytes_changed(dice, document)
    elements = [element for element in root.iter() if isinstance(element.tag, str)]
    # Elements of all kinds alike: otherwise hardly anything but <dim> and <port> would be changed.
    tag = dice.choice(sorted({element.tag for element in elements}))
    element = dice.choice([element for element in elements if element.tag == tag])
    dice.choice(_XML)(dice, element, elements)
    return etree.tostring(root)


def _change_attribute(
    dice: random.Random, element: etree._Element, elements: list[etree._Element]
) -> None:
    if not element.attrib:
        element.text = dice.choice(NUMBERS)
        return
    name = dice.choice(sorted(element.attrib))
    element.set(name, _value(dice, name, element.get(name, ""), elements))


def _value(dice: random.Random, name: str, value: str, elements: list[etree._Element]) -> str:
    """Another value for an attribute: mostly one that could stand there, sometimes one that
    could not.
    """
    chance = dice.random()
    if chance < 0.35:
        others = sorted({other.get(name, "") for other in elements if name in other.attrib})
        return dice.choice(others)
    if chance < 0.6:
        if name in ("shape", "dims"):
            return dice.choice(SHAPES)
        if "type" in name:
            return dice.choice(TYPES)
        if name == "precision":
            return dice.choice(PRECISIONS)
    if chance < 0.9:
        numeric = value.lstrip("-").isdigit()
        return (
            str(int(value) + dice.choice((-1, 1)))
            if numeric and dice.random() < 0.4
            else dice.choice(NUMBERS)
        )
    return dice.choice(WORDS)


def _remove_attribute(
    dice: random.Random, element: etree._Element, elements: list[etree._Element]
) -> None:
    if element.attrib:
        del element.attrib[dice.choice(sorted(element.attrib))]


def _take_attribute(
    dice: random.Random, element: etree._Element, elements: list[etree._Element]
) -> None:
    """An attribute that some other element has."""
    name, value = dice.choice(sorted({pair for other in elements for pair in other.attrib.items()}))
    element.set(name, value)


def _remove(dice: random.Random, element: etree._Element, elements: list[etree._Element]) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _double(dice: random.Random, element: etree._Element, elements: list[etree._Element]) -> None:
    parent = element.getparent()
    if parent is not None:
        for _ in range(dice.choice((1, 1, 2, 50))):
            parent.insert(
                parent.index(element),
                etree.fromstring(etree.tostring(element, with_tail=False, encoding="unicode")),
            )


def _move(dice: random.Random, element: etree._Element, elements: list[etree._Element]) -> None:
    """To a place where it does not belong."""
    twin = etree.fromstring(etree.tostring(element, with_tail=False, encoding="unicode"))
    dice.choice(elements).append(twin)
    if dice.random() < 0.5:
        _remove(dice, element, elements)


def _exchange(dice: random.Random, element: etree._Element, elements: list[etree._Element]) -> None:
    """With another of its kind: attributes, or children."""
    other = dice.choice([one for one in elements if one.tag == element.tag])
    if dice.random() < 0.5:
        mine, yours = dict(element.attrib), dict(other.attrib)
        element.attrib.clear()
        other.attrib.clear()
        element.attrib.update(yours)
        other.attrib.update(mine)
    elif (
        other is not element
        and element not in other.iterancestors()
        and other not in element.iterancestors()
    ):
        mine_inside, yours_inside = list(element), list(other)
        element.extend(yours_inside)
        other.extend(mine_inside)


def _change_text(
    dice: random.Random, element: etree._Element, elements: list[etree._Element]
) -> None:
    lengths = [one for one in elements if one.tag == "dim"]
    (dice.choice(lengths) if lengths and dice.random() < 0.7 else element).text = dice.choice(
        NUMBERS
    )


def _another_operation(
    dice: random.Random, element: etree._Element, elements: list[etree._Element]
) -> None:
    """A layer becomes one of the type of another, or of a type that asks for much memory."""
    layers = [one for one in elements if one.tag == "layer"]
    if not layers:
        return
    greedy = (
        ("Broadcast", "opset3"),
        ("Tile", "opset1"),
        ("Range", "opset4"),
        ("OneHot", "opset1"),
        ("Pad", "opset12"),
        ("Reshape", "opset1"),
    )
    layer, other = dice.choice(layers), dice.choice(layers)
    kind, opset = (
        dice.choice(greedy)
        if dice.random() < 0.5
        else (other.get("type", ""), other.get("version", ""))
    )
    layer.set("type", kind)
    layer.set("version", opset)


def _knot(dice: random.Random, element: etree._Element, elements: list[etree._Element]) -> None:
    edges = [one for one in elements if one.tag == "edge"]
    if edges:
        dice.choice((knots.tie_edges, knots.double_edges))(dice, dice.choice(edges))


_XML: tuple[Callable[[random.Random, etree._Element, list[etree._Element]], None], ...] = (
    *(_change_attribute,) * 5,
    *(
        _remove_attribute,
        _take_attribute,
        _remove,
        _double,
        _move,
        _exchange,
        _change_text,
        _change_text,
        _another_operation,
        _knot,
    ),
)


# -- zip archives
# -------------------------------------------------------------------------------------------------

ENTRIES = (
    "../x",
    "/x",
    "a/../../x",
    "..\\x",
    "C:\\x",
    "\0",
    "a" * 2000,
    "/".join("a" * 300),
    "saved_model.pb",
    "model",
    "model/",
    "é\u202e",
)
_LINK = 0o120777 << 16
_BOMB = 2**26 + 1


def _archive(dice: random.Random, document: bytes) -> bytes:
    """An entry more or less, under another name, with other contents, as a link; or a lie about
    its size.
    """
    made = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(document)) as files:
            entries = [
                (info.filename, files.read(info), info.external_attr) for info in files.infolist()
            ]
    except Exception:  # zipfile's own, of any kind, for what was damaged before
        return bytes_changed(dice, document)
    number = dice.randrange(len(entries)) if entries else 0
    match dice.randrange(6) if entries else 0:
        case 0:
            entries.insert(
                number,
                (
                    dice.choice(ENTRIES),
                    dice.choice((b"", b"x", bytes(_BOMB))),
                    dice.choice((0, _LINK)),
                ),
            )
        case 1:
            entries[number] = (dice.choice(ENTRIES), *entries[number][1:])
        case 2:
            entries[number] = (
                entries[number][0],
                bytes_changed(dice, entries[number][1]),
                entries[number][2],
            )
        case 3:
            del entries[number]
        case 4:
            entries[number] = (*entries[number][:2], _LINK)
        case _:
            return _lie(dice, document)
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as files:
        for name, data, attributes in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = attributes
            info.compress_type = files.compression
            files.writestr(info, data)
    return made.getvalue()


def _lie(dice: random.Random, document: bytes) -> bytes:
    """Another number in the header of an entry: its size, its offset, its method, a zip64 mark."""
    header = document.find(
        dice.choice((b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06")), dice.randrange(len(document))
    )
    at = header + dice.randrange(4, 46)
    return (
        document[:at]
        + dice.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff", dice.randbytes(4)))
        + document[at + 4 :]
    )


# -- ONNX
# ---------------------------------------------------------------------------------------------------------


def _onnx(dice: random.Random, document: bytes) -> bytes:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(document)
    except DecodeError:
        return bytes_changed(dice, document)
    if dice.random() < 0.75:
        try:
            changed(dice, proto)
            return bytes(proto.SerializeToString())
        except (IndexError, ValueError, TypeError):  # there is nothing of the kind in it
            return bytes_changed(dice, document)
    messages = [message for message in _messages(proto) if message.ListFields()]
    if not messages:
        return bytes_changed(dice, document)
    kind = dice.choice(sorted({message.DESCRIPTOR.name for message in messages}))
    alike = [message for message in messages if message.DESCRIPTOR.name == kind]
    message = dice.choice(alike)
    field, value = dice.choice(message.ListFields())
    try:
        _change_field(dice, message, field, value, alike)
    except (TypeError, ValueError, OverflowError):
        return bytes_changed(dice, document)
    return bytes(proto.SerializeToString())


def _messages(proto: Message) -> list[Message]:
    found: list[Message] = []
    waiting: list[Message] = [proto]
    while waiting:
        message = waiting.pop()
        found.append(message)
        for field, value in message.ListFields():
            if field.message_type is not None:
                waiting.extend(value if field.is_repeated else [value])
    return found


def _change_field(
    dice: random.Random, message: Message, field: Any, value: Any, alike: Sequence[Message]
) -> None:
    name = field.name
    match dice.randrange(4):
        case 0:
            message.ClearField(name)
        case 1:
            # Of a copy: one may lie inside the other.
            other = copy.deepcopy(dice.choice(alike))
            message.CopyFrom(other)
        case _ if field.message_type is not None:
            if field.is_repeated:
                chosen = copy.deepcopy(dice.choice(value))
                value.add().CopyFrom(chosen) if dice.random() < 0.5 else value.remove(chosen)
        case _:
            new = _scalar(dice, field, alike)
            if field.is_repeated:
                value[dice.randrange(len(value))] = new
            else:
                setattr(message, name, new)


def _scalar(dice: random.Random, field: Any, alike: Sequence[Message]) -> object:
    others: list[object] = []
    for message in alike:
        value = getattr(message, field.name)
        others.extend(value if field.is_repeated else [value])
    if others and dice.random() < 0.5:
        return dice.choice(others)
    match field.cpp_type:
        case field.CPPTYPE_STRING:
            text = dice.choice(WORDS)
            return text.encode() if field.type == field.TYPE_BYTES else text
        case field.CPPTYPE_FLOAT | field.CPPTYPE_DOUBLE:
            return dice.choice((0.0, -1.0, float("nan"), float("inf"), 1e30))
        case field.CPPTYPE_INT32 | field.CPPTYPE_ENUM:
            return dice.choice((0, 1, -1, 7, 16, 2**31 - 1))
        case _:
            return dice.choice((0, 1, 2, -1, -2, 7, 100_000, 10**12, 2**63 - 1, -(2**63)))
