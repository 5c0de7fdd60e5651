"""Facts of a proof: comparisons, counts that end a loop, their margins, and sentences.

The margin of a comparison of floats is the distance of its operands, with the types that would
change its result. The counts are the trip count and the number of parts of sliced inputs. Values
have the names that the model carries.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopscope.debug.overrides_by_address import is_changed
from loopscope.debug.run import Run
from loopscope.errors import shorten
from loopscope.executor.machine.regions import parts
from loopscope.executor.plan.body_ports import CarriedValue
from loopscope.executor.plan.plan import LoopRegion, Program
from loopscope.executor.plan.slots import Slot
from loopscope.explain.provenance import ProvenanceWalk, SlotPart
from loopscope.ir.address import decode
from loopscope.ir.element_type import is_real_float
from loopscope.ir.model import SEQUENCE_MAP
from loopscope.ir.readable import short_exponent, significant
from loopscope.ops.quantization import round_to

_MAX_REASONS = 4
TESTS = " tests "
"""Words between the name of a boolean and its comparison."""
_MAX_TEXT_LENGTH = 80
"""Maximum characters shown of a string element."""
_ELEMENT_INDEX = re.compile(r"\[[0-9, ]+\]")
"""Index of an element, as it follows the name of its tensor in a sentence."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of a proof."""

    address: str
    operation: str
    """Operation type, such as ``Less``."""
    text: str
    """Clause about the value, such as ```keep_going` tests `x` < 10, and `x` was 10.5``."""
    operands: tuple[str, ...]
    """Addresses of the values that decided this one."""
    by_hand: bool = False
    """True if the value was set by hand, so that no other value decided it."""
    depth: int = 0
    """Number of steps back from the condition. The deeper facts that follow this fact are its
    reasons.
    """
    margin: Margin | None = None
    """Margin of the decision; set for comparisons of floats."""


def because(proof: Sequence[Fact]) -> str:
    """Return the facts without a further reason as a clause about the condition ("it").

    Return an empty text if the condition is the only fact.
    """
    if len(proof) == 1 and proof[0].operation in ("Parameter", "Const") and not proof[0].operands:
        return ""
    texts = list(_merge_repeated_tests(dict.fromkeys(_clause(fact) for fact in deciding(proof))))
    more = f"; and {len(texts) - _MAX_REASONS} more" if len(texts) > _MAX_REASONS else ""
    return "; ".join(texts[:_MAX_REASONS]) + more


def _merge_repeated_tests(clauses: Iterable[str]) -> Iterator[str]:
    """Yield each comparison once, where several elements or iterations repeat it."""
    clauses_of: dict[str, list[str]] = {}
    for clause in clauses:
        question, separator, _ = _ELEMENT_INDEX.sub("", clause).partition(", and ")
        clauses_of.setdefault(question if separator and TESTS in question else clause, []).append(
            clause
        )
    for first, *more in clauses_of.values():
        yield f"{first} (the first of {len(more) + 1} times)" if more else first


def deciding(proof: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts of a proof without a further reason: comparisons, constants and inputs."""
    return tuple(
        fact
        for index, fact in enumerate(proof)
        if index + 1 == len(proof) or proof[index + 1].depth <= fact.depth
    )


def _clause(fact: Fact) -> str:
    """Return the text of a fact for a sentence that has just named the condition."""
    prefix = name_of(fact) + TESTS
    return (
        f"it{TESTS}{fact.text.removeprefix(prefix)}"
        if fact.depth == 0 and fact.text.startswith(prefix)
        else fact.text
    )


def is_constant(proof: Sequence[Fact]) -> bool:
    """Return True if the condition is a Const, so that the model alone decided."""
    return len(proof) == 1 and proof[0].operation == "Const"


def name_of(fact: Fact) -> str:
    """Return the quoted name of the node that a fact is about."""
    return quoted(fact.address)


def needs_all_digits(values: Sequence[Any]) -> bool:
    """Return True if rounding two numbers for display would change how they compare."""
    try:
        left, right = (float(value) for value in values)
    except (TypeError, ValueError):
        return False
    rounded_left, rounded_right = float(significant(left, 6)), float(significant(right, 6))
    return (left < right, left > right) != (
        rounded_left < rounded_right,
        rounded_left > rounded_right,
    )


def element_text(value: Any, position: int, *, exact: bool = False) -> str:
    """Return the text of one element.

    >>> tens = np.float32([1, 10.500001])
    >>> element_text(tens, 1), element_text(tens, 1, exact=True)
    ('10.5', '10.500001')
    """
    array = np.asarray(value)
    item = array.reshape(-1)[position]
    if array.dtype.kind in "fV":
        return (
            short_exponent(str(item).removesuffix(".0")) if exact else significant(float(item), 6)
        )
    if array.dtype.kind == "O":
        return shorten(repr(item), _MAX_TEXT_LENGTH)
    return str(item).lower() if array.dtype == bool else str(item)


_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_NARROWER = ("f16", "bf16")
"""Types that devices use instead of f32."""


@dataclass(frozen=True, slots=True)
class Margin:
    """Distance of two compared floats from the opposite result."""

    distance: float
    """Absolute difference of the operands."""
    otherwise: tuple[str, ...]
    """Types in which the rounded operands compare differently."""

    @property
    def sentence(self) -> str:
        """Sentence about a narrow decision; empty if no narrower type changes the result."""
        if not self.otherwise:
            return ""
        types = " and ".join(self.otherwise)
        return (
            f"That was decided by {significant(self.distance, 1)}: {types} would decide otherwise."
        )


def margin(left: np.generic, right: np.generic, sign: str) -> Margin | None:
    """Return the margin of two elements compared with ``sign``; None unless both are finite floats.

    >>> margin(np.float32(0.5004), np.float32(0.5), ">").sentence
    'That was decided by 0.0004: bf16 would decide otherwise.'
    """
    operands = [np.asarray(left), np.asarray(right)]
    if not all(is_real_float(operand.dtype) for operand in operands):
        return None
    values = [float(operand) for operand in operands]
    if not all(map(np.isfinite, values)):
        return None
    compares = _SIGNS[sign]
    result = compares(*values)
    narrower = {to: [float(round_to(operand, to=to)) for operand in operands] for to in _NARROWER}
    return Margin(
        abs(values[0] - values[1]),
        tuple(to for to, rounded in narrower.items() if compares(*rounded) != result),
    )


SIGNS = {"==": "=", "!=": "≠", "<=": "≤", ">=": "≥"}
"""Signs of comparisons in sentences; the other signs are shown unchanged."""


def value_name(walk: ProvenanceWalk, place: SlotPart) -> str:
    """Return the quoted name of a value.

    The output of a loop or If is named after the Parameter that carries it to the next iteration.
    Without one, it is ``output 1 of `loop```.
    """
    address = walk.address(place)
    number = place.program.producer.get(place.slot)
    if number is None or place.program.instructions[number].region is None:
        return quoted(address)
    parameter = _carrying_parameter(place.program, place.slot)
    if parameter is not None:
        return quoted(walk.address(replace(place, slot=parameter)))
    outputs = place.program.instructions[number].outputs
    name = quoted(address.partition(":")[0])
    return (
        f"output {outputs.index(place.slot)} of {name}"
        if len(outputs) > 1
        else f"the output of {name}"
    )


def quoted(address: str) -> str:
    """Return the last name of an address in backticks.

    >>> quoted("main/loop[2]/body/a%2Fb")
    '`a/b`'
    """
    return f"`{decode(address.rpartition('/')[2])}`"


def _carrying_parameter(program: Program, slot: Slot) -> Slot | None:
    """Return the body Parameter that receives a value in the next iteration; None without one."""
    region = program.region
    carried: tuple[CarriedValue, ...] = region.carried if isinstance(region, LoopRegion) else ()
    return next((port.parameter for port in carried if port.result == slot), None)


def trip_fact(run: Run, program: Program, row: int, slot: Slot) -> Fact:
    """Return the fact about a loop's trip count: its value and the values that it was computed
    from.
    """
    walk = ProvenanceWalk(run)
    place = SlotPart(program, row, slot)
    count = f"{int(np.asarray(walk.value(place)).reshape(-1)[0]):,}"
    by_hand = is_changed(run, program, row, slot)
    operands = (
        ()
        if walk.is_fixed(place)
        else tuple(walk.address(source) for source, _ in walk.sources_of(place))
    )
    text = (
        f"{_name(walk, place)} was set to {count} by hand"
        if by_hand
        else f"the trip count {_name(walk, place)} is {count}"
    )
    return Fact(walk.address(place), walk.operation(place), text, operands, by_hand)


def trip_count_name(run: Run, program: Program, row: int, slot: Slot) -> str:
    """Return the words for a trip count, including its name unless it is a Const."""
    walk = ProvenanceWalk(run)
    place = SlotPart(program, row, slot)
    return "the trip count" if walk.is_fixed(place) else f"the trip count {_name(walk, place)}"


def slice_facts(run: Run, program: Program, row: int, region: LoopRegion) -> tuple[Fact, ...]:
    """Return the facts about the sliced inputs of a loop with the fewest parts."""
    walk = ProvenanceWalk(run)
    counted: list[tuple[int, Fact]] = []
    for sliced in region.sliced:
        place = SlotPart(program, row, sliced.source)
        source = walk.value(place)
        if region.kind == SEQUENCE_MAP and not isinstance(source, tuple):
            continue
        count = parts(region, sliced, source)
        where = "" if isinstance(source, tuple) else f" along axis {sliced.axis}"
        text = f"{_name(walk, place)} has {count:,} part{'' if count == 1 else 's'}{where}"
        counted.append((count, Fact(walk.address(place), walk.operation(place), text, ())))
    fewest = min((count for count, _ in counted), default=0)
    return tuple(dict.fromkeys(fact for count, fact in counted if count == fewest))


def ran_out(facts: Sequence[Fact], count: int) -> str:
    """Return the clause about the sliced inputs that ran out or have no parts."""
    names = list(dict.fromkeys(f"`{decode(fact.address.rpartition('/')[2])}`" for fact in facts))
    joined = " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""
    is_plural = len(names) > 1
    verb = "ran out" if count else "have no parts" if is_plural else "has no parts"
    return f"the sliced input{'s' if is_plural else ''}{f' {joined}' if joined else ''} {verb}"


def _name(walk: ProvenanceWalk, place: SlotPart) -> str:
    return f"`{decode(walk.address(place).rpartition('/')[2])}`"
