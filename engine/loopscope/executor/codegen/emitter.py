"""The text of a generated function while it is written: its lines, what each of them does, its
local variables and its constants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.executor.codegen import generated_names
from loopscope.executor.codegen.source_map import CodePlace, Loop, compiled
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT


@dataclass(eq=False)
class CodeLines:
    """Lines so far. A function has a head that reads what comes from outside, its lines, and a
    tail that hands out results.
    """

    lines: list[str] = field(default_factory=list[str])
    places: list[CodePlace | None] = field(default_factory=list["CodePlace | None"])
    place: CodePlace | None = None
    """What the lines that are being written do."""
    indent: int = 1
    names: dict[Slot, str] = field(default_factory=dict[Slot, str])
    """The local variable of each slot, or its expression; two slots share one where both hold
    one value.
    """
    head: list[str] = field(default_factory=list[str])
    tail: list[str] = field(default_factory=list[str])
    constants: dict[str, Any] = field(default_factory=lambda: {"np": np})
    moving: set[str] = field(default_factory=set[str])
    """Local variables that back edges overwrite."""
    inlined: set[Slot] = field(default_factory=set[Slot])
    """Slots that only one condition reads: they have no local variable."""
    _read: dict[Slot, None] = field(default_factory=dict[Slot, None])
    """Slots whose values come from outside, in order of first use."""

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)
        self.places.append(self.place)

    def imported(self, slot: Slot) -> str:
        """The local variable of a slot whose value comes from outside."""
        self._read[slot] = None
        return self.names.setdefault(slot, generated_names.of_slot(slot))

    def value(self, slot: Slot) -> str:
        """The local variable that holds a slot."""
        if slot == ABSENT:
            return "None"
        return self.names[slot] if slot in self.names else self.imported(slot)

    def assigned(self, slot: Slot) -> str:
        """The local variable that a slot is put into."""
        return self.names.setdefault(slot, generated_names.of_slot(slot))

    def put(self, slot: Slot, computed: str) -> None:
        """Assigns an expression to a slot; an expression that only a condition reads is written
        into the condition.
        """
        if slot in self.inlined:
            self.names[slot] = f"({computed})"
        else:
            self.emit(f"{self.assigned(slot)} = {computed}")

    def constant(self, name: str, value: Any) -> str:
        """The name of a value that the function finds in its globals."""
        self.constants[name] = value
        return name

    def function(self, start: list[str], end: str) -> Loop:
        """The whole: ``start`` is what is before the head, ``end`` the last line."""
        imports = [
            f"{generated_names.of_slot(slot)} = {generated_names.VALUES}[{slot}]"
            for slot in self._read
        ]
        first = [
            start[0],
            *("    " + line for line in (*start[1:], *imports, *dict.fromkeys(self.head))),
        ]
        last = ["    " + line for line in (*dict.fromkeys(self.tail), end)]
        text = "\n".join([*first, *self.lines, *last])
        places: list[CodePlace | None] = (
            [None] * (len(first) + 1) + self.places + [None] * (len(last) + 1)
        )
        return compiled(text, self.constants, places, self.names, self.inlined)
