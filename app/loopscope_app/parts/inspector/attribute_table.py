"""An operation and its attributes: the sentence of the catalogue, and each attribute with value,
type and default.
"""

from __future__ import annotations

import re

from loopscope.ir import Node
from loopscope.ops import KIND_WORDS, REQUIRED, Attribute, Operation
from loopscope_app.parts.widgets import markup

_MAX_CHARACTERS = 400
"""Largest number of characters of a text about an operation."""


def show(node: Node, operation: Operation | None) -> None:
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
        (markup.text(name), _given(value, known.get(name)))
        for name, value in node.attributes.items()
    ]
    rows += [
        (markup.text(name), _default(attribute))
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
    markup.show(markup.section("In the file") + markup.facts(_origin(node, operation)))


def _given(value: object, attribute: Attribute | None) -> str:
    text = markup.text(value, 400) or "empty"
    return (
        f'<span class="mono">{text}</span><span '
        f'class="why">{markup.text(_meaning(attribute), _MAX_CHARACTERS)}</span>'
    )


def _default(attribute: Attribute) -> str:
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


def _page(operation: Operation) -> str:
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


def _origin(node: Node, operation: Operation | None) -> list[tuple[str, str]]:
    rows = [("type", markup.text(f"{node.type} {node.opset}")), ("layer", markup.text(node.id))]
    if node.line:
        rows.append(("line", f"{node.line:,}"))
    if operation and operation.page:
        rows.append(("specification", _page(operation)))
    return rows
