"""The format of a trace file: a header, then blocks that are only ever appended.

``docs/reference/traces.md`` describes it. A file whose last block is cut short, as after a kill,
is read up to that block.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from loopscope.ir.element_type import ElementType

MAGIC: Final = b"\x89loopscope trace\r\n"
VERSION_OF_TRACE: Final = 1
HEADER: Final = MAGIC + struct.pack("<I", VERSION_OF_TRACE)
BLOCK: Final = struct.Struct("<cQ")
"""Kind and length in bytes of the block that follows."""
EVENTS: Final = b"E"
"""Kind of a block that contains a MessagePack array of events."""
DATA: Final = b"D"
"""Kind of a block that contains the bytes of the tensor in the last ``LARGE`` event."""

# Events are MessagePack arrays that begin with one of these numbers.
LOOP: Final = 0
"""A loop begins: name, and number of iterations of its iterable or nil."""
ITERATION: Final = 1
"""An iteration of the innermost open loop begins."""
SCALARS: Final = 2
"""Plain numbers and booleans: a map from name to value."""
TENSOR: Final = 3
"""A tensor: name, element type, shape, bytes."""
LARGE: Final = 4
"""A tensor whose bytes are in the next data block: name, element type, shape."""
FINGERPRINT: Final = 5
"""A tensor beyond the budget: name, element type, shape, facts, bytes of the sampled elements."""
BRANCH: Final = 6
"""A decision: name, and true or false."""
CARRIED: Final = 7
"""Names of the values that the innermost open loop carries."""
END: Final = 8
"""The innermost open loop ends: its ending, and a text."""
FAILURE: Final = 9
"""The program raised an exception: its text."""
CLOSED: Final = 10
"""The recorder was closed."""

EXHAUSTED, LEFT, REASON = "exhausted", "left", "reason"
"""Endings of a loop: its iterable has ended, the program left it, or ``ended`` named the reason."""

MOST_DIMENSIONS: Final = 32
BY_NAME: Mapping[str, ElementType] = {
    str(element_type): element_type
    for element_type in ElementType
    if element_type.dtype.names is None and element_type is not ElementType.STRING
}
"""Element types of the tensors of a trace, by name; each element takes whole bytes."""
