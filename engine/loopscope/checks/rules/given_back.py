"""Rules about ONNX bodies with an unchanged input as output, which ONNX Runtime 1.31 does not
preserve.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import ONNXRUNTIME, Finding, Rule
from loopscope.checks.rules.onnx_loading import captures
from loopscope.checks.subject import CheckedRegion, Subject
from loopscope.ir.model import LayerId


def given_back_by_a_scan(subject: Subject) -> Iterator[Finding]:
    """An output of a Scan's body is an unchanged input of the body.

    What it does:
        Looks for outputs of ONNX Scan bodies that no node computes: a state that is passed on, two
        states that are exchanged, or a slice.
    Why it matters:
        ONNX Runtime silently fills such an output with the contents of memory: zeros, or any
        numbers.
    Example that fails:
        body = step (a, b, x) => (b, a)
    Example that passes:
        the same with next_a = Identity (b), next_b = Identity (a) and => (next_a, next_b)
    """
    for region in subject.regions if not subject.is_openvino else ():
        if region.node.type != "Scan":
            continue
        for parameter, result in _unchanged_outputs(region):
            yield _finding(subject, region, result, parameter, "ONNX Runtime does not write it")


def iteration_number_given_back(subject: Subject) -> Iterator[Finding]:
    """An output of a Loop's body is the iteration number itself.

    What it does:
        Looks for outputs of ONNX Loop bodies that are the unchanged iteration number, carried or
        concatenated.
    Why it matters:
        ONNX Runtime counts in that tensor. It carries 3 if the last iteration was number 2, and
        concatenates 3, 3, 3 instead of 0, 1, 2.
    Example that fails:
        body = step (i, going, last) => (going, i)
    Example that passes:
        the same with number = Identity (i) and => (going, number)
    """
    for region in subject.loops if not subject.is_openvino else ():
        counters = {entry.internal for entry in region.body.inputs if entry.is_iteration_number}
        for parameter, result in _unchanged_outputs(region):
            if parameter in counters:
                yield _finding(
                    subject,
                    region,
                    result,
                    parameter,
                    "ONNX Runtime returns the number of a later iteration",
                )


def _unchanged_outputs(region: CheckedRegion) -> Iterator[tuple[LayerId, LayerId]]:
    """Yield each body input that is an output of the body without a node between them, with its
    Result.
    """
    graph = region.body.graph
    inputs = {parameter.id for parameter in graph.parameters} - captures(region.within)
    for result in graph.results:
        source = (graph.sources.get(result.id) or (None,))[0]
        if source is not None and source.layer in inputs:
            yield source.layer, result.id


def _finding(
    subject: Subject, region: CheckedRegion, result: LayerId, parameter: LayerId, consequence: str
) -> Finding:
    graph = region.body.graph
    name = graph.by_id[parameter].name
    output = next(number for number, node in enumerate(graph.results) if node.id == result)
    return Finding(
        subject.where(region.place, region.node),
        f"Output {output} of the body is its unchanged input {name}: {consequence}.",
        found=f"{name} itself",
        expected=f"a node between them, such as Identity ({name})",
        advice="Loopscope follows the ONNX specification; for ONNX Runtime insert an Identity.",
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
