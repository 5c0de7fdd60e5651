"""Diagnostics: severity, place, the value found, the value expected, and advice."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from loopscope.errors import EngineError, Where

_MAX_QUOTED = 3
"""Number of diagnostics that a summary quotes."""


class Severity(Enum):
    """Severity of a diagnostic."""

    ERROR = "error"
    """The model has no defined meaning, or OpenVINO rejects it too. It can be opened and drawn, but
    not run.
    """
    WARNING = "warning"
    """The model runs here, but perhaps not as its author intended, or another runtime fails or
    returns other results.
    """
    NOTE = "note"
    """A harmless finding that is useful to know when the model is edited."""

    @property
    def rank(self) -> int:
        """Position in the order of severities, 0 for the worst."""
        return list(Severity).index(self)


class Runtime(Enum):
    """A program that runs models and that rules can be about. Its value is its name on the command
    line.
    """

    OPENVINO = "openvino"
    ONNXRUNTIME = "onnxruntime"

    @property
    def title(self) -> str:
        """Name in the spelling of the runtime's makers."""
        return {Runtime.OPENVINO: "OpenVINO", Runtime.ONNXRUNTIME: "ONNX Runtime"}[self]


EVERYBODY: frozenset[Runtime] = frozenset()
"""``Rule.runtimes`` of rules that apply to every runtime."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding of one rule at one place."""

    code: str
    """Code of the rule, such as ``LS101``; its meaning never changes."""
    name: str
    """Name of the rule, such as ``duplicate-id``."""
    severity: Severity
    where: Where
    message: str
    """The fault in one sentence."""
    found: str = ""
    expected: str = ""
    advice: str = ""
    """Recommended action, or how Loopscope treats the fault."""
    runtimes: frozenset[Runtime] = EVERYBODY
    """Runtimes that the finding is about; empty if it applies to every runtime."""
    is_habit: bool = False
    """True if exporters commonly write this and it has no effect on results."""


@dataclass(frozen=True, slots=True)
class Group:
    """The findings of one rule at all its places."""

    diagnostics: tuple[Diagnostic, ...]
    """Findings of the rule, at least one."""

    @property
    def first(self) -> Diagnostic:
        return self.diagnostics[0]


@dataclass(frozen=True)
class Report:
    """The findings of a check, most severe first, then in model order."""

    diagnostics: tuple[Diagnostic, ...] = ()

    @staticmethod
    def of(diagnostics: Iterable[Diagnostic]) -> Report:
        """Return a report sorted by severity; findings of equal severity stay in order."""
        return Report(tuple(sorted(diagnostics, key=lambda diagnostic: diagnostic.severity.rank)))

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
        """True if the model can be run."""
        return not self.errors

    def about(self, runtimes: Collection[Runtime]) -> Report:
        """Return the report without the findings that are only about other runtimes."""
        return Report(
            tuple(
                diagnostic
                for diagnostic in self.diagnostics
                if not diagnostic.runtimes or not diagnostic.runtimes.isdisjoint(runtimes)
            )
        )

    def without_habits(self) -> Report:
        """Return the report without the notes about exporters' habits."""
        return Report(
            tuple(diagnostic for diagnostic in self.diagnostics if not diagnostic.is_habit)
        )

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Diagnostics grouped by rule, in the order of each rule's first diagnostic."""
        by_code: dict[str, list[Diagnostic]] = {}
        for diagnostic in self.diagnostics:
            by_code.setdefault(diagnostic.code, []).append(diagnostic)
        return tuple(Group(tuple(diagnostics)) for diagnostics in by_code.values())

    def _of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(
            diagnostic for diagnostic in self.diagnostics if diagnostic.severity is severity
        )

    def at(self, address: str) -> tuple[Diagnostic, ...]:
        """Return the findings at a static address."""
        return self._by_address.get(address, ())

    @cached_property
    def _by_address(self) -> dict[str, tuple[Diagnostic, ...]]:
        by_address: dict[str, list[Diagnostic]] = {}
        for diagnostic in self.diagnostics:
            if diagnostic.where.address:
                by_address.setdefault(diagnostic.where.address, []).append(diagnostic)
        return {address: tuple(diagnostics) for address, diagnostics in by_address.items()}

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Return one sentence, then the first few errors (or warnings, or notes), one per line.

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
        parts = [count for count in counts if count]
        sentence = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
        verdict = (
            f"The model opens, but cannot be run: {sentence}."
            if self.errors
            else f"The model can be run; {sentence}."
        )
        worst = self.errors or self.warnings or self.notes
        lines = [
            f"{diagnostic.code} {diagnostic.where}: {diagnostic.message}"
            if str(diagnostic.where)
            else f"{diagnostic.code}: {diagnostic.message}"
            for diagnostic in worst[:_MAX_QUOTED]
        ]
        more = [f"... and {len(worst) - _MAX_QUOTED} more"] if len(worst) > _MAX_QUOTED else []
        return "\n".join([verdict, *lines, *more])


def _counted(count: int, noun: str) -> str:
    if not count:
        return ""
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


class InvalidModel(EngineError):
    """The model cannot be run; ``report`` lists its errors."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(report.summary())
