"""Inputs and consumers of an operation; for bodies, how they are bound to the outer graph."""

from __future__ import annotations

import streamlit as st

import loopscope
from loopscope.ir import Body, OutputRef, decode, labels
from loopscope.view import input_roles, output_role
from loopscope_app.actions import selection
from loopscope_app.describe.iteration_table import preview
from loopscope_app.describe.node_index import IndexedNode, with_output
from loopscope_app.parts.widgets import markup

MOST = 24


def show(place: IndexedNode, debugger: loopscope.Debugger | None, graph: str) -> None:
    """Show the ports. ``graph`` is the concrete address of the graph around the node, empty if it
    has not begun.
    """
    show_inputs(place, debugger, graph)
    with st.container(key="ports_out"):
        _show_uses(place)
    if place.node.type == "Parameter" and place.body is not None:
        _binding(place)
    for body in place.node.bodies:
        _bodies(place, body)


def _show_uses(place: IndexedNode) -> None:
    fed = [
        (output, layer, number)
        for output in range(len(place.node.outputs))
        for layer, number in place.graph.consumers.get(OutputRef(place.node.id, output), ())
    ]
    if fed:
        markup.show(markup.section("Feeds"))
    for row, (output, layer, number) in enumerate(fed[:MOST]):
        _link(
            f"{place.graph.by_id[layer].name}",
            f"output {output} → input {number}",
            f"port_out_{row}",
            place.beside(layer),
        )


def show_inputs(place: IndexedNode, debugger: loopscope.Debugger | None, graph: str) -> None:
    """Show the inputs of a node, with values where they are known."""
    if place.node.inputs:
        markup.show(markup.section("Inputs"))
    with st.container(key="ports_in"):
        for number, source in enumerate(place.sources[:MOST]):
            if source is None:
                markup.show(f"{number} is not connected", "quiet")
                continue
            label = place.labels[source.layer]
            shown = (
                preview(debugger, f"{graph}/{with_output(label, source.output)}")
                if debugger and graph
                else ""
            )
            _link(
                f"{number} · {decode(label)}",
                shown,
                f"port_in_{number}",
                place.beside(source.layer),
            )


def _link(title: str, detail: str, key: str, address: str) -> None:
    button, words = st.columns([1, 1], vertical_alignment="center", gap="small")
    button.button(
        title[:40].replace("_", "\\_"),
        key=key,
        type="tertiary",
        icon=":material/arrow_forward:",
        on_click=selection.reveal_place,
        args=(address,),
    )
    with words:
        markup.show(markup.text(detail, 80), "quiet mono")


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
