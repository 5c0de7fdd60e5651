"""Families of operations: the one visual language of colours for kinds of operations, safe for the colour-blind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from engine.ops.catalogue import CATALOGUE

Family = Literal["port", "constant", "math", "logic", "matrix", "activation", "movement", "shape", "sequence", "region", "other"]

FAMILIES: Mapping[Family, str] = MappingProxyType(
    {
        "port": "inputs, outputs",
        "math": "arithmetic",
        "logic": "comparison, logic",
        "matrix": "matrix, convolution",
        "activation": "activation, norm",
        "movement": "data movement",
        "shape": "shape, type",
        "sequence": "recurrent",
        "region": "control flow",
        "constant": "constant",
        "other": "other",
    }
)
"""In the order of the legend, with the words that it shows."""

_FAMILY_OF: Mapping[str, Family] = MappingProxyType(
    {
        "activation": "activation",
        "arithmetic": "math",
        "bitwise": "logic",
        "comparison": "logic",
        "condition": "movement",
        "convolution": "matrix",
        "detection": "other",
        "generation": "constant",
        "image": "other",
        "infrastructure": "port",
        "logical": "logic",
        "matrix": "matrix",
        "movement": "movement",
        "normalization": "activation",
        "pooling": "matrix",
        "quantization": "shape",
        "reduction": "math",
        "sequence": "sequence",
        "shape": "shape",
        "signals": "other",
        "sort": "movement",
        "sparse": "movement",
        "string": "other",
        "type": "shape",
    }
)
_FIXED: Mapping[str, Family] = MappingProxyType(
    {
        "Parameter": "port",
        "Result": "port",
        "Const": "constant",
        "Constant": "constant",
        "ReadValue": "port",
        "Assign": "port",
        "Loop": "region",
        "If": "region",
        "TensorIterator": "region",
        "Scan": "region",
        "SequenceMap": "region",
        "Select": "logic",
        "LSTMCell": "sequence",
        "GRUCell": "sequence",
        "RNNCell": "sequence",
        "Where": "logic",
        "Gemm": "matrix",
        "Conv": "matrix",
        "Identity": "movement",
        "Cast": "shape",
    }
)


@dataclass(frozen=True, slots=True)
class Colours:
    """Colours of a family in a standalone picture on white."""

    line: str
    fill: str


STANDALONE: Mapping[Family, Colours] = MappingProxyType(
    {
        "port": Colours("#64748b", "#f1f5f9"),
        "constant": Colours("#8a8f98", "#f7f7f8"),
        "math": Colours("#0072b2", "#e8f3fa"),
        "logic": Colours("#b26a00", "#fdf3e2"),
        "matrix": Colours("#7a3e9d", "#f5edf9"),
        "activation": Colours("#00795c", "#e5f5f0"),
        "movement": Colours("#1f8aa8", "#e6f5f9"),
        "shape": Colours("#7b7f3a", "#f5f6e6"),
        "sequence": Colours("#b0457b", "#fbecf3"),
        "region": Colours("#5b4bd6", "#efedfc"),
        "other": Colours("#6b7280", "#f3f4f6"),
    }
)
"""Hues after Okabe and Ito; lightness differs too, so that they stay apart in grey."""


@lru_cache(maxsize=4096)
def family_of(type: str) -> Family:
    """The family of an operation type; ``other`` when the catalogue does not hold it."""
    if type in _FIXED:
        return _FIXED[type]
    versions = CATALOGUE.versions(type)
    return _FAMILY_OF.get(CATALOGUE.category_of(versions[-1]) if versions else _category_elsewhere(type), "other")


def _category_elsewhere(type: str) -> str:
    # Only here: it imports the onnx package, which a model of OpenVINO's does not need.
    from engine.ops.microsoft.catalogue import CATEGORY

    return CATEGORY.get(type, "")
