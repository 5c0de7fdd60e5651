"""Generator of the page about check rules, from the explanations of the rules."""

from __future__ import annotations

from loopscope.checks import ADVICE, BY_CODE, Rule, text

INTRODUCTION = (
    "An **error** keeps a model from running, a **warning** deserves a look, a **note** is harmless. "
    "`loopscope check MODEL` applies all rules; `loopscope check --explain CODE` prints the text of one. "
    "Rules from LS960 on are **advice** on loops that are right, and slow or refused somewhere."
)


def page() -> str:
    """Return Markdown: a table of all rules, then a section per rule."""
    rules = [*BY_CODE.values(), *ADVICE]
    table = "\n".join(["| code | severity | finds |", "|---|---|---|", *map(_row, rules)])
    sections = "\n\n".join(
        f"## {rule.code}\n\n```text\n{text.explanation(rule)}\n```" for rule in rules
    )
    return f"# Checks\n\n{INTRODUCTION}\n\n{table}\n\n{sections}"


def _row(rule: Rule) -> str:
    finds = text.documented(rule)[0].replace("|", "\\|").replace("<", "&lt;")
    return f"| [{rule.code}](#{rule.code.lower()}) | {rule.severity.value} | {finds} |"
