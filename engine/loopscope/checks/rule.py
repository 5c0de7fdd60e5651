"""What a rule is: a stable code, a severity, and a function that looks for one kind of fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from loopscope.checks.diagnostic import EVERYBODY, Diagnostic, Runtime, Severity
from loopscope.checks.subject import Subject
from loopscope.errors import Where

HEADINGS = ("What it does", "Why it matters", "Example that fails", "Example that passes")
"""The headings in every rule's docstring, after its first sentence."""

OPENVINO, ONNXRUNTIME = frozenset({Runtime.OPENVINO}), frozenset({Runtime.ONNXRUNTIME})
"""The ``runtimes`` of a rule about one runtime; ``|`` joins them."""

MOST_FINDINGS = 1000
"""The most findings of one rule in a report: a file can be wrong in a million places."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found; the rule's code and severity make it a diagnostic."""

    where: Where
    message: str
    found: str = ""
    expected: str = ""
    advice: str = ""
    severity: Severity | None = None
    """Replaces the severity of the rule where the place decides how bad the fault is."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of a group's table."""

    code: str
    """Such as ``LS101``; never used again for anything else."""
    name: str
    severity: Severity
    find: Callable[[Subject], Iterable[Finding]]
    """Its docstring explains the rule: a sentence, then the parts of ``HEADINGS``."""
    before_running: bool = False
    """Whether it is applied before every run too: it is cheap, and the run itself would not
    notice the fault.
    """
    runtimes: frozenset[Runtime] = EVERYBODY
    """The runtimes that the rule is about; empty when it holds for every runtime."""
    is_habit: bool = False
    """True if exporters write what the rule finds as a matter of course, and it changes nothing."""

    def apply(self, subject: Subject) -> Iterator[Diagnostic]:
        """The diagnostics of this rule for a model, ``MOST_FINDINGS`` at most."""
        for number, finding in enumerate(self.find(subject)):
            if number == MOST_FINDINGS:
                rest = f"There are more than {MOST_FINDINGS} findings of this rule; the others are not listed."
                yield self._diagnostic(Finding(Where(subject.model.file), rest))
                return
            yield self._diagnostic(finding)

    def _diagnostic(self, finding: Finding) -> Diagnostic:
        what = (finding.where, finding.message, finding.found, finding.expected, finding.advice)
        return Diagnostic(
            self.code,
            self.name,
            finding.severity or self.severity,
            *what,
            self.runtimes,
            self.is_habit,
        )
