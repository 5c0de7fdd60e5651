"""Facts about the open model and about a node: what its file states, costs, weights, and its
operation with each attribute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import streamlit as st

from loopscope.errors import EngineError
from loopscope.ir import Model, Node
from loopscope.ops import KIND_WORDS, REQUIRED, Attribute, Operation
from loopscope.view import (
    SourceLine,
    flat_entries,
    fused_names,
    model_facts,
    own_source_line,
    source_lines,
)
from loopscope_app.describe import tensor_summary
from loopscope_app.describe.costs import bytes_text, cost_rows, model_costs
from loopscope_app.describe.node_index import IndexedNode, places
from loopscope_app.describe.node_ports import NodeWeight, node_weights, weight_summary
from loopscope_app.parts.widgets import markup
from loopscope_app.state.open_model import Opened
from loopscope_app.state.user_session import UserSession

_MAX_ENTRIES = 40


def show_node(session: UserSession, address: str) -> None:
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


def show_model(opened: Opened) -> None:
    """Show the facts as a table."""
    markup.show(
        markup.facts(
            (markup.text(name, 120), markup.text(text, 2_000)) for name, text in _model_rows(opened)
        )
    )


def _model_rows(opened: Opened) -> Iterator[tuple[str, str]]:
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


MAX_WEIGHTS = 8


def show_weights(model: Model, place: IndexedNode) -> None:
    """Show the weights of a node, if it has some."""
    weights = node_weights(model, place)[:MAX_WEIGHTS]
    if not weights:
        return
    markup.show(markup.section("Weights"))
    for number, weight in enumerate(weights):
        words, picture = weight_summary(weight.constant)
        shape = " × ".join(map(str, weight.constant.shape))
        kind = f"{weight.constant.element_type} {shape}"
        with st.container(key=f"weight_{number}", gap=None):
            markup.show(
                f'<b>{markup.text(weight.port, 60)}</b> <span class="quiet">{markup.text(kind)}'
                f'<br>{markup.text(words)}</span><div class="history">{picture}</div>'
            )
            st.download_button(
                f"Download {markup.plain(weight.port, 40)}.npy",
                partial(_weight_file, weight),
                file_name=f"{_file_name(place.node.name)}_{_file_name(weight.port)}.npy",
                key=f"weight_download_{number}",
                on_click="ignore",
                type="tertiary",
            )


def _weight_file(weight: NodeWeight) -> bytes:
    """Return the tensor as a file; if it is not stored, a text with the reason."""
    try:
        return tensor_summary.npy(weight.constant.array())
    except (EngineError, ValueError) as error:
        return f"{error}\n".encode()


def _file_name(words: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", words)[-60:] or "weight"


_MAX_CHARACTERS = 400
"""Largest number of characters of a text about an operation."""


def show_operation(node: Node, operation: Operation | None) -> None:
    if operation is None:
        markup.show(
            (
                f"{markup.text(node.type)} of {markup.text(node.opset or 'an unnamed opset')} is "
                "unknown: it can be drawn, not run."
            ),
            "quiet",
        )
    elif operation.summary:
        description = operation.description if operation.doc else operation.summary
        markup.show(markup.text(description.replace("``", ""), _MAX_CHARACTERS))
    known = {attribute.name: attribute for attribute in operation.attributes} if operation else {}
    rows = [
        (markup.text(name), _attribute_in_file(value, known.get(name)))
        for name, value in node.attributes.items()
    ]
    rows += [
        (markup.text(name), _attribute_default(attribute))
        for name, attribute in known.items()
        if name not in node.attributes and attribute.default is not REQUIRED
    ]
    markup.show(markup.facts(rows) if rows else "It has no attributes.", "" if rows else "quiet")
    for title, docs in (
        (("Inputs", operation.input_docs), ("Outputs", operation.output_docs)) if operation else ()
    ):
        if docs:
            told_of = [
                (markup.text(name), markup.text(doc, _MAX_CHARACTERS)) for name, doc in docs.items()
            ]
            markup.show(markup.section(title) + markup.facts(told_of))
    markup.show(markup.section("In the file") + markup.facts(_file_rows(node, operation)))


def _attribute_in_file(value: object, attribute: Attribute | None) -> str:
    text = markup.text(value, 400) or "empty"
    return (
        f'<span class="mono">{text}</span><span '
        f'class="why">{markup.text(_meaning(attribute), _MAX_CHARACTERS)}</span>'
    )


def _attribute_default(attribute: Attribute) -> str:
    default = attribute.default
    text = (
        ", ".join(map(str, default))
        if isinstance(default, tuple)
        else "none"
        if default is None
        else str(default)
    )
    words = f"not in the file, so the default; {_meaning(attribute)}"
    return (
        f'<span class="mono quiet">{markup.text(text or "empty")}</span><span '
        f'class="why">{markup.text(words, _MAX_CHARACTERS)}</span>'
    )


def _meaning(attribute: Attribute | None) -> str:
    if attribute is None:
        return "not an attribute that the operation knows"
    words = (
        f"one of {', '.join(map(str, attribute.allowed))}"
        if attribute.allowed
        else KIND_WORDS[attribute.kind]
    )
    words += f", at least {attribute.least:g}" if attribute.least is not None else ""
    words += f", at least {attribute.fewest} of them" if attribute.fewest else ""
    return f"{attribute.doc.strip().rstrip('.')}; {words}" if attribute.doc else words


_PAGES = (
    "https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/"
)
_ONNX_PAGES = "https://onnx.ai/onnx/operators/"
_MICROSOFT_PAGE = "https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md"


def _specification_link(operation: Operation) -> str:
    """Return a link to the operation's page of the specification. Only pages of a known form become
    links.
    """
    name = markup.text(operation.page)
    if re.fullmatch(r"onnx_[a-z]*_[A-Za-z0-9]+", operation.page):
        return (
            f'<a class="mono" href="{_ONNX_PAGES}{name}.html" target="_blank" '
            f'rel="noopener">{name}</a>'
        )
    if re.fullmatch(r"com\.microsoft\.[A-Za-z0-9]+", operation.page):
        return (
            f'<a class="mono" href="{_MICROSOFT_PAGE}#{name}" target="_blank" '
            f'rel="noopener">{name}</a>'
        )
    if not re.fullmatch(r"[a-z0-9_-]+/[A-Za-z0-9_-]+", operation.page):
        return f'<span class="mono">{name}</span>'
    return f'<a class="mono" href="{_PAGES}{name}.html" target="_blank" rel="noopener">{name}</a>'


def _file_rows(node: Node, operation: Operation | None) -> list[tuple[str, str]]:
    rows = [("type", markup.text(f"{node.type} {node.opset}")), ("layer", markup.text(node.id))]
    if node.line:
        rows.append(("line", f"{node.line:,}"))
    if operation and operation.page:
        rows.append(("specification", _specification_link(operation)))
    return rows
