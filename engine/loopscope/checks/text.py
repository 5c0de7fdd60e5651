"""Text and JSON forms of a report, and the explanation of a rule."""

from __future__ import annotations

import inspect
import re
import unicodedata
from collections.abc import Iterator, Sequence

from loopscope.checks.diagnostic import Diagnostic, Group, Report
from loopscope.checks.rule import HEADINGS, Rule

_MAX_LINE = 1000
"""Maximum length of a line in characters; names in a model can have a million."""
_MAX_PLACES = 3
"""Maximum number of places of one rule that a line names."""
_PRINTABLE_ASCII = re.compile(r"[\x20-\x7e]*")


def render(report: Report) -> str:
    """Return the whole report as text, with findings grouped by rule.

    A summary comes first. Each rule follows with its places, the values found and expected at its
    first place, and advice.
    """
    return _render_groups(report, report.groups)


def render_each(report: Report) -> str:
    """Return the whole report as text, with each finding listed separately."""
    return _render_groups(report, tuple(Group((diagnostic,)) for diagnostic in report.diagnostics))


def _render_groups(report: Report, groups: Sequence[Group]) -> str:
    verdict = report.summary().partition("\n")[0]
    return "\n".join(
        [plain(verdict), *(line for group in groups for line in ("", *_group_lines(group)))]
    )


def at_places(group: Group) -> str:
    """Return the places of a group as the end of a line: one place, or their number and the first
    few.
    """
    places, first = len(group.diagnostics), group.first.where
    if places == 1:
        return f"  {first}" if str(first) else ""
    named = [
        " ".join(filter(None, (diagnostic.where.address, diagnostic.where.port)))
        or str(diagnostic.where)
        for diagnostic in group.diagnostics[:_MAX_PLACES]
    ]
    rest = places - len(named)
    return f" at {places} places: {', '.join(named[:-1])}" + (
        f", {named[-1]} and {rest} more" if rest else f" and {named[-1]}"
    )


def _group_lines(group: Group) -> Iterator[str]:
    diagnostic = group.first
    yield plain(
        f"{diagnostic.severity.value} {diagnostic.code} {diagnostic.name}{at_places(group)}"
    )
    yield plain(f"    {'the first: ' if len(group.diagnostics) > 1 else ''}{diagnostic.message}")
    for title, text in (
        ("found", diagnostic.found),
        ("expected", diagnostic.expected),
        ("advice", diagnostic.advice),
    ):
        if text:
            yield plain(f"    {title + ':':<10}{text}")


def plain(text: str) -> str:
    r"""Return text as one line that is safe for a terminal. Control and direction characters are
    escaped, and very long text is cut.

    >>> plain("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    """
    text = text if len(text) <= _MAX_LINE else text[: _MAX_LINE - 3] + "..."
    if _PRINTABLE_ASCII.fullmatch(text):
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        else character
        for character in text
    )


def data(report: Report) -> dict[str, object]:
    """Return the report as data for JSON."""
    return {
        "runnable": report.ok,
        "errors": len(report.errors),
        "warnings": len(report.warnings),
        "notes": len(report.notes),
        "diagnostics": [diagnostic_data(diagnostic) for diagnostic in report.diagnostics],
    }


def diagnostic_data(diagnostic: Diagnostic) -> dict[str, object]:
    """Return a diagnostic as data for JSON, without the unknown parts of its place."""
    where = {
        name: getattr(diagnostic.where, name)
        for name in ("file", "line", "address", "operation", "port")
    }
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "runtimes": sorted(runtime.value for runtime in diagnostic.runtimes),
        "where": {name: value for name, value in where.items() if value},
        "message": diagnostic.message,
        "found": diagnostic.found,
        "expected": diagnostic.expected,
        "advice": diagnostic.advice,
    }


def explanation(rule: Rule) -> str:
    """Return the explanation of a rule from its docstring: what it finds, why it matters, and two
    examples.
    """
    summary, parts = documented(rule)
    lines = [f"{rule.code} {rule.name} ({rule.severity.value})", "", summary]
    for heading, text in parts.items():
        lines += ["", f"{heading}:", *(f"    {line}" for line in text.splitlines())]
    return "\n".join(lines)


def documented(rule: Rule) -> tuple[str, dict[str, str]]:
    """Return the summary of a rule's docstring and its sections by heading."""
    docstring = inspect.getdoc(rule.find) or ""
    pieces = re.split(rf"^({'|'.join(HEADINGS)}):$", docstring, flags=re.MULTILINE)
    parts = {
        heading: inspect.cleandoc(text)
        for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)
    }
    return pieces[0].strip(), parts
