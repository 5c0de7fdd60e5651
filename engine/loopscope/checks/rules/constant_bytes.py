"""Rules about the bytes of constants. Constants outside the weights file are rejected by the
reader.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import Finding, Rule, Subject
from loopscope.ir.address import PlacedGraph
from loopscope.ir.constant import packed_size
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Node


def undecodable_constant(subject: Subject) -> Iterator[Finding]:
    """The bytes of a constant do not match its type and shape.

    What it does:
        Compares the number of bytes of every constant with its type and shape. The offsets inside
        string data are checked too.
    Why it matters:
        The constant has no value to compute with.
    Example that fails:
        a string constant whose text ends after its bytes
    Example that passes:
        offsets that lie inside the text
    """
    for place, node in subject.nodes():
        constant = node.constant
        if constant is None or not constant.is_kept:
            continue
        problem = ""
        if constant.element_type is ElementType.STRING:
            try:
                constant.array()
            except ValueError as error:
                problem = str(error)
        elif len(constant.data) < packed_size(constant.element_type, constant.elements):
            problem = (
                f"{len(constant.data):,} bytes are too few for {constant.elements:,} "
                f"elements of {constant.element_type}"
            )
        if problem:
            yield Finding(
                subject.where(place, node),
                f"The constant cannot be decoded: {problem}.",
                found=f"{len(constant.data):,} bytes for {constant.element_type} "
                f"{list(constant.shape)[:16]}",
                expected="as many bytes as type and shape require",
                advice="The weights file belongs to another model or is truncated: convert the "
                "original model again.",
            )


def oversized_constant(subject: Subject) -> Iterator[Finding]:
    """A constant has more bytes than its type and shape need.

    What it does:
        Compares the attribute size of every Const with the size that its type and shape require.
    Why it matters:
        Type, shape or size may be wrong. OpenVINO and Loopscope ignore the remaining bytes.
    Example that fails:
        size="9" for one element of i64
    Example that passes:
        size="8"
    """
    for place, node in subject.nodes():
        constant, size = node.constant, node.attributes.get("size")
        if (
            constant is None
            or constant.element_type is ElementType.STRING
            or not isinstance(size, str)
            or not size.isdigit()
        ):
            continue
        needed = packed_size(constant.element_type, constant.elements)
        # OpenVINO writes one byte for a tensor without elements.
        if int(size) > max(needed, 1):
            yield Finding(
                subject.where(place, node),
                f"The constant has {size} bytes, but its type and shape require {needed}.",
                found=f"size {size}",
                expected=f"size {needed}",
                advice="The remaining bytes are ignored, as in OpenVINO.",
            )


def overlapping_constants(subject: Subject) -> Iterator[Finding]:
    """Two constants share a part of their bytes.

    What it does:
        Compares offset and size of all constants. Constants that begin at the same byte may share
        their bytes: writers store equal constants once.
    Why it matters:
        One of the offsets is probably wrong, and then the values are garbage.
    Example that fails:
        offset="0" size="8", and offset="4" size="8"
    Example that passes:
        offset="0" size="8", and offset="8" size="8"
    """
    ranges = sorted(_byte_ranges(subject), key=lambda entry: entry[:2])
    last: tuple[int, int, PlacedGraph, Node] | None = None
    for begin, end, place, node in ranges:
        if last is not None and last[0] < begin < last[1]:
            yield Finding(
                subject.where(place, node),
                f"Bytes {begin} to {end} of the weights overlap those of "
                f"{subject.where(last[2], last[3]).address}.",
                found=f"bytes {begin} to {end}, and {last[0]} to {last[1]}",
                expected="separate bytes, or the same first byte",
                advice="The bytes are read as declared; check the offsets.",
            )
        if last is None or end > last[1]:
            last = (begin, end, place, node)


def _byte_ranges(subject: Subject) -> Iterator[tuple[int, int, PlacedGraph, Node]]:
    for place, node in subject.nodes():
        offset = node.attributes.get("offset")
        if (
            node.constant is not None
            and isinstance(offset, str)
            and offset.isdigit()
            and len(offset) < 19
            and len(node.constant.data)
        ):
            yield int(offset), int(offset) + len(node.constant.data), place, node


RULES = (
    Rule(
        "LS201", "undecodable-constant", Severity.ERROR, undecodable_constant, before_running=True
    ),
    Rule("LS202", "oversized-constant", Severity.WARNING, oversized_constant),
    Rule("LS203", "overlapping-constants", Severity.WARNING, overlapping_constants),
)
