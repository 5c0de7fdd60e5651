"""Selection of the catalogue for a model's operations: OpenVINO's, or ONNX's."""

from __future__ import annotations

from typing import Literal

from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.declare import Operation


def catalogue_for(
    dialect: Literal["openvino", "onnx"], catalogue: Catalogue = CATALOGUE
) -> Catalogue:
    """Return the catalogue for a model of that dialect.

    For ONNX, it has ONNX's operations and those that a user has added to ``catalogue``.
    """
    if dialect == "openvino":
        return catalogue
    # Imported here because the onnx package takes longer to import than most models take to plan.
    from loopscope.ops.onnx_catalogue import OnnxCatalogue, with_own

    return catalogue if isinstance(catalogue, OnnxCatalogue) else with_own(catalogue)


def to_build_beside(
    dialect: Literal["openvino", "onnx"], catalogue: Catalogue = CATALOGUE
) -> Catalogue:
    """Return the catalogue for building further nodes in a model of that dialect.

    It has OpenVINO's operations, and finds ONNX's as well if the model has those.
    """
    if dialect == "openvino":
        return catalogue
    from loopscope.ops.onnx_catalogue import BESIDE

    return BESIDE


def standard_operations() -> tuple[tuple[Operation, str], ...]:
    """Return each version of the operations that the onnx package defines, with its domain."""
    from loopscope.ops.onnx_catalogue import standard_operations as defined

    return defined()


def domain_of(type: str) -> str:
    """Return the ONNX domain that has an operation of this type; empty if no known domain has
    one.
    """
    from loopscope.ops.onnx_catalogue import domain_of as known

    return known(type)
