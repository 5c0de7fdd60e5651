"""Limits for reading untrusted files: sizes, lengths of addresses, and kinds of paths.

Names nest, so deep bodies with long names would need far more memory than their file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Literal

from loopscope.errors import shorten
from loopscope.ir.model import ModelGraph


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits that no ordinary model reaches; raise one with ``read_model(...,
    limits=ReadLimits(text=...))``.
    """

    file_bytes: int = 256 * 2**20
    """Bytes of the model description (XML). Weights are mapped and not limited."""
    layer_bytes: int = 4 * 2**20
    """Bytes of a document of bare ``<layer>`` elements without a ``<net>`` around them."""
    onnx_bytes: int = 2**31
    """Bytes of an ONNX file with the weights inside it. Weights in other files are not limited."""
    graph_text_bytes: int = 32 * 2**20
    """Bytes of a TensorFlow graph as text, above which only OpenVINO parses it."""
    nodes: int = 300_000
    """Nodes of an ONNX model in all its graphs, with functions expanded at each call."""
    unpacked_bytes: int = 4 * 2**30
    """Bytes of all files in a zip archive."""
    conversion_seconds: float = 120.0
    """Seconds that OpenVINO may take to convert a model of another framework."""
    depth: int = 1000
    """Nesting depth of bodies."""
    name: int = 10_000
    """Characters of a layer's name, type or opset."""
    addresses: int = 50_000_000
    """Characters of the addresses of all layers together, without the layers' own names."""
    text: int = 1_000_000
    """Characters of any other attribute."""
    information_depth: int = 64
    """Nesting depth of elements in ``rt_info`` and ``meta_data``."""

    def bounded_name(self, text: str, what: str) -> str:
        """Return ``text``. ``ValueError`` if it is longer than the limit 'name'."""
        if len(text) > self.name:
            raise ValueError(
                f"the {what} has {len(text)} characters ({shorten(text, 40)!r}),"
                f" more than the limit 'name' of {self.name}"
            )
        return text

    def short_texts(self, attributes: Mapping[str, str]) -> None:
        """Raise ``ValueError`` if an attribute is longer than the limit 'text'."""
        # Fast path: the joined text is nearly always short too.
        if len("".join(attributes.values())) <= self.text:
            return
        for name, text in attributes.items():
            if len(text) > self.text:
                raise ValueError(
                    f"attribute {shorten(name, 40)!r} has {len(text)} characters,"
                    f" more than the limit 'text' of {self.text}"
                )


def check_addresses(graph: ModelGraph, limits: ReadLimits) -> None:
    """Raise ``ValueError`` if the addresses of all layers together exceed ``limits.addresses``.

    The layers' own names are not counted.
    """
    total = 0
    waiting = [(graph, 0)]
    while waiting:
        nested, length = waiting.pop()
        total += length * len(nested.nodes)
        if total > limits.addresses:
            raise ValueError(
                "the addresses of layers inside nested bodies have more than"
                f" {limits.addresses} characters, the limit 'addresses':"
                " the names around them are too long"
            )
        waiting.extend(
            (body.graph, length + len(node.name))
            for node in filter(_BODIES, nested.nodes)
            for body in node.bodies
        )


_BODIES = attrgetter("bodies")


def what_is_at(path: str | os.PathLike[str]) -> Literal["file", "folder", "device"] | None:
    """Return the kind of entry at ``path``, or None if nothing exists there.

    Invalid names return None, for which ``Path.exists`` and similar methods may raise.

    >>> what_is_at("a" * 5000), what_is_at("\\0"), what_is_at("/")
    (None, None, 'folder')
    """
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):  # ValueError: a zero byte or a character that cannot be encoded
        return None
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "device"
