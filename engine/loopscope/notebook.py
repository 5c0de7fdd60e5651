"""Widget of a model or a run for a notebook cell, and the summary of a model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loopscope.debug.debugger import Debugger
from loopscope.errors import InputError
from loopscope.ir.model import Model, Signature
from loopscope.plugins import mime_bundle

if TYPE_CHECKING:
    from loopscope.view.node_data import Given, NodeData


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Widget:
    """A model or a run as the last value of a cell, coloured by the data of a file."""

    shown: Model | Debugger
    node_data: NodeData | None

    def __repr__(self) -> str:
        return f"<the widget of {self.shown!r}>"

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, Any]:
        return mime_bundle(self)


def widget(shown: Model | Debugger, *, overlay: Given | None = None) -> Widget:
    """Return the widget of a model or a run for a notebook cell, coloured by data about its nodes.

    ``overlay`` maps addresses or names to numbers or texts, or is the path of a JSON file with such
    a mapping, as for ``loopscope --overlay``. An address with iteration numbers
    (``main/loop[2]/body/add``) holds in that iteration only. Widgets need ``pip install
    'loopscope[notebook]'``; a still page has no colours.

    Warns about keys that name no node. Raises ``ReadError`` if no key names one, ``InputError`` if
    ``shown`` is neither a model nor a Debugger.
    """
    if not isinstance(shown, Model | Debugger):
        raise InputError(
            f"loopscope.widget: expected a model or a Debugger, got {type(shown).__name__}"
        )
    if overlay is None:
        return Widget(shown, None)
    # Imported here because drawing is slow to import.
    from loopscope.view.node_data import given_node_data

    data = given_node_data(overlay, shown if isinstance(shown, Model) else shown.model)
    if words := data.unmatched_words("the overlay"):
        warnings.warn(words, stacklevel=2)
    return Widget(shown, data)


def summary(model: Model) -> str:
    """Return the name, the inputs and the outputs of a model, one per line."""
    lines = [f"Model {model.name!r} with {len(model.graph.nodes)} nodes"]
    lines += [f"  input  {_signature(signature)}" for signature in model.inputs]
    lines += [f"  output {_signature(signature)}" for signature in model.outputs]
    return "\n".join(lines)


def _signature(signature: Signature) -> str:
    name = next(iter(signature.names), signature.name)
    return f"{name}: {signature.element_type or '?'}{signature.shape}"
