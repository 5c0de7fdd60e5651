"""Ports of an operation: inputs with their sources, outputs with their consumers, and how bodies
are bound to the outer graph.
"""

from __future__ import annotations

from itertools import takewhile

import streamlit as st

import loopscope
from loopscope.errors import elided
from loopscope.explain import is_no_limit
from loopscope.ir import Body, Model, OutputRef, decode, labels
from loopscope.view import input_roles, output_role
from loopscope_app.actions import selection
from loopscope_app.describe.iteration_table import preview
from loopscope_app.describe.node_index import IndexedNode, with_output
from loopscope_app.describe.node_ports import TRIP_COUNT, NodePort, input_ports, output_ports
from loopscope_app.parts.widgets import markup, place_lists
from loopscope_app.state import focus
from loopscope_app.state.user_session import place as put
from loopscope_app.state.user_session import widget

INPUTS, OUTPUTS, USES = "node_inputs", "node_outputs", "node_uses"
MOST = 60


def show_inputs(
    model: Model, place: IndexedNode, debugger: loopscope.Debugger | None, graph: str
) -> None:
    """Show the inputs of a node with values where they are known. A click goes to the source.

    ``graph`` is the concrete address of the graph around the node, empty before it began.
    """
    ports = input_ports(model, place)[:MOST]
    if not ports:
        return
    markup.show(markup.section("Inputs"))
    lines = [_input_line(place, port, debugger, graph) for port in ports]

    def go(number: int) -> None:
        source = ports[number].source
        if source is not None:
            selection.reveal_place(place.beside(source.layer))

    place_lists.show_list(lines, key=INPUTS, on_pick=go)


def _input_line(
    place: IndexedNode, port: NodePort, debugger: loopscope.Debugger | None, graph: str
) -> place_lists.ChainLine:
    if port.source is None:
        return place_lists.ChainLine(elided(port.name, 60), "", port.type, live=False)
    label = place.labels[port.source.layer]
    value = (
        preview(debugger, f"{graph}/{with_output(label, port.source.output)}")
        if debugger and graph
        else ""
    )
    if port.name == TRIP_COUNT and value.lstrip("-").isdigit() and is_no_limit(int(value)):
        value = "no limit"
    source = decode(label)
    name = elided(_without_shared_scope(source, place.node.name), 60)
    detail = " · ".join(filter(None, (port.role, port.type, f"from {name}")))
    return place_lists.ChainLine(elided(port.name, 60), "", detail, value, hint=source)


def _without_shared_scope(name: str, neighbour: str) -> str:
    """Return a name without the scopes that it shares with a neighbour.

    >>> _without_shared_scope("decoder/rnn/Unsqueeze", "decoder/rnn/LSTM")
    'Unsqueeze'
    >>> _without_shared_scope("decoder/out", "decoder_2/LSTM")
    'decoder/out'
    """
    scopes, others = name.split("/")[:-1], neighbour.split("/")[:-1]
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(scopes, others, strict=False))
    return name[sum(len(scope) + 1 for scope, _ in pairs) :]


def show_outputs(
    model: Model, place: IndexedNode, debugger: loopscope.Debugger | None, concrete: str | None
) -> None:
    """Show the outputs of a node. A click shows the value of one of several."""
    ports = output_ports(model, place)[:MOST]
    if not ports:
        return
    key = focus.output_key(place)
    chosen = int(widget(key) or 0)
    markup.show(markup.section("Outputs"))
    lines = [
        place_lists.ChainLine(
            elided(port.name, 60),
            "",
            " · ".join(filter(None, (port.role, port.type))),
            preview(debugger, with_output(concrete, number)) if debugger and concrete else "",
            kind="now" if number == chosen and len(ports) > 1 else "",
            live=len(ports) > 1,
        )
        for number, port in enumerate(ports)
    ]
    place_lists.show_list(lines, key=OUTPUTS, on_pick=lambda number: put(key, number))


def show_uses(place: IndexedNode) -> None:
    """Show the consumers of a node. A click goes there."""
    uses = [
        (output, layer, number)
        for output in range(len(place.node.outputs))
        for layer, number in place.graph.consumers.get(OutputRef(place.node.id, output), ())
    ][:MOST]
    if not uses:
        return
    markup.show(markup.section("Used by"))
    lines = [
        place_lists.ChainLine(
            elided(place.graph.by_id[layer].name, 60), "", f"output {output} is input {number}"
        )
        for output, layer, number in uses
    ]
    place_lists.show_list(
        lines,
        key=USES,
        on_pick=lambda number: selection.reveal_place(place.beside(uses[number][1])),
    )


def show_bodies(place: IndexedNode) -> None:
    """Show how a Parameter is bound to the outer graph, and the port map of each body."""
    if place.node.type == "Parameter" and place.body is not None:
        _binding(place)
    for body in place.node.bodies:
        _bodies(place, body)


def _binding(place: IndexedNode) -> None:
    body = place.body
    if body is None or place.node.id not in (roles := input_roles(body)):
        return
    markup.show(markup.section("Bound to the outside") + markup.text(roles[place.node.id][0]))


def _bodies(place: IndexedNode, body: Body) -> None:
    label = labels(body.graph)
    roles = input_roles(body)
    rows = []
    for entry in body.inputs:
        outer = f"input {entry.external}" if entry.external != -1 else "nothing"
        rows.append(
            (
                f"{outer} &rarr; {markup.text(decode(label.get(entry.internal, '?')), 60)}",
                markup.text(roles[entry.internal][0]),
            )
        )
    rows += [
        (
            (
                f"{markup.text(decode(label.get(edge.from_layer, '?')), 60)} &#8635; "
                f"{markup.text(decode(label.get(edge.to_layer, '?')), 60)}"
            ),
            "back edge",
        )
        for edge in body.back_edges
    ]
    for out in body.outputs:
        target = f"output {out.external}" if out.external != -1 else "decides whether to go on"
        rows.append(
            (
                f"{markup.text(decode(label.get(out.internal, '?')), 60)} &rarr; {target}",
                markup.text(output_role(body, out)),
            )
        )
    markup.show(markup.section(f"Port map of {body.name}") + markup.facts(rows))
    st.button(
        f"Open {body.name} alone",
        key=f"port_open_{body.name}",
        icon=":material/open_in_full:",
        on_click=selection.open_body,
        args=(f"{place.address}/{body.name}",),
    )
