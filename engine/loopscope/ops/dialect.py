"""Which catalogue holds the operations of a model: OpenVINO's, or ONNX's."""

from __future__ import annotations

from typing import Literal

from loopscope.ops.catalogue import CATALOGUE, Catalogue


def catalogue_for(
    dialect: Literal["openvino", "onnx"], catalogue: Catalogue = CATALOGUE
) -> Catalogue:
    """The catalogue given, for a model of that dialect: for ONNX, ONNX's operations and those
    that a user has added.
    """
    if dialect == "openvino":
        return catalogue
    # Only here: importing the onnx package takes longer than planning most models.
    from loopscope.ops.onnx_catalogue import OnnxCatalogue, with_own

    return catalogue if isinstance(catalogue, OnnxCatalogue) else with_own(catalogue)


def to_build_beside(
    dialect: Literal["openvino", "onnx"], catalogue: Catalogue = CATALOGUE
) -> Catalogue:
    """The catalogue to build further nodes with in a model of that dialect: OpenVINO's
    operations, beside ONNX's where it has those.
    """
    if dialect == "openvino":
        return catalogue
    from loopscope.ops.onnx_catalogue import BESIDE

    return BESIDE


def domain_of(type: str) -> str:
    """The ONNX domain that has an operation of this type; empty when none of those that are
    known has.
    """
    from loopscope.ops.onnx_catalogue import domain_of as known

    return known(type)
