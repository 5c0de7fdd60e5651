"""The rule about the numbers of outputs in port maps (Loop-5, If-8, TensorIterator-1)."""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import Finding, Rule
from loopscope.checks.rules.port_maps import spelled
from loopscope.checks.subject import Subject


def output_number_of_no_port(subject: Subject) -> Iterator[Finding]:
    """A port map names an output port that the node does not have.

    What it does:
        Looks for the external_port_id of every port map output among the ids of the node's ports.
    Why it matters:
        The specification takes it for a port's id. OpenVINO looks at the order of the numbers only: a wrong number may move a value to
        another output.
    Example that fails:
        output ports 4 and 5, <output external_port_id="4" .../> and <output external_port_id="9" .../>
    Example that passes:
        output ports 4 and 5, <output external_port_id="4" .../> and <output external_port_id="5" .../>
    """
    for region in subject.regions if subject.is_openvino else ():
        outputs = region.body.outer_outputs
        ports = {port.id for port in (*region.node.inputs, *region.node.outputs)}
        for at, entry in enumerate(outputs) if len(outputs) == len(region.node.outputs) else ():
            if entry.external not in ports:
                yield Finding(
                    subject.where(region.place, region.node, f"port map output {entry.external}"),
                    f"The port map of the {region.part} names output port {entry.external}, which the {region.node.type} does not have.",
                    found=spelled(entry),
                    expected=f'external_port_id="{region.node.outputs[at].id}"',
                    advice=f"Only the order of these numbers counts, here and in OpenVINO: this one is output {at}.",
                )


RULES = (Rule("LS414", "output-number-of-no-port", Severity.NOTE, output_number_of_no_port),)
