"""Operations: one typed declaration with a kernel per operation and version, and the names needed
to declare more.
"""

from __future__ import annotations

from loopscope.ops.attribute_expression import attribute
from loopscope.ops.attribute_text import KIND_WORDS
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.custom import by_element_type, install
from loopscope.ops.declare import REQUIRED, Attribute, Known, Operation
from loopscope.ops.dialect import catalogue_for, standard_operations
from loopscope.ops.infer import elementwise, same
from loopscope.ops.plain_data import PortNames, operation_data, port_names
from loopscope.ops.quantization import NARROWER
from loopscope.ops.values import NO_VALUE, NOT_KEPT, as_array, is_tensor, shortest

__all__ = [
    "CATALOGUE",
    "KIND_WORDS",
    "NARROWER",
    "NOT_KEPT",
    "NO_VALUE",
    "REQUIRED",
    "Attribute",
    "Known",
    "Operation",
    "PortNames",
    "as_array",
    "attribute",
    "by_element_type",
    "catalogue_for",
    "elementwise",
    "install",
    "is_tensor",
    "operation_data",
    "port_names",
    "same",
    "shortest",
    "standard_operations",
]
