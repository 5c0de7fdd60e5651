"""What a check finds, as data: how bad, where, what was found, what was expected, what to do
about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from loopscope.errors import EngineError, Where

_FIRST = 3
"""Diagnostics that a summary quotes."""


class Severity(Enum):
    """How bad a diagnostic is."""

    ERROR = "error"
    """The model has no meaning, or OpenVINO refuses it too: it opens and draws, but cannot be
    run.
    """
    WARNING = "warning"
    """The model runs here, but it may not do what its author meant, or another runtime fails or
    gives other results.
    """
    NOTE = "note"
    """Harmless; useful to know when the model is edited."""

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


class Runtime(Enum):
    """A program that runs models and that some rules are about; its value is its name on the
    command line.
    """

    OPENVINO = "openvino"
    ONNXRUNTIME = "onnxruntime"

    @property
    def title(self) -> str:
        """As its makers write it."""
        return {Runtime.OPENVINO: "OpenVINO", Runtime.ONNXRUNTIME: "ONNX Runtime"}[self]


EVERYBODY: frozenset[Runtime] = frozenset()
"""The runtimes of a rule that is not about particular runtimes."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of one rule at one place."""

    code: str
    """The code of the rule, such as ``LS101``; it never changes its meaning."""
    name: str
    """The name of the rule, such as ``duplicate-id``."""
    severity: Severity
    where: Where
    message: str
    """One sentence."""
    found: str = ""
    expected: str = ""
    advice: str = ""
    """What to do about it, or what Loopscope does with it."""
    runtimes: frozenset[Runtime] = EVERYBODY
    """The runtimes that the finding is about; empty when it is true everywhere."""
    is_habit: bool = False
    """True if exporters write this as a matter of course, and it changes nothing."""


@dataclass(frozen=True, slots=True)
class Group:
    """What one rule found, at all its places."""

    diagnostics: tuple[Diagnostic, ...]
    """At least one."""

    @property
    def first(self) -> Diagnostic:
        return self.diagnostics[0]


@dataclass(frozen=True)
class Report:
    """The findings of a check, worst first, then in the order of the model."""

    diagnostics: tuple[Diagnostic, ...] = ()

    @staticmethod
    def of(diagnostics: Iterable[Diagnostic]) -> Report:
        """A report sorted by severity; findings of the same severity keep their order."""
        return Report(tuple(sorted(diagnostics, key=lambda one: one.severity.rank)))

    @cached_property
    def errors(self) -> tuple[Diagnostic, ...]:
        return self._of(Severity.ERROR)

    @cached_property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return self._of(Severity.WARNING)

    @cached_property
    def notes(self) -> tuple[Diagnostic, ...]:
        return self._of(Severity.NOTE)

    @property
    def ok(self) -> bool:
        """Whether the model can be run."""
        return not self.errors

    def about(self, runtimes: Collection[Runtime]) -> Report:
        """The report without the findings that are only about other runtimes."""
        return Report(
            tuple(
                one
                for one in self.diagnostics
                if not one.runtimes or not one.runtimes.isdisjoint(runtimes)
            )
        )

    def without_habits(self) -> Report:
        """Return the report without the notes about exporters' habits."""
        return Report(tuple(one for one in self.diagnostics if not one.is_habit))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The diagnostics of each rule together, in the order of the first ones."""
        found: dict[str, list[Diagnostic]] = {}
        for one in self.diagnostics:
            found.setdefault(one.code, []).append(one)
        return tuple(Group(tuple(diagnostics)) for diagnostics in found.values())

    def _of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(one for one in self.diagnostics if one.severity is severity)

    def at(self, address: str) -> tuple[Diagnostic, ...]:
        """The findings at a static address."""
        return self._by_address.get(address, ())

    @cached_property
    def _by_address(self) -> dict[str, tuple[Diagnostic, ...]]:
        found: dict[str, list[Diagnostic]] = {}
        for one in self.diagnostics:
            if one.where.address:
                found.setdefault(one.where.address, []).append(one)
        return {address: tuple(diagnostics) for address, diagnostics in found.items()}

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """One sentence, then the first few errors (or warnings), a line each.

        >>> Report().summary()
        'No problems found.'
        """
        if not self.diagnostics:
            return "No problems found."
        counts = [
            _counted(len(self.errors), "error"),
            _counted(len(self.warnings), "warning"),
            _counted(len(self.notes), "note"),
        ]
        said = [count for count in counts if count]
        sentence = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
        verdict = (
            f"The model opens, but cannot be run: {sentence}."
            if self.errors
            else f"The model can be run; {sentence}."
        )
        worst = self.errors or self.warnings or self.notes
        lines = [
            f"{one.code} {one.where}: {one.message}"
            if str(one.where)
            else f"{one.code}: {one.message}"
            for one in worst[:_FIRST]
        ]
        more = [f"... and {len(worst) - _FIRST} more"] if len(worst) > _FIRST else []
        return "\n".join([verdict, *lines, *more])


def _counted(count: int, noun: str) -> str:
    if not count:
        return ""
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


class InvalidModel(EngineError):
    """The model cannot be run; ``report`` says why."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(report.summary())
