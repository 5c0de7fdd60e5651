"""``graph.import_model``: insertion of a finished model into a graph under construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loopscope.builder.inline import inline_graph
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError, listed, shorten
from loopscope.ir.model import Model, Signature, expect_model

if TYPE_CHECKING:
    from loopscope.builder.graph_builder import Graph


def insert_model(
    graph: Graph, model: Model, inputs: Mapping[str | int, Any] | Sequence[Any], name: str
) -> tuple[Tensor, ...]:
    """Insert a model in a separate scope and return its outputs; the arguments are those of
    ``Graph.import_model``.
    """
    expect_model(model, "import_model")
    if model.dialect != "openvino":
        raise BuildError(
            f"import_model(): {shorten(model.name)!r} is an ONNX model, but this graph consists "
            "of OpenVINO operations"
        )
    values = dict(_values_by_layer(model, inputs))
    missing = [signature.name for signature in model.inputs if signature.layer not in values]
    if missing:
        raise BuildError(
            f"import_model(): {shorten(model.name)!r} also needs a value for {listed(missing)}"
        )
    scope = (
        "".join(letter for letter in name or model.name if letter.isprintable()).strip("/ ")
        or "imported"
    )
    with graph.scope(scope):
        feeds = {}
        for signature in model.inputs:
            candidates = [signature.element_type] if signature.element_type is not None else []
            tensor = graph.lift(
                values[signature.layer], candidates, f"import_model(): input {signature.name!r}"
            )
            differ = tensor.element_type is not signature.element_type and None not in (
                tensor.element_type,
                signature.element_type,
            )
            if differ or signature.shape.intersect(tensor.shape) is None:
                raise BuildError(
                    f"import_model(): input {signature.name!r} is "
                    f"{signature.element_type}{signature.shape}, got {tensor!r}"
                )
            feeds[signature.layer] = tensor
        return inline_graph(graph, model.graph, feeds, f"import_model() of {shorten(model.name)!r}")


def _values_by_layer(
    model: Model, inputs: Mapping[str | int, Any] | Sequence[Any]
) -> list[tuple[Any, Any]]:
    """Return the value for each Parameter's layer."""
    if isinstance(inputs, Mapping):
        return [(_find_input(model, key).layer, value) for key, value in inputs.items()]
    values = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if len(values) > len(model.inputs):
        raise BuildError(
            f"import_model(): {shorten(model.name)!r} has {len(model.inputs)} inputs, got "
            f"{len(values)}"
        )
    return [
        (signature.layer, value) for signature, value in zip(model.inputs, values, strict=False)
    ]


def _find_input(model: Model, key: object) -> Signature:
    for position, signature in enumerate(model.inputs):
        if key in (signature.name, *signature.names) or (
            key == position and isinstance(key, int) and not isinstance(key, bool)
        ):
            return signature
    known = listed([signature.name for signature in model.inputs]) or "none"
    raise BuildError(
        f"import_model(): {shorten(model.name)!r} does not have an input "
        f"{shorten(repr(key), 60)}; its inputs are {known}"
    )
