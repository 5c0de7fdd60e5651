"""Expectations about a run: what may be written, and how it is parsed."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loopscope.errors import InputError, shorten

ENDINGS = (
    "trip_count",
    "condition",
    "zero_trip_count",
    "initial_condition",
    "slices_exhausted",
    "limit",
)
"""Ways in which a loop can end in a run that finished, or at a limit."""
CHECK_LEVELS = ("no errors", "no warnings")
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "=": operator.eq,
    "": operator.eq,
}
_NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_BOUND = re.compile(rf"(<=|>=|<|>|==|=|)\s*({_NUMBER})\s*(%?)")
_SPAN = re.compile(rf"({_NUMBER})\s*(%?)\s*\.\.\s*({_NUMBER})\s*(%?)")
_TAPE = re.compile(r"([TE]+)(\.\.\.)?")
_DRIFT_OPTIONS = ("match", "align")
_LARGEST = 1 << 63
"""Magnitude from which numbers are refused: a whole number of any length may not fit a float."""
_CODE = re.compile(r"no (LS\d{3})")


@dataclass(frozen=True, slots=True)
class NumberBound:
    """Limits of a number, such as ``<= 64``, ``7``, ``3..9`` or ``>= 3 and < 9``."""

    words: str
    """The limits as they were written."""
    tests: tuple[tuple[str, float], ...]
    """Comparison and limit of each part; all must hold."""
    percent: bool = False
    """True for limits of a share; the numbers are then percentages."""

    def holds(self, number: float) -> bool:
        return all(_COMPARISONS[symbol](number, limit) for symbol, limit in self.tests)


def parse_bound(value: object, where: str) -> NumberBound:
    """Return the limits that a number or a text describes; ``InputError`` for anything else.

    >>> parse_bound("3..9", "").holds(9), parse_bound("> 2 and < 4", "").holds(4)
    (True, False)
    """
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return NumberBound(f"= {value}", (("=", float(value)),))
    text = value.strip() if isinstance(value, str) else ""
    tests: list[tuple[str, float]] = []
    percents: set[bool] = set()
    for part in re.split(r"\s+and\s+|\s*,\s*", text) if text else ():
        if match := _SPAN.fullmatch(part):
            lower, first_sign, upper, last_sign = match.groups()
            tests += [(">=", float(lower)), ("<=", float(upper))]
            percents.add(bool(first_sign or last_sign))
        elif match := _BOUND.fullmatch(part):
            symbol, number, sign = match.groups()
            tests.append((symbol, float(number)))
            percents.add(bool(sign))
        else:
            tests, percents = [], set()
            break
    if not tests or len(percents) != 1:
        raise InputError(
            f"{where}: {_shown(value)} is not a bound, expected a whole number or a text such as "
            "'<= 64', '3..9' or '>= 3 and < 9'"
        )
    return NumberBound(text, tuple(tests), percents.pop())


@dataclass(frozen=True, slots=True)
class ExpectedIterations:
    """Bound of the iteration count of each execution of a loop."""

    address: str
    bound: NumberBound

    @property
    def words(self) -> str:
        return f"iterations of {self.address} {self.bound.words}"


@dataclass(frozen=True, slots=True)
class ExpectedEnding:
    """Allowed endings of each execution of a loop."""

    address: str
    endings: tuple[str, ...]

    @property
    def words(self) -> str:
        return f"ending of {self.address}: {' or '.join(self.endings)}"


@dataclass(frozen=True, slots=True)
class ExpectedBranches:
    """Branches of an If: a tape of all its executions, or a bound of how often one branch ran."""

    address: str
    text: str
    tape: str = ""
    """``T`` or ``E`` for each execution; empty for a bound."""
    is_prefix: bool = False
    """True if executions after the tape may take any branch."""
    branch: str = ""
    """``then`` or ``else``; empty for a tape."""
    bound: NumberBound | None = None
    """Bound of the count or share of ``branch``; None if every execution must take it."""

    @property
    def words(self) -> str:
        return f"branches of {self.address}: {self.text}"


@dataclass(frozen=True, slots=True)
class ExpectedDrift:
    """Largest relative error against a runtime, a model, a trace or a rounding.

    The error is that of the outputs, or of all matched values of traces and aligned iterations.
    """

    against: str
    rounding: tuple[str, ...]
    at_most: float
    match: str = ""
    """Pairs of loops and values that belong together, as ``loopscope drift --match``."""
    align: str = ""
    """Iterations that belong together, as ``loopscope drift --align``."""

    @property
    def words(self) -> str:
        other = self.against or f"rounding {', '.join(self.rounding)}"
        return f"drift against {other}: at most {self.at_most:g}"


@dataclass(frozen=True, slots=True)
class ExpectedControlFlow:
    """Equal iteration counts, endings and branches in another model on the same inputs."""

    other: str

    @property
    def words(self) -> str:
        return f"same control flow as {self.other}"


@dataclass(frozen=True, slots=True)
class ExpectedCheck:
    """Absence of problems that ``loopscope check`` reports."""

    level: str
    """``no errors``, ``no warnings``, or ``no`` and the code of one rule."""

    @property
    def code(self) -> str:
        """Code of the one rule, or an empty text."""
        match = _CODE.fullmatch(self.level)
        return match[1] if match else ""

    @property
    def words(self) -> str:
        return f"check: {self.level}"


@dataclass(frozen=True, slots=True)
class ExpectedFinite:
    """Absence of NaN and infinities in all values of the run."""

    @property
    def words(self) -> str:
        return "all values are finite"


Expectation = (
    ExpectedIterations
    | ExpectedEnding
    | ExpectedBranches
    | ExpectedDrift
    | ExpectedControlFlow
    | ExpectedCheck
    | ExpectedFinite
)


def parse_iterations(address: str, value: object) -> ExpectedIterations:
    """Return the expectation of an entry ``iterations."ADDRESS" = BOUND``."""
    where = f"iterations of {shorten(address, 100)}"
    bound = parse_bound(value, where)
    if bound.percent:
        raise InputError(f"{where}: expected a count, got a percentage")
    return ExpectedIterations(address, bound)


def parse_ended(address: str, value: object) -> ExpectedEnding:
    """Return the expectation of an entry ``ended."ADDRESS" = ENDING``, or a list of endings."""
    endings = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not endings or any(ending not in ENDINGS for ending in endings):
        raise InputError(
            f"ending of {shorten(address, 100)}: {_shown(value)} is not an ending, "
            f"expected one of {', '.join(ENDINGS)}"
        )
    return ExpectedEnding(address, tuple(str(ending) for ending in endings))


def parse_branch(address: str, value: object) -> ExpectedBranches:
    """Return the expectation of an entry ``branch."ADDRESS" = TEXT``.

    The text is a tape (``"ETTE"``, ``"ET..."``), a branch that every execution takes (``"then"``),
    or a branch with a bound of its count or share (``"then >= 20%"``).
    """
    text = value.strip() if isinstance(value, str) else ""
    if match := _TAPE.fullmatch(text.upper()):
        return ExpectedBranches(address, text, tape=match[1], is_prefix=match[2] is not None)
    branch, _, rest = text.partition(" ")
    where = f"branches of {shorten(address, 100)}"
    if branch in ("then", "else"):
        bound = parse_bound(rest, where) if rest.strip() else None
        return ExpectedBranches(address, text, branch=branch, bound=bound)
    raise InputError(
        f"{where}: {_shown(value)} is not a tape or a branch, expected T and E for each execution "
        "such as 'ETTE' or 'ET...', or a branch such as 'then' or 'then >= 20%'"
    )


def parse_drift(value: object) -> ExpectedDrift:
    """Return the expectation of an entry ``drift = { against = FILE, at_most = 1e-3 }``."""
    table = value if isinstance(value, dict) else {}
    unknown = set(table) - {"against", "round", "at_most", *_DRIFT_OPTIONS}
    rounding = table.get("round", ())
    rounding = tuple(rounding) if isinstance(rounding, list | tuple) else (rounding,)
    at_most = table.get("at_most")
    against = table.get("against", "")
    if (
        unknown
        or not isinstance(at_most, int | float)
        or isinstance(at_most, bool)
        or not 0 <= at_most < _LARGEST
        or not isinstance(against, str)
        or bool(against) == bool(rounding)
        or not all(isinstance(pattern, str) for pattern in rounding)
        or not all(isinstance(table.get(option, ""), str) for option in _DRIFT_OPTIONS)
    ):
        raise InputError(
            f"drift: {_shown(value)} is not a drift, expected a table such as "
            '{ against = "onnxruntime", at_most = 1e-3 }, where against is onnxruntime, '
            "openvino:CPU or a file, or round = 'main/*=bf16' instead of against"
        )
    return ExpectedDrift(
        against, rounding, float(at_most), *(table.get(option, "") for option in _DRIFT_OPTIONS)
    )


def parse_check(value: object) -> ExpectedCheck:
    """Return the expectation of an entry ``check = "no warnings"``."""
    if isinstance(value, str) and (value in CHECK_LEVELS or _CODE.fullmatch(value)):
        return ExpectedCheck(value)
    raise InputError(
        f"check: {_shown(value)} is not a level, expected 'no errors', 'no warnings', "
        "or a rule such as 'no LS906'"
    )


def parse_same_control_flow(value: object) -> ExpectedControlFlow:
    """Return the expectation of an entry ``same_control_flow_as = "other.onnx"``."""
    if isinstance(value, str) and value:
        return ExpectedControlFlow(value)
    raise InputError(f"same_control_flow_as: expected the path of a model, got {_shown(value)}")


def parse_finite(value: object) -> ExpectedFinite:
    """Return the expectation of an entry ``finite = true``."""
    if value is True:
        return ExpectedFinite()
    raise InputError(f"finite: expected true, got {_shown(value)}")


def _shown(value: Any) -> str:
    return shorten(repr(value), 80)
