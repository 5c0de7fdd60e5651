"""The stub of ``builder.ops``: as new as the catalogue, and what type checkers and editors make
of it.
"""

from __future__ import annotations

import ast
import inspect
from typing import assert_type

from loopscope.builder import Graph, Tensor, ops
from loopscope.builder.stub import STUB, stub
from loopscope.ops.catalogue import CATALOGUE


def test_the_stub_is_as_new_as_the_catalogue() -> None:
    assert STUB.read_text(encoding="utf-8") == stub(CATALOGUE), (
        "run `python -m loopscope.builder.stub` and commit what it writes"
    )


def test_each_operation_takes_what_its_function_takes() -> None:
    (methods,) = [
        node
        for node in ast.parse(STUB.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    written = {
        node.name: [one.arg for one in ast.walk(node) if isinstance(one, ast.arg)][1:]
        for node in methods.body
        if isinstance(node, ast.FunctionDef)
    }
    assert sorted(written) == list(ops)
    functions = {name: [*inspect.signature(getattr(ops, name)).parameters] for name in ops}
    assert {name: sorted(names) for name, names in written.items()} == {
        name: sorted(names) for name, names in functions.items()
    }


def test_what_a_type_checker_knows() -> None:
    """The outputs of each call: mypy checks them."""
    x = Graph("g").parameter("x", "f32", [2, 3])
    assert_type(ops.reduce_sum(x, [0], keep_dims=True), Tensor)
    values, indices = assert_type(
        ops.topk(x, 1, axis=1, mode="max", sort="value"), tuple[Tensor, Tensor]
    )
    assert (str(values.shape), str(indices.element_type)) == ("[2,1]", "i32")
    assert_type(ops.split(x, 0, num_splits=2), tuple[Tensor, ...])
    assert_type(ops.concat([x, x], axis=0), Tensor)
