"""Why a truth came out as it did: the values behind it, back to the comparisons that decided, through branches, loops and back edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.debug.door import outward
from engine.debug.overrides import is_changed
from engine.debug.run import Run
from engine.errors import shorten
from engine.explain.deciding import OTHER, PASSING, REDUCTIONS, Decision, decision
from engine.explain.parts import around, element, moved, moves
from engine.explain.provenance import Place, Role, Walk
from engine.ir.address import decode
from engine.run.plan.numbers import Slot
from engine.run.plan.plan import ABSENT, IfRegion, Instruction, LoopRegion, Program

_HOLDS = {"==": "equals", "!=": "does not equal", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FAILS = {"==": "does not equal", "!=": "equals", "<": "is not <", "<=": "is not <=", ">": "is not >", ">=": "is not >="}
"""What it means that a comparison is true, and that it is false."""
_MOST_FACTS = 32
_MOST_PLACES = 2_000
_MOST_REASONS = 4
_SHOWN = 80
"""Characters of a text that a model holds."""
_PASSED_ON: dict[Role, str] = {
    "back edge": "{0} of the iteration before",
    "initial value": "the initial value {0}",
    "invariant": "{0}, from outside,",
    "slice": "{0}, from outside,",
    "branch": "{0}, from outside,",
    "call": "{0}, from outside,",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of a proof."""

    address: str
    operation: str
    """Operation type, such as ``Less``."""
    text: str
    """What held there, such as ``10.5 is not < 10``."""
    operands: tuple[str, ...]
    """Addresses of the values that decided it."""
    by_hand: bool = False
    """The value was set by hand: there is nothing behind it."""
    depth: int = 0
    """How far it lies behind the condition; what follows it, and lies deeper, is why it held."""


@dataclass(frozen=True, slots=True)
class _Truth:
    """One element of a value, which is true or false."""

    place: Place
    at: int
    """Its flat index."""
    depth: int


def prove(run: Run, program: Program, row: int, slot: Slot) -> tuple[Fact, ...]:
    """Back from a condition along what made it true, or false: the facts in the order in which a person follows them."""
    return tuple(_Prover(run).facts(Place(program, row, slot)))


def because(proof: Sequence[Fact]) -> str:
    """The facts behind which nothing else decided, in words; empty when there is nothing but the condition itself."""
    ends = [fact for fact, after in zip(proof, [*proof[1:], None], strict=True) if after is None or after.depth <= fact.depth]
    if len(proof) == 1 and proof[0].operation in ("Parameter", "Const") and not proof[0].operands:
        return ""
    texts = list(dict.fromkeys(fact.text for fact in ends))
    more = f", and {len(texts) - _MOST_REASONS} more" if len(texts) > _MOST_REASONS else ""
    return " and ".join(texts[:_MOST_REASONS]) + more


def is_constant(proof: Sequence[Fact]) -> bool:
    """Whether the condition is a Const, so that nothing decided but the model itself."""
    return len(proof) == 1 and proof[0].operation == "Const"


def name_of(fact: Fact) -> str:
    """The name of what a fact is about, as it is quoted in sentences."""
    return _quoted(fact.address)


class _Prover:
    def __init__(self, run: Run) -> None:
        self.run = run
        self.walk = Walk(run)

    def facts(self, place: Place) -> list[Fact]:
        facts: list[Fact] = []
        waiting = [_Truth(place, 0, 0)]
        seen: set[tuple[int, int, str]] = set()
        for _ in range(_MOST_PLACES):
            if not waiting or len(facts) >= _MOST_FACTS:
                break
            truth = waiting.pop()
            fact, behind = self._step(truth)
            key = truth.place.program.index, truth.place.slot, fact.text if fact else ""
            told = fact is not None and not (behind and key in seen)  # a flag that is handed on for many iterations is told once
            if fact is not None and told:
                facts.append(fact)
            seen.add(key)
            waiting += [_Truth(one, at, truth.depth + told) for one, at in reversed(behind)]
        return facts

    def _step(self, truth: _Truth) -> tuple[Fact | None, list[tuple[Place, int]]]:
        """The fact of a truth, and the truths that it follows from; no fact where there is nothing to say but the value."""
        place = truth.place
        if is_changed(self.run, place.program, place.row, place.slot):
            text = f"{self._named(place)} was set to {_text(self._value(place), truth.at)} by hand"
            return Fact(self.walk.address(place), self._kind(place), text, (), by_hand=True, depth=truth.depth), []
        number = place.program.producer.get(place.slot)
        if number is None:
            return self._of_parameter(truth)
        instruction = place.program.instructions[number]
        if instruction.region is not None:
            return self._of_region(truth, instruction)
        return self._of_operation(truth, instruction)

    # -- what is handed on ----------------------------------------------------------------------------------------

    def _of_parameter(self, truth: _Truth) -> tuple[Fact | None, list[tuple[Place, int]]]:
        place = truth.place
        source, role, at = self._source(truth)
        if source is None or role is None:
            return (None if truth.depth else self._fact(truth, self._end(truth), ())), []
        if isinstance(self._value(source), tuple):  # an ONNX sequence, whose elements are tensors
            return self._fact(truth, f"{self._shown(place, truth.at)}, a part of {self._named(source)}", (source,)), []
        if role == "back edge" and self._is_handed_on(place, source):
            _, iteration = self.run.timeline.executions.parent_row(place.program, place.row)
            source = Place(place.program, place.row - (iteration or 0), place.slot)
        words = _PASSED_ON.get(role, "{0}").format(self._element(source, at))
        return self._fact(truth, f"{words} is {self._truth(place, truth.at)}", (source,)), [(source, at)]

    def _end(self, truth: _Truth) -> str:
        """A condition behind which there is nothing."""
        if self._is_fixed(truth.place):
            return f"{self._named(truth.place)} is the constant {_text(self._value(truth.place), truth.at)}"
        return self._shown(truth.place, truth.at)

    def _source(self, truth: _Truth) -> tuple[Place | None, Role | None, int]:
        """What an element was handed on from, and its flat index there; None where it was not."""
        place = truth.place
        part = element(np.shape(self._value(place)), truth.at)
        source, role = next(iter(self.walk.made_of(replace(place, part=part))), (None, None))
        if source is None:
            return None, None, 0
        at = source.part.first if source.part is not None else 0
        return replace(source, part=None), role, at

    def _is_handed_on(self, place: Place, source: Place) -> bool:
        """Whether a Parameter is in every iteration what it was in the one before."""
        slot = source.slot
        while (number := place.program.producer.get(slot)) is not None and place.program.instructions[number].is_identity:
            slot = place.program.instructions[number].inputs[0]
        return slot == place.slot and not self.run.overrides.slots

    def _of_region(self, truth: _Truth, instruction: Instruction) -> tuple[Fact, list[tuple[Place, int]]]:
        place, region = truth.place, instruction.region
        value = self._truth(place, truth.at)
        links = list(self.walk.made_of(place))
        result, role, at = self._source(truth)
        if result is not None and role == "concatenated":
            _, iteration = self.run.timeline.executions.parent_row(result.program, result.row)
            text = f"{self._element(place, truth.at)}, which iteration {(iteration or 0) + 1:,} gave, is {value}"
            return self._fact(truth, text, (result,)), [(result, at)]
        if not links:
            return self._fact(truth, f"{self._named(place)} is {value}, as the loop ran no iteration", ()), []
        if isinstance(region, IfRegion):
            text = f"the {links[0][0].program.branch_name} branch of {self._named(place)} gave {value}"
        elif links[0][1] == "initial value":
            text = f"{self._named(place)} ran no iteration, and its initial value is {value}"
        else:
            text = f"{'the last iteration of ' if isinstance(region, LoopRegion) else ''}{self._named(place)} gave {value}"
        assert result is not None
        behind = [(result, truth.at)]
        if self._is_fixed(result):
            behind += [(one, 0) for one, role in links if role == "condition"]
        return self._fact(truth, text, tuple(one for one, _ in behind)), behind

    def _is_fixed(self, place: Place) -> bool:
        """Whether a value is a Const, so that only what chose it decided."""
        return place.slot not in place.program.producer and place.slot not in place.program.parameter_slots

    # -- what is computed -----------------------------------------------------------------------------------------

    def _of_operation(self, truth: _Truth, instruction: Instruction) -> tuple[Fact, list[tuple[Place, int]]]:
        if instruction.variable is not None:
            return self._of_variable(truth)
        program, row = truth.place.program, truth.place.row
        places = [Place(program, row, slot) for slot in instruction.inputs]
        values = [self._value(place) for place in places]
        if instruction.node.type in REDUCTIONS and self._made_of_truths(places[0]):
            values[0] = values[0].astype(bool)
        output = self._value(truth.place)
        first = truth.place.slot == instruction.outputs[0]
        found = decision(instruction, values, output, truth.at) if first else OTHER
        if found is OTHER and moves(instruction) and isinstance(output, np.ndarray):
            came = moved(instruction, values, output, instruction.outputs.index(truth.place.slot), element(output.shape, truth.at))
            found = Decision("moved", tuple((one, part.first) for one, part in (came or {}).items() if part is not None))
        decided = [(places[number], at) for number, at in found.elements]
        text = self._words(found, decided, truth) if decided else ""
        if not text:
            shown = [self._whole(place) for place in places if place.slot != ABSENT]
            text = f"{instruction.node.type}({', '.join(shown)}) is {_text(output, truth.at)}"
            return self._fact(truth, text, tuple(place for place in places if place.slot != ABSENT)), []
        operands = tuple(dict.fromkeys(place for place, _ in decided))
        follows = found.rule not in ("comparison", "every", "empty") and self._are_truths(decided)
        behind = [(place, at) for place, at in decided if not self._is_fixed(place)] if follows else []
        return self._fact(truth, text, operands), behind

    def _of_variable(self, truth: _Truth) -> tuple[Fact, list[tuple[Place, int]]]:
        """What a variable held, or was assigned."""
        source, role, at = self._source(truth)
        if source is None:
            return self._fact(truth, self._shown(truth.place, truth.at), ()), []
        words = {"assigned": "{0}, assigned before, is {1}", "operand": "{0} is {1}"}[role or "operand"]
        text = words.format(self._element(source, at), self._truth(truth.place, truth.at))
        return self._fact(truth, text, (source,)), [(source, at)]

    def _words(self, found: Decision, decided: list[tuple[Place, int]], truth: _Truth) -> str:
        """What a decision says of the elements that decided."""
        if found.rule == "empty":
            return f"{self._named(decided[0][0])} has no elements"
        named = [self._element(*one) for one in decided[:3]]
        truths = [self._truth(*one) for one in decided[:3]]
        match found.rule:
            case "comparison":
                return self._comparison(found.sign, decided, holds=self._truth(truth.place, truth.at) == "true")
            case "both" if truths[0] == truths[1]:
                return f"{named[0]} and {named[1]} are both {truths[0]}"
            case "both":
                return f"{named[0]} is {truths[0]} and {named[1]} is {truths[1]}"
            case "every":
                group = around(np.array([at for _, at in decided]), np.shape(self._value(decided[0][0])))
                part = "" if group is None or group.is_whole else str(group)
                return f"every element of {self._named(decided[0][0])}{part} is {truths[0]}"
            case "choice":
                return f"{named[0]} is {truths[0]} and so {named[1]} was chosen, which is {truths[1]}"
            case "passed" | "moved" if self._value(decided[0][0]).dtype != bool:
                return f"{self._shown(*decided[0])}{' is not 0' if truths[0] == 'true' else ''}"
            case _:
                return f"{named[0]} is {truths[0]}"

    def _comparison(self, sign: str, decided: list[tuple[Place, int]], *, holds: bool) -> str:
        exact = _needs_all_digits([self._value(place).reshape(-1)[at] for place, at in decided])
        one, other = (self._shown(place, at, exact=exact) for place, at in decided)
        return f"{one} {(_HOLDS if holds else _FAILS)[sign]} {other}"

    def _are_truths(self, decided: list[tuple[Place, int]]) -> bool:
        """Whether asking why they are true or false makes sense: truths, and numbers that were made of truths."""
        return all(self._value(place).dtype == bool or self._made_of_truths(place) for place, _ in decided)

    def _made_of_truths(self, place: Place) -> bool:
        """Whether what an operation gave are truths as numbers."""
        while (number := place.program.producer.get(place.slot)) is not None:
            instruction = place.program.instructions[number]
            if not instruction.inputs or instruction.node.type not in PASSING | REDUCTIONS.keys():
                return False
            place = Place(place.program, place.row, instruction.inputs[0])
            if np.asarray(self._value(place)).dtype == bool:
                return True
        return False

    # -- words ----------------------------------------------------------------------------------------------------

    def _fact(self, truth: _Truth, text: str, operands: Sequence[Place]) -> Fact:
        place = truth.place
        addresses = tuple(self.walk.address(one) for one in operands)
        return Fact(self.walk.address(place), self._kind(place), text, addresses, depth=truth.depth)

    def _kind(self, place: Place) -> str:
        number = place.program.producer.get(place.slot)
        if number is not None:
            return place.program.instructions[number].node.type
        return "Const" if self._is_fixed(place) else "Parameter"

    def _value(self, place: Place) -> Any:
        """As an array; as it is where it is no tensor; None where nothing is fed."""
        if place.slot == ABSENT:
            return None
        return outward(self.run.values.get(self.run.timeline, place.program, place.row, place.slot))

    def _truth(self, place: Place, at: int) -> str:
        return str(bool(np.asarray(self._value(place)).reshape(-1)[at])).lower()

    def _named(self, place: Place) -> str:
        return _quoted(self.walk.address(place))

    def _element(self, place: Place, at: int) -> str:
        """The name of an element, with its index where the tensor has others."""
        value = self._value(place)
        if np.size(value) == 1:
            return self._named(place)
        return f"{self._named(place)}[{', '.join(str(index) for index in np.unravel_index(at, value.shape))}]"

    def _shown(self, place: Place, at: int, *, exact: bool = False) -> str:
        """``name = value`` of an element; of a Const with one element the value alone. What was set by hand says so."""
        value = self._value(place)
        text = _text(value, at, exact=exact)
        if is_changed(self.run, place.program, place.row, place.slot):
            return f"{self._element(place, at)}, which was set to {text} by hand,"
        return text if self._is_fixed(place) and value.size == 1 else f"{self._element(place, at)} = {text}"

    def _whole(self, place: Place) -> str:
        """The same of values with one element, the name alone of others."""
        value = self._value(place)
        return self._shown(place, 0) if isinstance(value, np.ndarray) and value.size == 1 else self._named(place)


def _needs_all_digits(values: Sequence[Any]) -> bool:
    """Whether two numbers compare otherwise once they are rounded as texts are."""
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
