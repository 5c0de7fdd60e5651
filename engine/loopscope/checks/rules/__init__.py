"""All rules: ``RULES`` by group, and ``ADVICE``."""

from __future__ import annotations

from collections.abc import Mapping

from loopscope.checks.rule import Rule
from loopscope.checks.rules import (
    back_edges,
    constant_bytes,
    declared_types,
    fusions,
    graph_structure,
    if_branches,
    layers,
    loop_advice,
    loops,
    onnx_conversion,
    onnx_loading,
    onnxruntime_results,
    openvino_loops,
    openvino_operations,
    output_numbers,
    port_maps,
    runtimes,
    slices,
    suspicious,
    value_kinds,
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
        *openvino_loops.ZERO_ITERATIONS_RULES,
        *openvino_loops.BODY_VALUE_RULES,
        *openvino_operations.PACKED_WEIGHTS_RULES,
        *openvino_operations.IN_PLACE_RULES,
        *onnxruntime_results.BYTE_WEIGHTS_RULES,
        *onnxruntime_results.GIVEN_BACK_RULES,
        *onnxruntime_results.TRANSPOSED_VECTOR_RULES,
        *openvino_operations.SCALAR_SLICE_RULES,
        *fusions.RULES,
        *onnx_loading.RULES,
        *value_kinds.RULES,
        *onnx_conversion.RULES,
    ),
}

RULES: tuple[Rule, ...] = tuple(rule for group in GROUPS.values() for rule in group)
BY_CODE: Mapping[str, Rule] = {rule.code: rule for rule in RULES}
"""Rules of ``RULES`` by code, without ``ADVICE``."""
ADVICE: tuple[Rule, ...] = loop_advice.RULES
"""Rules about loops that are right, and that a runtime executes slowly or not everywhere."""
