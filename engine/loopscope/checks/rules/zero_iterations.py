"""Rules about Loops without iterations, which OpenVINO 2026.4's CPU handles differently."""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks import trips
from loopscope.checks.diagnostic import Severity
from loopscope.checks.known import scalar_value
from loopscope.checks.rule import OPENVINO, Finding, Rule
from loopscope.checks.subject import Subject
from loopscope.errors import listed
from loopscope.ir.model import OutputRef


def stale_output(subject: Subject) -> Iterator[Finding]:
    """A concatenated output can be empty, because the Loop can run no iterations.

    What it does:
        Looks for concatenated outputs of Loops whose trip count may be 0.
    Why it matters:
        The outputs are empty then. OpenVINO's CPU returns the data of the previous run if the
        compiled model ran before.
    Example that fails:
        a trip count that is an input of the model
    Example that passes:
        a constant trip count above 0, initial condition constant true
    """
    for region in subject.loops:
        joined = any(
            entry.axis is not None and entry.external != -1 for entry in region.body.outputs
        )
        if joined and subject.trips(region).least == 0:
            yield Finding(
                subject.where(region.place, region.node),
                "Without iterations the concatenated outputs are empty; a compiled OpenVINO model "
                "may return those of the previous run.",
                found=trips.words(subject.trips(region)),
                expected="at least one iteration",
                advice="Compile the model again before you compare with OpenVINO.",
            )


def false_start(subject: Subject) -> Iterator[Finding]:
    """The initial condition of a Loop is constant false.

    What it does:
        Looks for Loops whose input 1 is constant false.
    Why it matters:
        No iteration runs, and states have their initial values. OpenVINO's CPU fails if there are
        concatenated outputs, and otherwise returns states without elements.
    Example that fails:
        initial condition constant false
    Example that passes:
        an initial condition that is an input of the model
    """
    for region in subject.loops:
        if scalar_value(subject.outer(region)[1]) is False:
            yield Finding(
                subject.where(region.place, region.node, "input 1"),
                "The initial condition is constant false: OpenVINO's CPU fails, or returns states "
                "without elements.",
                found="initial condition false",
                expected="a computed condition",
                advice="Loopscope runs zero iterations, as specified.",
            )


def unread_state(subject: Subject) -> Iterator[Finding]:
    """The last value of an unread state is an output of a Loop that can run no iterations.

    What it does:
        Looks for carried values that nothing in the body uses and whose last value is an output, in
        Loops whose trip count may be 0.
    Why it matters:
        Without iterations the output is the initial value. OpenVINO's CPU drops the initial value
        of an unread state, and returns zeros.
    Example that fails:
        trip count from an input, a back edge to Parameter 2 and an output of its Result, and no
        edge from Parameter 2
    Example that passes:
        the same with an Add that uses Parameter 2
    """
    for region in subject.loops:
        graph = region.body.graph
        last = {
            entry.internal
            for entry in region.body.outputs
            if entry.axis is None and entry.external != -1
        }
        unread = [
            graph.by_id[edge.to_layer].name
            for edge in region.body.back_edges
            if edge.from_layer in last
            and edge.to_layer in graph.by_id
            and OutputRef(edge.to_layer, 0) not in graph.consumers
        ]
        if unread and subject.trips(region).least == 0:
            yield Finding(
                subject.where(region.place, region.node),
                f"Without iterations OpenVINO's CPU returns zeros for {listed(unread)} instead of "
                "the initial value.",
                found=f"{trips.words(subject.trips(region))}, and a state that nothing reads",
                expected="at least one iteration, or a layer of the body that uses the state",
                advice="Loopscope returns the initial value.",
            )


RULES = (
    Rule("LS912", "stale-output", Severity.NOTE, stale_output, runtimes=OPENVINO),
    Rule("LS913", "false-start", Severity.WARNING, false_start, runtimes=OPENVINO),
    Rule("LS914", "unread-state", Severity.WARNING, unread_state, runtimes=OPENVINO),
)
