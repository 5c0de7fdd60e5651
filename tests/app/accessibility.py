"""Findings of axe-core on a page of a test."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Literal

from playwright.sync_api import Page

from loopscope_app.vendor import find_node
from tests import javascript

AXE = javascript.TOOLS / "node_modules" / "axe-core" / "axe.min.js"
RANKS = {"serious", "critical"}
ALL_RANKS = {"minor", "moderate", *RANKS}
ASK = """async (options) => {
  const passing = document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime < Infinity);
  await Promise.allSettled(passing.map((one) => one.finished));  // a color that fades has the contrast of neither end
  return (await axe.run(document, { resultTypes: ["violations"], ...options })).violations.flatMap((rule) =>
    rule.nodes.map((node) =>
      [rule.impact, rule.id, node.target.join(" "), node.html.slice(0, 200), (node.any[0] ?? node.all[0] ?? node.none[0])?.message]));
}"""
_COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
"""The rules whose findings depend on the theme."""
BRIGHTNESS = """(one, name) => {
  const [red, green, blue] = getComputedStyle(one)[name].match(/[0-9.]+/g).map(Number);
  return (0.3 * red + 0.59 * green + 0.11 * blue) / 255;
}"""
"""From 0 to 1, as the eye weighs colours."""


def rules_of_axe() -> str:
    """Return the script of axe-core; install it first if it is missing."""
    javascript.install(find_node(javascript.TOOLS / "node"))
    return AXE.read_text(encoding="utf-8")


def serious(page: Page, rules: str) -> list[Any]:
    """Return the serious and critical findings of a page: rank, rule, place, its HTML, message."""
    return _findings(page, rules, {})


def findings_in_both_themes(page: Page, rules: str) -> list[Any]:
    """Return the findings of all ranks in the light theme, and those about colours in the dark one.

    The page stays in the light theme.
    """
    light = _findings(page, rules, {}, ALL_RANKS)
    change_theme(page, "dark")
    dark = _findings(page, rules, _COLOURS)
    change_theme(page, "light")
    return light + [[*finding, "dark"] for finding in dark]


def change_theme(page: Page, scheme: Literal["light", "dark"]) -> None:
    """Change the theme of the system, and wait until the app follows."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(
        f"""(isDark) => ({BRIGHTNESS})(document.querySelector("[data-testid=stApp]"),
        "backgroundColor") < 0.5 === isDark""",
        arg=scheme == "dark",
    )


def _findings(
    page: Page, rules: str, options: dict[str, Any], ranks: Set[str] = RANKS
) -> list[Any]:
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(rules)
    return [finding for finding in page.evaluate(ASK, options) if finding[0] in ranks]
