"""The rule about output numbers in port maps (Loop-5, If-8, TensorIterator-1)."""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import Finding, Rule, Subject
from loopscope.checks.rules.port_maps import spelled


def output_number_of_no_port(subject: Subject) -> Iterator[Finding]:
    """A port map names an output port that the node does not have.

    What it does:
        Compares the external_port_id of every port map output with the ids of the node's ports.
    Why it matters:
        The specification defines it as the id of a port. OpenVINO uses only the order of the
        numbers, so a wrong number may move a value to another output.
    Example that fails:
        output ports 4 and 5, <output external_port_id="4" .../> and <output external_port_id="9"
        .../>
    Example that passes:
        output ports 4 and 5, <output external_port_id="4" .../> and <output external_port_id="5"
        .../>
    """
    for region in subject.regions if subject.is_openvino else ():
        outputs = region.body.outer_outputs
        ports = {port.id for port in (*region.node.inputs, *region.node.outputs)}
        for index, entry in enumerate(outputs) if len(outputs) == len(region.node.outputs) else ():
            if entry.external not in ports:
                yield Finding(
                    subject.where(region.place, region.node, f"port map output {entry.external}"),
                    f"The port map of the {region.part} names output port {entry.external}, which "
                    f"the {region.node.type} does not have.",
                    found=spelled(entry),
                    expected=f'external_port_id="{region.node.outputs[index].id}"',
                    advice="Loopscope and OpenVINO use only the order of these numbers: this is "
                    f"output {index}.",
                )


RULES = (Rule("LS414", "output-number-of-no-port", Severity.NOTE, output_number_of_no_port),)
