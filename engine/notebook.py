"""What a notebook shows of a model: its graph, or a few words and why there is no picture."""

from __future__ import annotations

from collections.abc import Mapping

from engine.ir.model import Model, Signature


def bundle(model: Model) -> Mapping[str, str]:
    """By media type: always text, and an SVG picture where the machine has the ``dot`` program."""
    # Only here: who never shows a model need not wait for what draws it.
    from engine.view.build import graph_view
    from engine.view.folding import default_folding
    from engine.view.render import NoPicture, render

    try:
        picture = render(graph_view(model, default_folding(model)), "svg").decode()
    except NoPicture as problem:
        return {"text/plain": f"{summary(model)}\n  no picture: {problem}"}
    # As wide as the cell at most.
    return {"text/plain": summary(model), "image/svg+xml": picture.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)}


def summary(model: Model) -> str:
    """Name, inputs and outputs, a line each."""
    lines = [f"Model {model.name!r} with {len(model.graph.nodes)} nodes"]
    lines += [f"  input  {_signature(one)}" for one in model.inputs]
    lines += [f"  output {_signature(one)}" for one in model.outputs]
    return "\n".join(lines)


def _signature(one: Signature) -> str:
    return f"{next(iter(one.names), one.name)}: {one.element_type or '?'}{one.shape}"
