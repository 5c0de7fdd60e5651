"""The rule about slices that OpenVINO 2026.4's CPU does not compute."""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import OPENVINO, Finding, Rule
from loopscope.checks.subject import Subject

_BOUNDS = (1, 2)
"""Input indices of begin and end of a StridedSlice."""


def slice_at_a_computed_index(subject: Subject) -> Iterator[Finding]:
    """A tensor of static shape is indexed at a computed position.

    What it does:
        Looks for StridedSlice with a bit in shrink_axis_mask and data of static shape. Its begin or
        end is unknown before the run, as in TensorFlow's x[i] in a while_loop.
    Why it matters:
        OpenVINO's CPU fails on several threads ("doesn't have compiled executor"). On one thread it
        returns the contents of memory.
    Example that fails:
        x[i] of a tensor [4], with shrink_axis_mask="1" and a carried i
    Example that passes:
        Gather (x, i), or the same slice with shrink_axis_mask="0" and a Squeeze
    """
    for place, node in subject.nodes() if subject.is_openvino else ():
        if node.type != "StridedSlice" or "1" not in str(
            node.attributes.get("shrink_axis_mask", "")
        ):
            continue
        data, *bounds = subject.inputs(place, node)[: _BOUNDS[-1] + 1]
        if data.shape.is_static and any(bound.value is None for bound in bounds):
            yield Finding(
                subject.where(place, node),
                "OpenVINO's CPU does not compute this slice at one index: it fails, or on one "
                "thread returns the contents of memory.",
                found=f"shrink_axis_mask, data of shape {data.shape}, and a computed index",
                expected="Gather, or a slice without shrink_axis_mask and a Squeeze",
                advice="Loopscope follows the specification; for OpenVINO write it as a Gather.",
            )


RULES = (
    Rule(
        "LS925",
        "slice-at-a-computed-index",
        Severity.WARNING,
        slice_at_a_computed_index,
        runtimes=OPENVINO,
    ),
)
