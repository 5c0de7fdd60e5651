"""Cache of parsed blocks of a document that repeat byte for byte."""

from __future__ import annotations

from typing import Generic, TypeVar

from loopscope.read.openvino.expat_walk import ExpatWalk

# Longest block in bytes that is cached, so that the search for its end stays short.
_MAX_BLOCK_BYTES = 4096
Meaning = TypeVar("Meaning")


class Blocks(Generic[Meaning]):
    """Cache of parsed element contents by their bytes.

    A block is stored after expat parsed it and reached its closing tag exactly at the expected end.
    The same bytes after the same opening tag are skipped later. The parsed value of a block must
    depend on its bytes only.
    """

    def __init__(self, walk: ExpatWalk, tag: str) -> None:
        self._walk = walk
        self._closing = f"</{tag}>".encode()
        self._known: dict[bytes, tuple[Meaning, int, int]] = {}
        self._block: bytes | None = None
        self._end = -1

    def enter(self) -> Meaning | None:
        """Return the parsed block after the current tag and skip it, or None if the block is
        new.
        """
        walk = self._walk
        document, begin = walk.document, walk.at
        # The first ">" may be inside an attribute. In that case the piece ended inside the tag, and
        # another piece has begun since.
        whole = document.find(b">", walk.index, begin) == begin - 1
        end = document.find(self._closing, begin, begin + _MAX_BLOCK_BYTES) if whole else -1
        if end < 0:
            self.forget()
            return None
        block = document[begin:end]
        known = self._known.get(block)
        if known is None:
            self._block, self._end = block, end
            return None
        meaning, lines, tail = known
        walk.leave_out(end - tail, lines)
        return meaning

    def leave(self, meaning: Meaning) -> None:
        """End the block that was entered last, and store its parsed value.

        It is stored only if this closing tag is the first in the block; an inner element may have
        the same tag.
        """
        block = self._block
        self._block = None
        if block is None or self._walk.index != self._end or b"\r" in block:
            return
        # The last line of a block is always passed to expat, so that expat's columns stay correct.
        tail = len(block) - block.rfind(b"\n")
        if tail <= len(block) and block[-tail:].isspace():
            self._known[block] = meaning, block.count(b"\n") - 1, tail

    def forget(self) -> None:
        """Do not store the block that was entered last."""
        self._block = None
