"""Rules about the port maps of Loop, TensorIterator and If."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loopscope.checks.diagnostic import Severity
from loopscope.checks.rule import CheckedRegion, Finding, Rule, Subject
from loopscope.errors import shorten
from loopscope.ir.model import IF, LOOP, InputMap, OutputMap

_PURPOSES = {LOOP: ("current_iteration", "execution_condition")}


def spelled(entry: InputMap | OutputMap) -> str:
    """Return a port map entry as XML, without default attributes."""
    kind = "input" if isinstance(entry, InputMap) else "output"
    axis = "" if entry.axis is None else f' axis="{entry.axis}"'
    purpose = f' purpose="{shorten(entry.purpose, 40)}"' if entry.purpose else ""
    return (
        f'<{kind} external_port_id="{entry.external}" '
        f'internal_layer_id="{entry.internal}"{axis}{purpose}>'
    )


def map_to_unknown_layer(subject: Subject) -> Iterator[Finding]:
    """A port map refers to a layer that its body does not have.

    What it does:
        Looks up internal_layer_id of every port map entry among the layers of the body.
    Why it matters:
        The value has no source or no destination. OpenVINO refuses such a file.
    Example that fails:
        <input external_port_id="2" internal_layer_id="77"/> without a layer 77 in the body
    Example that passes:
        <input external_port_id="2" internal_layer_id="0"/>, and layer 0 of the body is a Parameter
    """
    for region in subject.regions:
        for entry in region.entries:
            if entry.internal not in region.body.graph.by_id:
                yield Finding(
                    subject.where(region.place, region.node, _port_label(entry)),
                    f"The port map refers to layer {entry.internal}, which the {region.part} does "
                    "not have.",
                    found=spelled(entry),
                    expected="the id of a "
                    f"{'Parameter' if isinstance(entry, InputMap) else 'Result'} of the "
                    f"{region.part}",
                    advice="Correct internal_layer_id, which is an id inside the body.",
                )


def _port_label(entry: InputMap | OutputMap) -> str:
    return f"port map {'input' if isinstance(entry, InputMap) else 'output'} {entry.external}"


def map_to_wrong_kind(subject: Subject) -> Iterator[Finding]:
    """A port map input is not mapped to a Parameter, or an output not to a Result.

    What it does:
        Checks the type of the layer that each port map entry refers to.
    Why it matters:
        Values enter a body only through Parameters and leave it only through Results. OpenVINO
        refuses such a file.
    Example that fails:
        <output external_port_id="5" internal_layer_id="7"/>, and layer 7 of the body is an Add
    Example that passes:
        <output external_port_id="5" internal_layer_id="10"/>, and layer 10 of the body is a Result
    """
    for region in subject.regions:
        for entry in region.entries:
            node = region.body.graph.by_id.get(entry.internal)
            expected = "Parameter" if isinstance(entry, InputMap) else "Result"
            if node is not None and node.type != expected:
                yield Finding(
                    subject.where(region.place, region.node, _port_label(entry)),
                    f"The port map binds an {'input' if expected == 'Parameter' else 'output'} to "
                    f"{shorten(node.name)!r}, which is of type {shorten(node.type, 40)}.",
                    found=spelled(entry),
                    expected=f"the id of a {expected}",
                    advice=f"Correct internal_layer_id, or insert a {expected}.",
                )


def map_input_out_of_range(subject: Subject) -> Iterator[Finding]:
    """A port map refers to an outer input that the node does not have.

    What it does:
        Compares external_port_id of every port map input with the number of inputs of the node (0
        is the first).
    Why it matters:
        The body requires a value that does not exist. OpenVINO refuses such a file.
    Example that fails:
        <input external_port_id="5" .../> in a Loop with five inputs
    Example that passes:
        <input external_port_id="4" .../> in a Loop with five inputs
    """
    for region in subject.regions:
        count = len(region.node.inputs)
        for entry in region.body.inputs:
            if entry.external >= count:
                yield Finding(
                    subject.where(region.place, region.node, _port_label(entry)),
                    f"The port map refers to input {entry.external}, but the {region.node.type} "
                    f"has {count}.",
                    found=spelled(entry),
                    expected=f"0 to {count - 1}" if count else "no input",
                    advice="external_port_id of an input is its index from 0, not the id of its "
                    "port.",
                )


def outer_input_unused(subject: Subject) -> Iterator[Finding]:
    """An input of a Loop or TensorIterator is not mapped to the body.

    What it does:
        Looks for outer inputs without a port map entry. The trip count and the condition of a Loop
        are excluded.
    Why it matters:
        The value never enters the body; probably an entry is missing. OpenVINO refuses such a file.
    Example that fails:
        a Loop with an edge to input 4 and no <input external_port_id="4" .../>
    Example that passes:
        the same with <input external_port_id="4" internal_layer_id="3"/>
    """
    if not subject.is_openvino:
        return
    for region in subject.iterating:
        mapped = {entry.external for entry in region.body.inputs}
        for index in range(2 if region.node.type == LOOP else 0, len(region.node.inputs)):
            if index not in mapped:
                yield Finding(
                    subject.where(region.place, region.node, f"input {index}"),
                    f"Input {index} is not mapped to the body.",
                    found=f"no port map input with external_port_id {index}",
                    expected="a port map input that passes it to a Parameter",
                    advice="Add the entry, or remove the input and its edge.",
                )


def branch_input_unused(subject: Subject) -> Iterator[Finding]:
    """An input of an If is used by neither branch.

    What it does:
        Looks for inputs after the condition that neither port map refers to.
    Why it matters:
        The value is computed but not used.
    Example that fails:
        an If with an edge to input 3, which neither port map refers to
    Example that passes:
        an If whose then_port_map or else_port_map refers to input 3
    """
    for place, node in subject.ifs:
        mapped = {entry.external for body in node.bodies for entry in body.inputs}
        for index in range(1, len(node.inputs)):
            if index not in mapped:
                yield Finding(
                    subject.where(place, node, f"input {index}"),
                    f"Input {index} is used by neither branch.",
                    found=f"no port map input with external_port_id {index}",
                    expected="an input that at least one branch uses",
                    advice="Harmless.",
                )


def parameter_unfed(subject: Subject) -> Iterator[Finding]:
    """A Parameter of a body has no source.

    What it does:
        Looks for body Parameters without a port map entry, or with external_port_id -1 and neither
        a purpose nor a back edge.
    Why it matters:
        The value of the Parameter is not defined. OpenVINO reads such a file and uses zeros.
    Example that fails:
        <input external_port_id="-1" internal_layer_id="0"/> without purpose="current_iteration"
    Example that passes:
        <input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/>
    """
    for region in subject.regions:
        fed = {
            entry.internal
            for entry in region.body.inputs
            if entry.external != -1 or entry.is_iteration_number
        }
        fed |= {edge.to_layer for edge in region.body.back_edges}
        for node in region.body.graph.parameters:
            if node.id not in fed:
                entry = next(
                    (entry for entry in region.body.inputs if entry.internal == node.id), None
                )
                yield Finding(
                    subject.where(region.body_place, node),
                    f"Parameter {shorten(node.name)!r} of the {region.part} has no source.",
                    found=spelled(entry) if entry else "no port map entry",
                    expected="a port map input with an outer input, or purpose current_iteration",
                    advice="The value is zero in the declared shape, as in OpenVINO.",
                )


def parameter_fed_twice(subject: Subject) -> Iterator[Finding]:
    """Several port map inputs feed one Parameter.

    What it does:
        Looks for different port map inputs of one body Parameter. A repeated equal entry is
        harmless.
    Why it matters:
        A Parameter has exactly one value. OpenVINO refuses such a file, or computes with a value
        that is neither of the two.
    Example that fails:
        two <input .../> with internal_layer_id="3" in one port map
    Example that passes:
        one <input .../> with internal_layer_id="3"
    """
    for region in subject.regions:
        different = dict.fromkeys(region.body.inputs)
        for layer, count in Counter(entry.internal for entry in different).items():
            if count > 1:
                entries = [entry for entry in different if entry.internal == layer]
                yield Finding(
                    subject.where(region.place, region.node, f"{region.body.name} layer {layer}"),
                    f"{count} port map inputs feed Parameter {layer} of the {region.part}.",
                    found=" ".join(spelled(entry) for entry in entries[:4]),
                    expected="one entry",
                    advice="Remove all but one.",
                )


def output_never_produced(subject: Subject) -> Iterator[Finding]:
    """A node with bodies declares more outputs than its port map produces.

    What it does:
        Compares the node's output ports with the port map outputs that have an external_port_id.
    Why it matters:
        The additional output never receives a value. OpenVINO refuses such a file.
    Example that fails:
        two output ports, one <output external_port_id="5" .../>
    Example that passes:
        two output ports, <output external_port_id="5" .../> and <output external_port_id="6" .../>
    """
    for region in subject.regions:
        produced, declared = len(region.body.outer_outputs), len(region.node.outputs)
        if produced < declared and not _branches_differ(region):
            yield Finding(
                subject.where(region.place, region.node, f"output {produced}"),
                f"The {region.node.type} declares {declared} "
                f"output{'' if declared == 1 else 's'}, but "
                f"the port map of its {region.part} produces {produced}.",
                found=f"{produced} port map outputs with an external_port_id",
                expected=str(declared),
                advice="Map a Result of the body to each output, or remove the output ports.",
            )


def _branches_differ(region: CheckedRegion) -> bool:
    """Return True if the branches have different numbers of outputs, which another rule reports."""
    return len({len(body.outer_outputs) for body in region.node.bodies}) > 1


def output_without_port(subject: Subject) -> Iterator[Finding]:
    """A port map produces more outputs than the node declares.

    What it does:
        Compares the port map outputs that have an external_port_id with the node's output ports.
    Why it matters:
        Outputs are numbered in the order of their external_port_id, so an additional entry shifts
        the outputs after it.
    Example that fails:
        one output port, <output external_port_id="5" .../> and <output external_port_id="6" .../>
    Example that passes:
        two output ports for them
    """
    for region in subject.regions:
        produced, declared = len(region.body.outer_outputs), len(region.node.outputs)
        if produced > declared and region.node.type != IF and subject.is_openvino:
            yield Finding(
                subject.where(region.place, region.node),
                f"The port map produces {produced} outputs, but the {region.node.type} declares "
                f"{declared}.",
                found="external_port_id "
                f"{', '.join(str(entry.external) for entry in region.body.outer_outputs[:8])}",
                expected=f"{declared} entries",
                advice="The first entries in the order of external_port_id are the outputs; the "
                "rest are not used.",
            )


def outputs_of_one_number(subject: Subject) -> Iterator[Finding]:
    """Two port map outputs of one body have the same external_port_id.

    What it does:
        Looks for an external_port_id (other than -1) that repeats among the outputs of one port
        map.
    Why it matters:
        An output has exactly one value: that of the second entry is lost. OpenVINO refuses the file
        if this leaves an output without an entry.
    Example that fails:
        <output external_port_id="5" internal_layer_id="9"/> <output external_port_id="5"
        internal_layer_id="10"/>
    Example that passes:
        numbers 5 and 6
    """
    for region in subject.regions:
        uses = Counter(entry.external for entry in region.body.outputs if entry.external != -1)
        for external, count in uses.items():
            if count > 1:
                yield Finding(
                    subject.where(region.place, region.node, f"port map output {external}"),
                    f"{count} outputs of the {region.part} have external_port_id {external}.",
                    found=f"{count} entries with external_port_id {external}",
                    expected="a unique external_port_id for each output",
                    advice="The first one is used, as in OpenVINO; renumber or remove the others.",
                )


def unknown_purpose(subject: Subject) -> Iterator[Finding]:
    """A port map entry has an invalid purpose.

    What it does:
        Looks for purposes other than current_iteration on inputs (with external_port_id -1) and
        execution_condition on outputs of a Loop.
    Why it matters:
        The purpose is ignored, in OpenVINO too, so the entry does not have the intended effect.
    Example that fails:
        <input external_port_id="-1" internal_layer_id="0" purpose="iteration"/>
    Example that passes:
        <input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/>
    """
    for region in subject.regions:
        valid_purposes = (
            _PURPOSES.get(region.node.type, ()) if subject.is_openvino else _PURPOSES[LOOP]
        )
        for entry in region.entries:
            valid_purpose = (
                "current_iteration" if isinstance(entry, InputMap) else "execution_condition"
            )
            misplaced = isinstance(entry, InputMap) and entry.external != -1
            if entry.purpose and (
                entry.purpose != valid_purpose or valid_purpose not in valid_purposes or misplaced
            ):
                yield Finding(
                    subject.where(region.place, region.node, _port_label(entry)),
                    f"Purpose {shorten(entry.purpose, 40)!r} is invalid for this "
                    f"{_port_label(entry).split()[2]} of a {region.node.type}.",
                    found=spelled(entry),
                    expected=f"{valid_purpose!r} or no purpose"
                    if valid_purpose in valid_purposes and not misplaced
                    else "no purpose",
                    advice="The purpose is ignored.",
                )


def sliced_branch(subject: Subject) -> Iterator[Finding]:
    """A port map entry of an If has an axis.

    What it does:
        Looks for axis in then_port_map and else_port_map.
    Why it matters:
        A branch runs at most once, so there is nothing to slice or concatenate. OpenVINO ignores
        the axis.
    Example that fails:
        <input axis="0" external_port_id="1" internal_layer_id="0"/> in then_port_map
    Example that passes:
        <input external_port_id="1" internal_layer_id="0"/>
    """
    for region in subject.regions:
        for entry in region.entries if region.node.type == IF else ():
            if entry.axis is not None:
                yield Finding(
                    subject.where(region.place, region.node, _port_label(entry)),
                    f"The port map of the {region.part} has axis {entry.axis}, but an If slices "
                    "nothing.",
                    found=spelled(entry),
                    expected="no axis",
                    advice="The axis is ignored: the whole tensor is used.",
                )


def unused_body_result(subject: Subject) -> Iterator[Finding]:
    """A Result of a body is unused.

    What it does:
        Looks for body Results that no port map output and no back edge refers to.
    Why it matters:
        The body computes an unused value. Either an output is missing, or the body can be smaller.
    Example that fails:
        a Result 9 in the body, and neither <output internal_layer_id="9"/> nor <edge
        from-layer="9"/>
    Example that passes:
        a Result 9 with a port map output
    """
    for region in subject.regions:
        used = {entry.internal for entry in region.body.outputs} | {
            edge.from_layer for edge in region.body.back_edges
        }
        for node in region.body.graph.results:
            if node.id not in used:
                yield Finding(
                    subject.where(region.body_place, node),
                    f"Result {shorten(node.name)!r} of the {region.part} is unused.",
                    found="no port map output and no back edge",
                    expected="a port map output or a back edge",
                    advice="Harmless.",
                )


RULES = (
    Rule(
        "LS401", "map-to-unknown-layer", Severity.ERROR, map_to_unknown_layer, before_running=True
    ),
    Rule("LS402", "map-to-wrong-kind", Severity.ERROR, map_to_wrong_kind, before_running=True),
    Rule(
        "LS403",
        "map-input-out-of-range",
        Severity.ERROR,
        map_input_out_of_range,
        before_running=True,
    ),
    Rule("LS404", "outer-input-unused", Severity.ERROR, outer_input_unused, before_running=True),
    Rule(
        "LS405", "output-never-produced", Severity.ERROR, output_never_produced, before_running=True
    ),
    Rule("LS406", "parameter-unfed", Severity.WARNING, parameter_unfed),
    Rule("LS407", "parameter-fed-twice", Severity.ERROR, parameter_fed_twice, before_running=True),
    Rule("LS408", "output-without-port", Severity.WARNING, output_without_port),
    Rule("LS409", "outputs-of-one-number", Severity.WARNING, outputs_of_one_number),
    Rule("LS410", "unknown-purpose", Severity.WARNING, unknown_purpose),
    Rule("LS411", "sliced-branch", Severity.WARNING, sliced_branch),
    Rule("LS412", "unused-body-result", Severity.NOTE, unused_body_result, is_habit=True),
    Rule("LS413", "branch-input-unused", Severity.NOTE, branch_input_unused, is_habit=True),
)
