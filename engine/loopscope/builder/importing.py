"""``graph.import_model``: a finished model as a part of the graph that is being built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loopscope.builder.inline import inlined
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError, listed, shorten
from loopscope.ir.model import Model, Signature, expect_model

if TYPE_CHECKING:
    from loopscope.builder.graph_builder import Graph


def imported(
    graph: Graph, model: Model, inputs: Mapping[str | int, Any] | Sequence[Any], name: str
) -> tuple[Tensor, ...]:
    """The outputs of the model, in a scope of their own; ``Graph.import_model`` says what the
    arguments are.
    """
    expect_model(model, "import_model")
    if model.dialect != "openvino":
        raise BuildError(
            f"import_model(): {shorten(model.name)!r} is an ONNX model, and this graph is of OpenVINO's operations"
        )
    given = dict(_named(model, inputs))
    missing = [one.name for one in model.inputs if one.layer not in given]
    if missing:
        raise BuildError(
            f"import_model(): nothing is given for {listed(missing)} of {shorten(model.name)!r}"
        )
    scope = (
        "".join(letter for letter in name or model.name if letter.isprintable()).strip("/ ")
        or "imported"
    )
    with graph.scope(scope):
        feeds = {}
        for one in model.inputs:
            wanted = [one.element_type] if one.element_type is not None else []
            tensor = graph.lift(given[one.layer], wanted, f"import_model(): input {one.name!r}")
            differ = tensor.element_type is not one.element_type and None not in (
                tensor.element_type,
                one.element_type,
            )
            if differ or one.shape.intersect(tensor.shape) is None:
                raise BuildError(
                    f"import_model(): input {one.name!r} is {one.element_type}{one.shape}, and is given {tensor!r}"
                )
            feeds[one.layer] = tensor
        return inlined(graph, model.graph, feeds, f"import_model() of {shorten(model.name)!r}")


def _named(model: Model, inputs: Mapping[str | int, Any] | Sequence[Any]) -> list[tuple[Any, Any]]:
    """What is given for each Parameter's layer."""
    if isinstance(inputs, Mapping):
        return [(_called(model, key).layer, value) for key, value in inputs.items()]
    values = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if len(values) > len(model.inputs):
        raise BuildError(
            f"import_model(): {len(values)} inputs are given, and {shorten(model.name)!r} has {len(model.inputs)}"
        )
    return [(one.layer, value) for one, value in zip(model.inputs, values, strict=False)]


def _called(model: Model, key: object) -> Signature:
    for position, one in enumerate(model.inputs):
        if key in (one.name, *one.names) or (
            key == position and isinstance(key, int) and not isinstance(key, bool)
        ):
            return one
    known = listed([one.name for one in model.inputs]) or "none"
    raise BuildError(
        f"import_model(): {shorten(model.name)!r} has no input {shorten(repr(key), 60)}: there are {known}"
    )
