"""Facts about a node that its file states, and its costs: source line, parameters, MACs."""

from __future__ import annotations

import streamlit as st

from loopscope.view import SourceLine, flat_entries, fused_names, own_source_line, source_lines
from loopscope_app.describe.node_costs import cost_rows
from loopscope_app.describe.node_index import places
from loopscope_app.parts.widgets import markup
from loopscope_app.state.user_session import UserSession

_MAX_ENTRIES = 40


def show(session: UserSession, address: str) -> None:
    """Show the facts about the node at a static address. Nothing is drawn without facts."""
    opened, debugger = session.model.opened, session.run.debugger
    place = places(opened.model).get(address) if opened is not None else None
    if place is None:
        return
    line = own_source_line(place.node)
    if line is not None:
        _source(line, source_lines(place.node))
    concrete = (debugger.resolve(address) if debugger is not None else "") or ""
    rows = [
        (markup.text(name), markup.text(text))
        for name, text in cost_rows(place, debugger, concrete)
    ]
    names = fused_names(place.node)
    if names:
        rows.append(("merged from", markup.text(", ".join(names), 400)))
    if rows:
        markup.show(markup.section("Cost") + markup.facts(rows))
    entries = list(flat_entries(place.node.rt_info))[:_MAX_ENTRIES]
    if entries:
        with st.expander("Metadata in the file"):
            markup.show(
                markup.facts(
                    (markup.text(name, 80), f'<span class="mono">{markup.text(text, 2_000)}</span>')
                    for name, text in entries
                )
            )


def _source(line: SourceLine, lines: tuple[SourceLine, ...]) -> None:
    place = f"{line.file}, line {line.line:,}" + (f", in {line.function}" if line.function else "")
    code = f'<div class="mono">{markup.text(line.code, 400)}</div>' if line.code else ""
    markup.show(
        markup.section("Source") + f'{code}<div class="quiet">{markup.text(place, 400)}</div>'
    )
    if len(lines) > 1:
        with st.expander("All calls"):
            markup.show(
                markup.facts(
                    (
                        markup.text(f"{each.file}:{each.line}", 400),
                        f'<span class="mono">{markup.text(each.code or each.function, 400)}</span>',
                    )
                    for each in lines
                )
            )
