"""Facts about the open model: format, size, producer, opsets, metadata, parameters and MACs."""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.view import model_facts
from loopscope_app.describe.node_costs import bytes_text, model_costs
from loopscope_app.describe.node_index import places
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened


def show(opened: Opened) -> None:
    """Show the facts as a table."""
    markup.show(
        markup.facts(
            (markup.text(name, 120), markup.text(text, 2_000)) for name, text in _rows(opened)
        )
    )


def _rows(opened: Opened) -> Iterator[tuple[str, str]]:
    yield ("sample", opened.sample.name) if opened.sample else ("file", opened.title)
    yield from model_facts(opened.model)
    yield "nodes", f"{len(places(opened.model)):,}"
    result = model_costs(opened.model)
    if result is None:
        return
    if result.total.parameters:
        size = bytes_text(result.total.parameter_bytes)
        yield "parameters", f"{result.total.parameters:,} ({size})"
    if result.total.macs:
        yield "MACs", f"{result.total.macs:,}"
