"""A report as lines for a terminal, and as data for JSON; a rule as an explanation."""

from __future__ import annotations

import inspect
import re
import unicodedata
from collections.abc import Iterator, Sequence

from loopscope.checks.diagnostic import Diagnostic, Group, Report
from loopscope.checks.rule import HEADINGS, Rule

_MOST = 1000
"""Characters of one line; names in a model may be a million long."""
_FEW = 3
"""Places of one rule that a line names."""
_HARMLESS = re.compile(r"[\x20-\x7e]*")


def render(report: Report) -> str:
    """The whole report: a summary, then each rule with its places, what was found and expected
    at the first of them, and what to do.
    """
    return _rendered(report, report.groups)


def render_each(report: Report) -> str:
    """The same with every finding of a rule by itself."""
    return _rendered(report, tuple(Group((one,)) for one in report.diagnostics))


def _rendered(report: Report, groups: Sequence[Group]) -> str:
    verdict = report.summary().partition("\n")[0]
    return "\n".join([plain(verdict), *(line for group in groups for line in ("", *_lines(group)))])


def at_places(group: Group) -> str:
    """Where a rule found something, as the end of a line: the place, or how many there are and
    the first of them.
    """
    places, first = len(group.diagnostics), group.first.where
    if places == 1:
        return f"  {first}" if str(first) else ""
    named = [
        " ".join(filter(None, (one.where.address, one.where.port))) or str(one.where)
        for one in group.diagnostics[:_FEW]
    ]
    rest = places - len(named)
    return f" at {places} places: {', '.join(named[:-1])}" + (
        f", {named[-1]} and {rest} more" if rest else f" and {named[-1]}"
    )


def _lines(group: Group) -> Iterator[str]:
    one = group.first
    yield plain(f"{one.severity.value} {one.code} {one.name}{at_places(group)}")
    yield plain(f"    {'the first: ' if len(group.diagnostics) > 1 else ''}{one.message}")
    for title, text in (("found", one.found), ("expected", one.expected), ("advice", one.advice)):
        if text:
            yield plain(f"    {title + ':':<10}{text}")


def plain(text: str) -> str:
    r"""One line that a terminal shows as it is: control and direction characters escaped, cut when
    it is very long.

    >>> plain("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    """
    text = text if len(text) <= _MOST else text[: _MOST - 3] + "..."
    if _HARMLESS.fullmatch(text):
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        else character
        for character in text
    )


def data(report: Report) -> dict[str, object]:
    """The report as data that JSON can hold."""
    return {
        "runnable": report.ok,
        "errors": len(report.errors),
        "warnings": len(report.warnings),
        "notes": len(report.notes),
        "diagnostics": [diagnostic_data(one) for one in report.diagnostics],
    }


def diagnostic_data(one: Diagnostic) -> dict[str, object]:
    """One diagnostic as data for JSON; unknown parts of its place are left out."""
    where = {
        name: getattr(one.where, name) for name in ("file", "line", "address", "operation", "port")
    }
    return {
        "code": one.code,
        "name": one.name,
        "severity": one.severity.value,
        "runtimes": sorted(runtime.value for runtime in one.runtimes),
        "where": {name: value for name, value in where.items() if value},
        "message": one.message,
        "found": one.found,
        "expected": one.expected,
        "advice": one.advice,
    }


def explanation(rule: Rule) -> str:
    """What a rule looks for and why, with an example that fails and one that passes: from its
    docstring.
    """
    summary, parts = documented(rule)
    lines = [f"{rule.code} {rule.name} ({rule.severity.value})", "", summary]
    for heading, text in parts.items():
        lines += ["", f"{heading}:", *(f"    {line}" for line in text.splitlines())]
    return "\n".join(lines)


def documented(rule: Rule) -> tuple[str, dict[str, str]]:
    """The first sentence of a rule's docstring, and its parts by heading."""
    found = inspect.getdoc(rule.find) or ""
    pieces = re.split(rf"^({'|'.join(HEADINGS)}):$", found, flags=re.MULTILINE)
    parts = {
        heading: inspect.cleandoc(text)
        for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)
    }
    return pieces[0].strip(), parts
