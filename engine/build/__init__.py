"""Models written in Python: graphs, loops, branches and functions, the same Model that the readers make.

from engine import build

graph = build.Graph("halve until small")
x = graph.parameter("x", "f32", [])
(last,) = build.while_loop(lambda v: v > 1, lambda v: v / 2, [x])
model = graph.model(last)
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING

from engine.build import compat as compat  # build.compat.v1 is a name of its own, and no page of the documentation
from engine.build.body import Collected, current_iteration
from engine.build.branches import case, cond, switch_case
from engine.build.control import control_dependencies
from engine.build.function import function
from engine.build.gradient.gradients import gradients
from engine.build.gradient.stopped import stop_gradient
from engine.build.graph_builder import Graph
from engine.build.iterate import foldl, for_loop, map_fn, scan
from engine.build.op_library import load_op_library
from engine.build.operation_handle import GraphOperation
from engine.build.operations import Operations
from engine.build.printing import Print
from engine.build.sparse_values import IndexedSlices, SparseTensor
from engine.build.tensor import Tensor
from engine.build.tensor_array import TensorArray
from engine.build.tensorflow_names import (
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
from engine.build.variable import Variable
from engine.build.while_loop import do_while, while_loop
from engine.ops.catalogue import CATALOGUE

if TYPE_CHECKING:
    from engine.build.named import NamedOperations  # a stub without a module: the functions are made when they are asked for

print = Print  # TensorFlow's second version calls it so

ops = typing.cast("NamedOperations", Operations(CATALOGUE))
"""One function per operation of the catalogue; ``dir(ops)`` lists them, ``help(ops.gather)`` explains one."""

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
