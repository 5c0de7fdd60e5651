"""Why a boolean is true or false: the values that it follows from, back through branches, loops
and back edges to the comparisons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopscope.debug.export_value import as_public
from loopscope.debug.overrides_by_address import is_changed
from loopscope.debug.run import Run
from loopscope.errors import shorten
from loopscope.executor.plan.numbers import Slot
from loopscope.executor.plan.plan import ABSENT, IfRegion, Instruction, LoopRegion, Program
from loopscope.explain.deciding_values import OTHER, PASSING, REDUCTIONS, Decision, decision
from loopscope.explain.index_provenance import around, element, moved, moves
from loopscope.explain.margin import Margin, margin
from loopscope.explain.provenance import ProvenanceWalk, Role, SlotPart
from loopscope.ir.address import decode
from loopscope.ir.iteration import iteration_words

_MOST_FACTS = 32
_MOST_PLACES = 2_000
_MOST_REASONS = 4
_ASKS = " asks "
_ELEMENT = re.compile(r"\[[0-9, ]+\]")
"""The place of an element in a tensor, after the name of the tensor."""
_SHOWN = 80
"""Characters of a text that a model holds."""
_PASSED_ON: dict[Role, str] = {
    "back edge": "{0} was {1} in the iteration before",
    "initial value": "its initial value {0} was {1}",
    "invariant": "the outer value {0} was {1}",
    "slice": "the outer value {0} was {1}",
    "branch": "the outer value {0} was {1}",
    "call": "the argument {0} was {1}",
}
"""What a Parameter received, and what that was."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of a proof."""

    address: str
    operation: str
    """Operation type, such as ``Less``."""
    text: str
    """A clause that says what held there, such as ```keep_going` asks `x` < 10, and `x` was
    10.5``.
    """
    operands: tuple[str, ...]
    """Addresses of the values that decided it."""
    by_hand: bool = False
    """The value was set by hand, so that nothing else decided it."""
    depth: int = 0
    """Number of steps back from the condition; the deeper facts that follow this one are the
    reasons for it.
    """
    margin: Margin | None = None
    """Of a comparison of floats, how narrowly it was decided."""


@dataclass(frozen=True, slots=True)
class _Boolean:
    """One boolean element of a value."""

    place: SlotPart
    at: int
    """Its flat index."""
    depth: int


def prove(run: Run, program: Program, row: int, slot: Slot) -> tuple[Fact, ...]:
    """The facts that made a condition true or false, from the condition backwards, each before
    the reasons for it.
    """
    return tuple(_Prover(run).facts(SlotPart(program, row, slot)))


def because(proof: Sequence[Fact]) -> str:
    """The facts for which no further reason is known, as a clause about the condition ("it");
    empty when the condition is the only one.
    """
    if len(proof) == 1 and proof[0].operation in ("Parameter", "Const") and not proof[0].operands:
        return ""
    texts = list(_once_each(dict.fromkeys(_clause(fact) for fact in deciding(proof))))
    more = f"; and {len(texts) - _MOST_REASONS} more" if len(texts) > _MOST_REASONS else ""
    return "; ".join(texts[:_MOST_REASONS]) + more


def _once_each(clauses: Iterable[str]) -> Iterator[str]:
    """Yield clauses that ask one question, of several elements or in several iterations, as one."""
    questions: dict[str, list[str]] = {}
    for clause in clauses:
        question, asks, _ = _ELEMENT.sub("", clause).partition(", and ")
        questions.setdefault(question if asks and _ASKS in question else clause, []).append(clause)
    for first, *more in questions.values():
        yield f"{first} (the first of {len(more) + 1} times)" if more else first


def deciding(proof: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts of a proof for which no further reason is known: the comparisons, constants and
    inputs that decided.
    """
    return tuple(
        fact
        for at, fact in enumerate(proof)
        if at + 1 == len(proof) or proof[at + 1].depth <= fact.depth
    )


def _clause(fact: Fact) -> str:
    """The text of a fact in a sentence that has just named the condition."""
    named = name_of(fact) + _ASKS
    return (
        f"it{_ASKS}{fact.text.removeprefix(named)}"
        if fact.depth == 0 and fact.text.startswith(named)
        else fact.text
    )


def is_constant(proof: Sequence[Fact]) -> bool:
    """Whether the condition is a Const, so that the model alone decided."""
    return len(proof) == 1 and proof[0].operation == "Const"


def name_of(fact: Fact) -> str:
    """The name of what a fact is about, as it is quoted in sentences."""
    return _quoted(fact.address)


class _Prover:
    def __init__(self, run: Run) -> None:
        self.run = run
        self.walk = ProvenanceWalk(run)

    def facts(self, place: SlotPart) -> list[Fact]:
        facts: list[Fact] = []
        waiting = [_Boolean(place, 0, 0)]
        seen: set[tuple[int, int, str]] = set()
        for _ in range(_MOST_PLACES):
            if not waiting or len(facts) >= _MOST_FACTS:
                break
            boolean = waiting.pop()
            fact, behind = self._step(boolean)
            key = boolean.place.program.index, boolean.place.slot, fact.text if fact else ""
            told = fact is not None and not (
                behind and key in seen
            )  # a flag that many iterations pass on is one fact
            if fact is not None and told:
                facts.append(fact)
            seen.add(key)
            waiting += [_Boolean(one, at, boolean.depth + told) for one, at in reversed(behind)]
        return facts

    def _step(self, boolean: _Boolean) -> tuple[Fact | None, list[tuple[SlotPart, int]]]:
        """The fact about an element, and the elements that it follows from; no fact where only
        the value is known.
        """
        place = boolean.place
        if is_changed(self.run, place.program, place.row, place.slot):
            text = (
                f"{self._named(place)} was set to {_text(self._value(place), boolean.at)} by hand"
            )
            return Fact(
                self.walk.address(place),
                self._kind(place),
                text,
                (),
                by_hand=True,
                depth=boolean.depth,
            ), []
        number = place.program.producer.get(place.slot)
        if number is None:
            return self._of_parameter(boolean)
        instruction = place.program.instructions[number]
        if instruction.region is not None:
            return self._of_region(boolean, instruction)
        return self._of_operation(boolean, instruction)

    # -- what is handed on
    # ----------------------------------------------------------------------------------------

    def _of_parameter(self, boolean: _Boolean) -> tuple[Fact | None, list[tuple[SlotPart, int]]]:
        place = boolean.place
        source, role, at = self._source(boolean)
        if source is None or role is None:
            return (None if boolean.depth else self._fact(boolean, self._end(boolean), ())), []
        if isinstance(self._value(source), tuple):  # an ONNX sequence, whose elements are tensors
            return self._fact(
                boolean,
                f"{self._was(place, boolean.at)}, as an element of {self._named(source)}",
                (source,),
            ), []
        if role == "back edge" and self._is_handed_on(place, source):
            _, iteration = self.run.timeline.executions.parent_row(place.program, place.row)
            source = SlotPart(place.program, place.row - (iteration or 0), place.slot)
        text = _PASSED_ON.get(role, "{0} was {1}").format(
            self._element(source, at), self._true_or_false(place, boolean.at)
        )
        return self._fact(boolean, text, (source,)), [(source, at)]

    def _end(self, boolean: _Boolean) -> str:
        """The sentence on a condition that no other value decided."""
        if self._is_fixed(boolean.place):
            return f"{self._named(boolean.place)} is the constant {_text(self._value(boolean.place), boolean.at)}"
        return self._was(boolean.place, boolean.at)

    def _source(self, boolean: _Boolean) -> tuple[SlotPart | None, Role | None, int]:
        """The place that an element was passed on from, its role, and its flat index there; None
        where it was not passed on.
        """
        place = boolean.place
        part = element(np.shape(self._value(place)), boolean.at)
        source, role = next(iter(self.walk.made_of(replace(place, part=part))), (None, None))
        if source is None:
            return None, None, 0
        at = source.part.first if source.part is not None else 0
        return replace(source, part=None), role, at

    def _is_handed_on(self, place: SlotPart, source: SlotPart) -> bool:
        """Whether a Parameter keeps its value from iteration to iteration."""
        slot = source.slot
        while (
            number := place.program.producer.get(slot)
        ) is not None and place.program.instructions[number].is_identity:
            slot = place.program.instructions[number].inputs[0]
        return slot == place.slot and not self.run.overrides.slots

    def _of_region(
        self, boolean: _Boolean, instruction: Instruction
    ) -> tuple[Fact, list[tuple[SlotPart, int]]]:
        place, region = boolean.place, instruction.region
        value = self._true_or_false(place, boolean.at)
        links = list(self.walk.made_of(place))
        result, role, at = self._source(boolean)
        if result is not None and role == "concatenated":
            _, iteration = self.run.timeline.executions.parent_row(result.program, result.row)
            text = f"{iteration_words(iteration or 0)} gave {self._element(place, boolean.at)}, which was {value}"
            return self._fact(boolean, text, (result,)), [(result, at)]
        if not links:
            return self._fact(
                boolean, f"{self._named(place)} was {value}, because the loop ran no iteration", ()
            ), []
        if isinstance(region, IfRegion):
            text = (
                f"the {links[0][0].program.branch_name} branch of {self._named(place)} gave {value}"
            )
        elif links[0][1] == "initial value":
            text = f"{self._named(place)} ran no iteration, and its initial value was {value}"
        else:
            text = f"{'the last iteration of ' if isinstance(region, LoopRegion) else ''}{self._named(place)} gave {value}"
        assert result is not None
        behind = [(result, boolean.at)]
        if self._is_fixed(result):
            behind += [(one, 0) for one, role in links if role == "condition"]
        return self._fact(boolean, text, tuple(one for one, _ in behind)), behind

    def _is_fixed(self, place: SlotPart) -> bool:
        """Whether a value is a Const, so that only what chose it decided."""
        return (
            place.slot not in place.program.producer
            and place.slot not in place.program.parameter_slots
        )

    # -- what is computed
    # -----------------------------------------------------------------------------------------

    def _of_operation(
        self, boolean: _Boolean, instruction: Instruction
    ) -> tuple[Fact, list[tuple[SlotPart, int]]]:
        if instruction.variable is not None:
            return self._of_variable(boolean)
        program, row = boolean.place.program, boolean.place.row
        places = [SlotPart(program, row, slot) for slot in instruction.inputs]
        values = [self._value(place) for place in places]
        if instruction.node.type in REDUCTIONS and self._made_of_booleans(places[0]):
            values[0] = values[0].astype(bool)
        output = self._value(boolean.place)
        first = boolean.place.slot == instruction.outputs[0]
        found = decision(instruction, values, output, boolean.at) if first else OTHER
        if found is OTHER and moves(instruction) and isinstance(output, np.ndarray):
            came = moved(
                instruction,
                values,
                output,
                instruction.outputs.index(boolean.place.slot),
                element(output.shape, boolean.at),
            )
            found = Decision(
                "moved",
                tuple((one, part.first) for one, part in (came or {}).items() if part is not None),
            )
        decided = [(places[number], at) for number, at in found.elements]
        text = self._words(found, decided, boolean) if decided else ""
        if not text:
            shown = [self._whole(place) for place in places if place.slot != ABSENT]
            text = f"{instruction.node.type}({', '.join(shown)}) gave {_text(output, boolean.at)}"
            return self._fact(
                boolean, text, tuple(place for place in places if place.slot != ABSENT)
            ), []
        operands = tuple(dict.fromkeys(place for place, _ in decided))
        follows = found.rule not in ("comparison", "every", "empty") and self._are_booleans(decided)
        behind = (
            [(place, at) for place, at in decided if not self._is_fixed(place)] if follows else []
        )
        return replace(
            self._fact(boolean, text, operands), margin=self._margin(found, decided)
        ), behind

    def _margin(self, found: Decision, decided: Sequence[tuple[SlotPart, int]]) -> Margin | None:
        if found.rule != "comparison":
            return None
        one, other = (np.asarray(self._value(place)).reshape(-1)[at] for place, at in decided)
        return margin(one, other, found.sign)

    def _of_variable(self, boolean: _Boolean) -> tuple[Fact, list[tuple[SlotPart, int]]]:
        """The value that a variable held, or was assigned."""
        source, role, at = self._source(boolean)
        if source is None:
            return self._fact(boolean, self._was(boolean.place, boolean.at), ()), []
        words = {"assigned": "{0}, assigned before, was {1}", "operand": "{0} was {1}"}[
            role or "operand"
        ]
        text = words.format(
            self._element(source, at), self._true_or_false(boolean.place, boolean.at)
        )
        return self._fact(boolean, text, (source,)), [(source, at)]

    def _words(
        self, found: Decision, decided: list[tuple[SlotPart, int]], boolean: _Boolean
    ) -> str:
        """A decision in words."""
        if found.rule == "empty":
            return f"{self._named(decided[0][0])} had no elements"
        named = [self._element(*one) for one in decided[:3]]
        said = [self._true_or_false(*one) for one in decided[:3]]
        match found.rule:
            case "comparison":
                came_out = self._true_or_false(boolean.place, boolean.at)
                return f"{self._named(boolean.place)}{_ASKS}{self._comparison(found.sign, decided, came_out)}"
            case "both" if said[0] == said[1]:
                return f"{named[0]} and {named[1]} were both {said[0]}"
            case "both":
                return f"{named[0]} was {said[0]} and {named[1]} was {said[1]}"
            case "every":
                group = around(
                    np.array([at for _, at in decided]), np.shape(self._value(decided[0][0]))
                )
                part = "" if group is None or group.is_whole else str(group)
                return f"every element of {self._named(decided[0][0])}{part} was {said[0]}"
            case "choice":
                return f"{named[0]} was {said[0]} and chose {named[1]}, which was {said[1]}"
            case "passed" | "moved" if self._value(decided[0][0]).dtype != bool:
                return f"{self._was(*decided[0])}{', which is not 0' if said[0] == 'true' else ''}"
            case _:
                return f"{named[0]} was {said[0]}"

    def _comparison(self, sign: str, decided: list[tuple[SlotPart, int]], came_out: str) -> str:
        """The question that a comparison asks, and the values that it compared."""
        exact = _needs_all_digits([self._value(place).reshape(-1)[at] for place, at in decided])
        literal = [self._is_literal(place) for place, _ in decided]
        asked = [
            _text(self._value(place), at, exact=exact) if alone else self._element(place, at)
            for (place, at), alone in zip(decided, literal, strict=True)
        ]
        met = list(
            dict.fromkeys(one for one, alone in zip(decided, literal, strict=True) if not alone)
        )
        return f"{asked[0]} {sign} {asked[1]}, {self._met(met, exact=exact) if met else f'which is {came_out}'}"

    def _met(self, met: list[tuple[SlotPart, int]], *, exact: bool) -> str:
        if len(met) == 1 or any(
            is_changed(self.run, place.program, place.row, place.slot) for place, _ in met
        ):
            return f"and {', '.join(self._was(place, at, exact=exact) for place, at in met)}"
        one, other = (_text(self._value(place), at, exact=exact) for place, at in met)
        return f"and both were {one}" if one == other else f"and they were {one} and {other}"

    def _is_literal(self, place: SlotPart) -> bool:
        """Whether a sentence shows the value itself in place of its name: a Const with one
        element.
        """
        return self._is_fixed(place) and self._value(place).size == 1

    def _are_booleans(self, decided: list[tuple[SlotPart, int]]) -> bool:
        """Whether all of them are booleans, or numbers that were made from booleans."""
        return all(
            self._value(place).dtype == bool or self._made_of_booleans(place)
            for place, _ in decided
        )

    def _made_of_booleans(self, place: SlotPart) -> bool:
        """Whether a value holds booleans as numbers."""
        while (number := place.program.producer.get(place.slot)) is not None:
            instruction = place.program.instructions[number]
            if not instruction.inputs or instruction.node.type not in PASSING | REDUCTIONS.keys():
                return False
            place = SlotPart(place.program, place.row, instruction.inputs[0])
            if np.asarray(self._value(place)).dtype == bool:
                return True
        return False

    # -- words
    # ----------------------------------------------------------------------------------------------------

    def _fact(self, boolean: _Boolean, text: str, operands: Sequence[SlotPart]) -> Fact:
        place = boolean.place
        addresses = tuple(self.walk.address(one) for one in operands)
        return Fact(
            self.walk.address(place), self._kind(place), text, addresses, depth=boolean.depth
        )

    def _kind(self, place: SlotPart) -> str:
        number = place.program.producer.get(place.slot)
        if number is not None:
            return place.program.instructions[number].node.type
        return "Const" if self._is_fixed(place) else "Parameter"

    def _value(self, place: SlotPart) -> Any:
        """The value as an array; as it is when it is not a tensor; None for an input that is
        left out.
        """
        if place.slot == ABSENT:
            return None
        return as_public(
            self.run.values.get(self.run.timeline, place.program, place.row, place.slot)
        )

    def _true_or_false(self, place: SlotPart, at: int) -> str:
        return str(bool(np.asarray(self._value(place)).reshape(-1)[at])).lower()

    def _named(self, place: SlotPart) -> str:
        return _quoted(self.walk.address(place))

    def _element(self, place: SlotPart, at: int) -> str:
        """The name of an element, with its index where the tensor has others."""
        value = self._value(place)
        if np.size(value) == 1:
            return self._named(place)
        return f"{self._named(place)}[{', '.join(str(index) for index in np.unravel_index(at, value.shape))}]"

    def _shown(self, place: SlotPart, at: int) -> str:
        """``name = value`` of an element; the value alone of a Const with one element. A value
        that was set by hand says so.
        """
        value = self._value(place)
        text = _text(value, at)
        if is_changed(self.run, place.program, place.row, place.slot):
            return f"{self._element(place, at)}, which was set to {text} by hand,"
        return text if self._is_literal(place) else f"{self._element(place, at)} = {text}"

    def _was(self, place: SlotPart, at: int, *, exact: bool = False) -> str:
        """``name was value`` of an element, or ``name was set to value by hand``."""
        text = _text(self._value(place), at, exact=exact)
        by_hand = is_changed(self.run, place.program, place.row, place.slot)
        return f"{self._element(place, at)} was {f'set to {text} by hand' if by_hand else text}"

    def _whole(self, place: SlotPart) -> str:
        """``name = value`` of a value with one element, the name alone of others."""
        value = self._value(place)
        return (
            self._shown(place, 0)
            if isinstance(value, np.ndarray) and value.size == 1
            else self._named(place)
        )


def _needs_all_digits(values: Sequence[Any]) -> bool:
    """Whether rounding two numbers for a text would change how they compare."""
    try:
        one, other = (float(value) for value in values)
    except (TypeError, ValueError):
        return False
    short, brief = float(f"{one:.6g}"), float(f"{other:.6g}")
    return (one < other, one > other) != (short < brief, short > brief)


def _text(value: Any, at: int, *, exact: bool = False) -> str:
    """An element in words.

    >>> _text(np.float32([1, 10.500001]), 1), _text(np.float32([1, 10.500001]), 1, exact=True), _text(np.array([True]), 0)
    ('10.5', '10.500001', 'true')
    """
    array = np.asarray(value)
    item = array.reshape(-1)[at]
    if array.dtype.kind in "fV":
        return str(item).removesuffix(".0") if exact else f"{float(item):.6g}"
    if array.dtype.kind == "O":
        return shorten(repr(item), _SHOWN)
    return str(item).lower() if array.dtype == bool else str(item)


def _quoted(address: str) -> str:
    return f"`{decode(address.rpartition('/')[2])}`"
