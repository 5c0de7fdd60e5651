"""Text of a generated function under construction: its lines, their places in the plan, variables
and constants.
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
    """Lines of a function under construction. The head reads values from outside; the tail writes
    results.
    """

    lines: list[str] = field(default_factory=list[str])
    places: list[CodePlace | None] = field(default_factory=list["CodePlace | None"])
    place: CodePlace | None = None
    """Place in the plan of the lines that are emitted next."""
    indent: int = 1
    names: dict[Slot, str] = field(default_factory=dict[Slot, str])
    """Local variable or expression of each slot. Two slots share a variable if they hold the same
    value.
    """
    head: list[str] = field(default_factory=list[str])
    tail: list[str] = field(default_factory=list[str])
    constants: dict[str, Any] = field(default_factory=lambda: {"np": np})
    moving: set[str] = field(default_factory=set[str])
    """Local variables that back edges overwrite."""
    inlined: set[Slot] = field(default_factory=set[Slot])
    """Slots without a local variable, because only one condition reads them."""
    read_slots: dict[Slot, None] = field(default_factory=dict[Slot, None])
    """Slots whose values come from outside, in order of first use."""

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)
        self.places.append(self.place)

    def imported(self, slot: Slot) -> str:
        """Return the local variable of a slot whose value comes from outside."""
        self.read_slots[slot] = None
        return self.names.setdefault(slot, generated_names.of_slot(slot))

    def value(self, slot: Slot) -> str:
        """Return the local variable or expression of a slot."""
        if slot == ABSENT:
            return "None"
        return self.names[slot] if slot in self.names else self.imported(slot)

    def assigned(self, slot: Slot) -> str:
        """Return the local variable that receives the value of a slot."""
        return self.names.setdefault(slot, generated_names.of_slot(slot))

    def put(self, slot: Slot, computed: str) -> None:
        """Assign an expression to a slot. An expression that only one condition reads is inlined
        into the condition.
        """
        if slot in self.inlined:
            self.names[slot] = f"({computed})"
        else:
            self.emit(f"{self.assigned(slot)} = {computed}")

    def constant(self, name: str, value: Any) -> str:
        """Store a value in the globals of the function, and return its name."""
        self.constants[name] = value
        return name

    def function(self, start: list[str], end: str) -> Loop:
        """Return the compiled function. ``start`` are the lines before the head, ``end`` is the
        last line.
        """
        imports = [
            f"{generated_names.of_slot(slot)} = {generated_names.VALUES}[{slot}]"
            for slot in self.read_slots
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
