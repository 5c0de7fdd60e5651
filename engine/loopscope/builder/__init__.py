"""Construction of models in Python: graphs, loops, branches and functions.

The result is the same Model class that the readers return.

from loopscope import builder

graph = builder.Graph("halve until small")
x = graph.parameter("x", "f32", [])
(last,) = builder.while_loop(lambda v: v > 1, lambda v: v / 2, [x])
model = graph.model(last)
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING

from loopscope.builder import (
    compat as compat,  # builder.compat.v1 is a separate name without a page in the documentation
)
from loopscope.builder.body import Collected, current_iteration
from loopscope.builder.branches import case, cond, function, switch_case
from loopscope.builder.gradient.gradients import gradients, stop_gradient
from loopscope.builder.graph_builder import Graph
from loopscope.builder.iterate import foldl, for_loop, map_fn, scan
from loopscope.builder.operations import Operations, load_op_library
from loopscope.builder.stateful import Print, Variable, control_dependencies
from loopscope.builder.tensor import GraphOperation, Tensor
from loopscope.builder.tensor_array import TensorArray
from loopscope.builder.tensorflow_names import (
    IndexedSlices,
    SparseTensor,
    TensorShape,
    add,
    cast,
    concat,
    constant,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    multiply,
    not_equal,
    ones,
    subtract,
    zeros,
)
from loopscope.builder.while_loop import do_while, while_loop
from loopscope.ops.catalogue import CATALOGUE

if TYPE_CHECKING:
    from loopscope.builder.named import (
        NamedOperations,  # a stub without a module
    )

print = Print  # the name in TensorFlow 2

ops = typing.cast("NamedOperations", Operations(CATALOGUE))
"""Functions for the operations of the catalogue. ``dir(ops)`` lists them, and ``help(ops.gather)``
explains one.
"""

__all__ = [
    "Collected",
    "Graph",
    "GraphOperation",
    "IndexedSlices",
    "Operations",
    "Print",
    "SparseTensor",
    "Tensor",
    "TensorArray",
    "TensorShape",
    "Variable",
    "add",
    "case",
    "cast",
    "concat",
    "cond",
    "constant",
    "control_dependencies",
    "current_iteration",
    "do_while",
    "equal",
    "foldl",
    "for_loop",
    "function",
    "gradients",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "load_op_library",
    "logical_and",
    "logical_not",
    "logical_or",
    "map_fn",
    "multiply",
    "not_equal",
    "ones",
    "ops",
    "print",
    "scan",
    "stop_gradient",
    "subtract",
    "switch_case",
    "while_loop",
    "zeros",
]
