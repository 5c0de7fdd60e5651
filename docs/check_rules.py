"""Generator of the page about check rules, from the explanations of the rules."""

from __future__ import annotations

from loopscope.checks import BY_CODE, Rule, text

INTRODUCTION = (
    "An **error** keeps a model from running, a **warning** deserves a look, a **note** is harmless. "
    "`loopscope check MODEL` applies all rules; `loopscope check --explain CODE` prints the text of one."
)


def page() -> str:
    """Return Markdown: a table of all rules, then a section per rule."""
    table = "\n".join(
        ["| code | severity | finds |", "|---|---|---|", *map(_row, BY_CODE.values())]
    )
    sections = "\n\n".join(
        f"## {code}\n\n```text\n{text.explanation(rule)}\n```" for code, rule in BY_CODE.items()
    )
    return f"# Checks\n\n{INTRODUCTION}\n\n{table}\n\n{sections}"


def _row(rule: Rule) -> str:
    finds = text.documented(rule)[0].replace("|", "\\|").replace("<", "&lt;")
    return f"| [{rule.code}](#{rule.code.lower()}) | {rule.severity.value} | {finds} |"
