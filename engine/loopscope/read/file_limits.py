"""How much of an untrusted file is read before it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loopscope.errors import shorten


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Bounds that no honest model reaches; raise one with ``read_model(...,
    limits=ReadLimits(text=...))``.
    """

    file_bytes: int = 256 * 2**20
    """Bytes of the model description (the XML; weights are mapped, not read, and have no limit)."""
    layer_bytes: int = 4 * 2**20
    """Bytes of bare ``<layer>`` elements that are opened without a model around them."""
    onnx_bytes: int = 2**31
    """Bytes of an ONNX file, which holds its weights itself (those in other files are mapped,
    and have no limit).
    """
    graph_text_bytes: int = 32 * 2**20
    """Bytes of a TensorFlow graph as text of which more is told than what OpenVINO makes of it."""
    nodes: int = 300_000
    """Nodes of an ONNX model in all its graphs, functions written out where they are called."""
    unpacked_bytes: int = 4 * 2**30
    """Bytes of everything in a zip archive."""
    conversion_seconds: float = 120.0
    """How long OpenVINO may take to convert the model of another framework."""
    depth: int = 1000
    """Bodies inside bodies."""
    name: int = 10_000
    """Characters of a layer's name, type or opset."""
    addresses: int = 50_000_000
    """Characters of the addresses of all layers together: the names of the bodies around each,
    without its own.
    """
    text: int = 1_000_000
    """Characters of any other attribute."""
    information_depth: int = 64
    """Elements inside elements of ``rt_info`` and ``meta_data``."""

    def bounded_name(self, text: str, what: str) -> str:
        """The text itself; ``ValueError`` when it is longer than a name may be."""
        if len(text) > self.name:
            raise ValueError(
                f"the {what} has {len(text)} characters ({shorten(text, 40)!r}), more than the limit 'name' of {self.name}"
            )
        return text

    def short_texts(self, attributes: Mapping[str, str]) -> None:
        """``ValueError`` when an attribute is longer than a text may be."""
        # Nearly always short even when joined, which is much faster to see.
        if len("".join(attributes.values())) <= self.text:
            return
        for name, text in attributes.items():
            if len(text) > self.text:
                raise ValueError(
                    f"attribute {shorten(name, 40)!r} has {len(text)} characters, more than the limit 'text' of {self.text}"
                )
