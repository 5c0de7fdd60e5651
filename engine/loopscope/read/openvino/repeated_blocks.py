"""Blocks of a document that repeat byte for byte: what one meant, the next one means too."""

from __future__ import annotations

from typing import Generic, TypeVar

from loopscope.read.openvino.expat_walk import ExpatWalk

# A longer block is not looked for again: the search for its end must stay short.
_LONGEST = 4096
Meaning = TypeVar("Meaning")


class Blocks(Generic[Meaning]):
    """The meanings of blocks, by their bytes, each of which stands between the opening and the
    closing tag of an element.

    A block is learned when expat has walked over it and came to the closing tag at its very end;
    the same bytes after the same opening tag would lead expat there again, so that the walk leaves
    them out. The meaning of a block must depend on nothing but its bytes.
    """

    def __init__(self, walk: ExpatWalk, tag: str) -> None:
        self._walk = walk
        self._closing = f"</{tag}>".encode()
        self._known: dict[bytes, tuple[Meaning, int, int]] = {}
        self._block: bytes | None = None
        self._end = -1

    def enter(self) -> Meaning | None:
        """The meaning of the block after the tag that the walk is at; if it is known, the walk
        goes on at its end.
        """
        walk = self._walk
        document, begin = walk.document, walk.at
        # The first ">" may stand inside an attribute. Then the piece ended before the tag did, and
        # another one has begun since.
        whole = document.find(b">", walk.index, begin) == begin - 1
        end = document.find(self._closing, begin, begin + _LONGEST) if whole else -1
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
        """The block that was entered last ends here.

        It is learned only if this is the closing tag that was seen from its beginning, which may
        have belonged to something inside it.
        """
        block = self._block
        self._block = None
        if block is None or self._walk.index != self._end or b"\r" in block:
            return
        # Its last line is given to expat every time, so that expat's columns stay right.
        tail = len(block) - block.rfind(b"\n")
        if tail <= len(block) and block[-tail:].isspace():
            self._known[block] = meaning, block.count(b"\n") - 1, tail

    def forget(self) -> None:
        """The block that was entered last is not to be learned."""
        self._block = None
