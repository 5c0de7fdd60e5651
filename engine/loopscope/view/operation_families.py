"""Families of operations, which a picture distinguishes by colour."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from loopscope.ops.catalogue import CATALOGUE

Family = Literal[
    "port",
    "constant",
    "math",
    "logic",
    "matrix",
    "activation",
    "movement",
    "shape",
    "sequence",
    "region",
    "other",
]

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
"""Words of the legend by family, in order."""

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


@lru_cache(maxsize=4096)
def family_of(type: str) -> Family:
    """Return the family of an operation type; ``other`` if no catalogue contains the type."""
    if type in _FIXED:
        return _FIXED[type]
    versions = CATALOGUE.versions(type)
    return _FAMILY_OF.get(
        CATALOGUE.category_of(versions[-1]) if versions else _category_elsewhere(type), "other"
    )


def _category_elsewhere(type: str) -> str:
    # Imported here because it imports the onnx package, which OpenVINO models do not need.
    from loopscope.ops.microsoft.catalogue import CATEGORY

    return CATEGORY.get(type, "")
