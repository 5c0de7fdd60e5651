"""All rules by group; the only table of codes."""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.checks.rule import Rule
from loopscope.checks.rules import (
    back_edges,
    byte_weights,
    computed_in_place,
    constant_bytes,
    declared_types,
    fusions,
    given_back,
    graph_structure,
    handed_through,
    if_branches,
    layers,
    loop_advice,
    loops,
    onnx_conversion,
    onnx_loading,
    output_numbers,
    packed_weights,
    port_maps,
    runtimes,
    scalar_slices,
    slices,
    suspicious,
    transposed_vector,
    value_kinds,
    zero_iterations,
)

GROUPS: Mapping[str, tuple[Rule, ...]] = {
    "structure": graph_structure.RULES,
    "weights": constant_bytes.RULES,
    "operations": layers.RULES,
    "port maps": (*port_maps.RULES, *output_numbers.RULES),
    "back edges": back_edges.RULES,
    "loops": loops.RULES,
    "slices": slices.RULES,
    "branches": if_branches.RULES,
    "types and shapes": declared_types.RULES,
    "suspicious": suspicious.RULES,
    "runtimes": (
        *runtimes.RULES,
        *zero_iterations.RULES,
        *handed_through.RULES,
        *packed_weights.RULES,
        *computed_in_place.RULES,
        *byte_weights.RULES,
        *given_back.RULES,
        *transposed_vector.RULES,
        *scalar_slices.RULES,
        *fusions.RULES,
        *onnx_loading.RULES,
        *value_kinds.RULES,
        *onnx_conversion.RULES,
    ),
}

RULES: tuple[Rule, ...] = tuple(rule for group in GROUPS.values() for rule in group)
BY_CODE: Mapping[str, Rule] = {rule.code: rule for rule in RULES}
ADVICE: tuple[Rule, ...] = loop_advice.RULES
"""Rules about loops that are right, and that a runtime executes slowly or not everywhere."""
