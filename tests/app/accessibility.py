"""axe-core in a test's page: what it finds that shuts somebody out."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

from loopscope_app.node import find_node
from tests import javascript

AXE = javascript.TOOLS / "node_modules" / "axe-core" / "axe.min.js"
RANKS = {"serious", "critical"}
ASK = """async () => {
  const passing = document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime < Infinity);
  await Promise.allSettled(passing.map((one) => one.finished));  // a color that fades has the contrast of neither end
  return (await axe.run(document, { resultTypes: ["violations"] })).violations.flatMap((rule) =>
    rule.nodes.map((node) =>
      [rule.impact, rule.id, node.target.join(" "), node.html.slice(0, 200), (node.any[0] ?? node.all[0] ?? node.none[0])?.message]));
}"""


def rules_of_axe() -> str:
    """Its script, which is installed first where it is not."""
    javascript.install(find_node(javascript.TOOLS / "node"))
    return AXE.read_text(encoding="utf-8")


def serious(page: Page, rules: str) -> list[Any]:
    """What it finds on a page, the serious and the critical: rank, rule, place, its HTML,
    message.
    """
    page.evaluate(rules)
    return [one for one in page.evaluate(ASK) if one[0] in RANKS]
