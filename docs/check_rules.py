"""The page of the check's rules, from their own explanations."""

from __future__ import annotations

from loopscope.checks import BY_CODE, Rule, text

__all__: list[str] = []


def page() -> str:
    """Markdown: a table of all rules, then each with its reasons."""
    table = "\n".join(
        ["| code | severity | finds |", "|---|---|---|", *map(_line, BY_CODE.values())]
    )
    rules = "\n\n".join(
        f"## {code}\n\n```text\n{text.explanation(rule)}\n```" for code, rule in BY_CODE.items()
    )
    words = (
        "An **error** keeps a model from running, a **warning** deserves a look, a **note** is harmless. "
        "`loopscope check MODEL` applies them all; `loopscope check --explain CODE` prints what is said here of one."
    )
    return f"# What the check looks for\n\n{words}\n\n{table}\n\n{rules}"


def _line(rule: Rule) -> str:
    finds = text.documented(rule)[0].replace("|", "\\|").replace("<", "&lt;")
    return f"| [{rule.code}](#{rule.code.lower()}) | {rule.severity.value} | {finds} |"


__doc__ = page()
