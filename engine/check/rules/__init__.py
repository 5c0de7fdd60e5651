"""All rules, group by group; the only table of codes."""

from __future__ import annotations

from collections.abc import Mapping

from engine.check.rule import Rule
from engine.check.rules import (
    back_edges,
    branches,
    handed_through,
    loops,
    operations,
    port_maps,
    runtimes,
    slices,
    structure,
    suspicious,
    types,
    weights,
    zero_iterations,
)

GROUPS: Mapping[str, tuple[Rule, ...]] = {
    "structure": structure.RULES,
    "weights": weights.RULES,
    "operations": operations.RULES,
    "port maps": port_maps.RULES,
    "back edges": back_edges.RULES,
    "loops": loops.RULES,
    "slices": slices.RULES,
    "branches": branches.RULES,
    "types and shapes": types.RULES,
    "suspicious": suspicious.RULES,
    "runtimes": (*runtimes.RULES, *zero_iterations.RULES, *handed_through.RULES),
}

RULES: tuple[Rule, ...] = tuple(rule for group in GROUPS.values() for rule in group)
BY_CODE: Mapping[str, Rule] = {rule.code: rule for rule in RULES}
