"""Rules about bodies of ONNX that give back an input as it came, which ONNX Runtime 1.31 does
not keep.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import ONNXRUNTIME, Finding, Rule
from loopscope.checks.rules.onnx_loading import captures
from loopscope.checks.subject import CheckedRegion, Subject
from loopscope.ir.model import LayerId


def given_back_by_a_scan(subject: Subject) -> Iterator[Finding]:
    """An output of a Scan's body is an input of the body as it came.

    What it does:
        Looks for outputs of the bodies of ONNX Scans that no node makes: a state that is handed on, two that are exchanged, a slice.
    Why it matters:
        ONNX Runtime fills such an output with what is in memory: zeros, or any numbers, without a word.
    Example that fails:
        body = step (a, b, x) => (b, a)
    Example that passes:
        the same with next_a = Identity (b), next_b = Identity (a) and => (next_a, next_b)
    """
    for region in subject.regions if not subject.is_openvino else ():
        if region.node.type != "Scan":
            continue
        for parameter, result in _handed_through(region):
            yield _finding(
                subject, region, result, parameter, "ONNX Runtime leaves it to what is in memory"
            )


def iteration_number_given_back(subject: Subject) -> Iterator[Finding]:
    """An output of a Loop's body is the iteration number as it came.

    What it does:
        Looks for outputs of the bodies of ONNX Loops that are the iteration number itself, carried on or collected.
    Why it matters:
        ONNX Runtime counts in that very tensor: it carries 3 where the last iteration was number 2, and collects 3, 3, 3 for 0, 1, 2.
    Example that fails:
        body = step (i, going, last) => (going, i)
    Example that passes:
        the same with number = Identity (i) and => (going, number)
    """
    for region in subject.loops if not subject.is_openvino else ():
        counters = {entry.internal for entry in region.body.inputs if entry.is_iteration_number}
        for parameter, result in _handed_through(region):
            if parameter in counters:
                yield _finding(
                    subject,
                    region,
                    result,
                    parameter,
                    "ONNX Runtime gives the number of a later iteration",
                )


def _handed_through(region: CheckedRegion) -> Iterator[tuple[LayerId, LayerId]]:
    """Inputs of a body that are outputs as they came, and these."""
    graph = region.body.graph
    inputs = {parameter.id for parameter in graph.parameters} - captures(region.within)
    for result in graph.results:
        source = (graph.sources.get(result.id) or (None,))[0]
        if source is not None and source.layer in inputs:
            yield source.layer, result.id


def _finding(
    subject: Subject, region: CheckedRegion, result: LayerId, parameter: LayerId, told: str
) -> Finding:
    graph = region.body.graph
    name, output = (
        graph.by_id[parameter].name,
        next(number for number, one in enumerate(graph.results) if one.id == result),
    )
    return Finding(
        subject.where(region.place, region.node),
        f"Output {output} of the body is its input {name} as it came: {told}.",
        found=f"{name} itself",
        expected=f"a node in between, such as Identity ({name})",
        advice="Here it is what ONNX says; for ONNX Runtime put an Identity in between.",
    )


RULES = (
    Rule(
        "LS922",
        "given-back-by-a-scan",
        Severity.WARNING,
        given_back_by_a_scan,
        runtimes=ONNXRUNTIME,
    ),
    Rule(
        "LS923",
        "iteration-number-given-back",
        Severity.WARNING,
        iteration_number_given_back,
        runtimes=ONNXRUNTIME,
    ),
)
