"""The Model: element types, shapes, graphs, bodies, port maps and addresses.

This package contains neither file formats nor arithmetic.
"""

from __future__ import annotations

from loopscope.ir.address import ROOT, Address, PlacedGraph, decode, graphs, labels
from loopscope.ir.address_search import addresses_ending, full_address
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import (
    ANY_TYPE,
    FLOATS,
    INDEX_TYPES,
    INTEGERS,
    NUMERIC,
    REAL_FLOATS,
    SIGNED,
    UNSIGNED,
    ElementType,
    is_whole,
    type_name,
)
from loopscope.ir.model import (
    IF,
    LOOP,
    SCAN,
    SEQUENCE_MAP,
    TENSOR_ITERATOR,
    Body,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OutputRef,
    Port,
    Signature,
)
from loopscope.ir.readable import (
    iteration_range,
    iteration_words,
    readable,
    readable_around,
    readable_steps,
    significant,
)
from loopscope.ir.recorded_rows import is_recorded, is_trace, recorded_values
from loopscope.ir.rt_info import opened_operator
from loopscope.ir.shape import PartialShape, is_of_an_array

__all__ = [
    "ANY_TYPE",
    "FLOATS",
    "IF",
    "INDEX_TYPES",
    "INTEGERS",
    "LOOP",
    "NUMERIC",
    "REAL_FLOATS",
    "ROOT",
    "SCAN",
    "SEQUENCE_MAP",
    "SIGNED",
    "TENSOR_ITERATOR",
    "UNSIGNED",
    "Address",
    "Body",
    "Constant",
    "ElementType",
    "LayerId",
    "Model",
    "ModelGraph",
    "Node",
    "OutputRef",
    "PartialShape",
    "PlacedGraph",
    "Port",
    "Signature",
    "addresses_ending",
    "decode",
    "full_address",
    "graphs",
    "is_of_an_array",
    "is_recorded",
    "is_trace",
    "is_whole",
    "iteration_range",
    "iteration_words",
    "labels",
    "opened_operator",
    "readable",
    "readable_around",
    "readable_steps",
    "recorded_values",
    "significant",
    "type_name",
]
