"""Check rules: a stable code, a severity, and a function that finds one kind of fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from loopscope.checks.diagnostic import EVERYBODY, Diagnostic, Runtime, Severity
from loopscope.checks.subject import Subject
from loopscope.errors import Where

HEADINGS = ("What it does", "Why it matters", "Example that fails", "Example that passes")
"""Headings that every rule's docstring has after its first sentence."""

OPENVINO, ONNXRUNTIME = frozenset({Runtime.OPENVINO}), frozenset({Runtime.ONNXRUNTIME})
"""Values for ``Rule.runtimes`` of rules about one runtime; ``|`` combines them."""

MOST_FINDINGS = 1000
"""Maximum number of findings of one rule in a report (a file can be wrong in a million places)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a rule at one place; the rule's code and severity turn it into a diagnostic."""

    where: Where
    message: str
    found: str = ""
    expected: str = ""
    advice: str = ""
    severity: Severity | None = None
    """Severity of this finding if it differs from the rule's severity."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A check rule: one row of the table of its group."""

    code: str
    """Code such as ``LS101``; a code is never reused for another rule."""
    name: str
    severity: Severity
    find: Callable[[Subject], Iterable[Finding]]
    """Function that finds the faults. Its docstring explains the rule: one sentence, then the
    sections named in ``HEADINGS``.
    """
    before_running: bool = False
    """True if the rule also runs before every run, because it is cheap and the run would not notice
    the fault.
    """
    runtimes: frozenset[Runtime] = EVERYBODY
    """Runtimes that the rule is about; empty if it applies to every runtime."""
    is_habit: bool = False
    """True if exporters commonly write this and it has no effect on results."""

    def apply(self, subject: Subject) -> Iterator[Diagnostic]:
        """Yield the diagnostics of this rule for a model, at most ``MOST_FINDINGS``."""
        for number, finding in enumerate(self.find(subject)):
            if number == MOST_FINDINGS:
                rest = (
                    f"There are more than {MOST_FINDINGS} findings of this rule; the rest are "
                    "not listed."
                )
                yield self._diagnostic(Finding(Where(subject.model.file), rest))
                return
            yield self._diagnostic(finding)

    def _diagnostic(self, finding: Finding) -> Diagnostic:
        fields = (finding.where, finding.message, finding.found, finding.expected, finding.advice)
        return Diagnostic(
            self.code,
            self.name,
            finding.severity or self.severity,
            *fields,
            self.runtimes,
            self.is_habit,
        )
