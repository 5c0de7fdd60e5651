"""Variables, the order of side effects, operations by name, and models inside graphs.

Seed page "TensorFlow in other languages": "ops that keep state ... a class whose constructor makes
the op, and whose methods add operations that work on the state", "TF_AddControlInput: other
operations finish before this one runs", "iterate over the operations of a graph, look an operation
up by its name", "TF_GraphImportGraphDef".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.errors import BuildError, InputError
from tests.engine.builder.both import run_both


def counter() -> tuple[builder.Graph, builder.Variable]:
    graph = builder.Graph("counter")
    with graph:
        return graph, builder.Variable(np.float32(10), "count")


# -- variables
# --------------------------------------------------------------------------------------------------------


def test_a_variable_keeps_its_value_from_run_to_run() -> None:
    graph, count = counter()
    session = loopscope.Session(graph.model({"before": count.read(), "after": count.assign_add(2)}))
    assert [[one.item() for one in session.run().outputs] for _ in range(3)] == [
        [10, 12],
        [12, 14],
        [14, 16],
    ]
    assert session.variables["count"] == 16
    session.reset()
    assert session.run().named["before"] == 10


def test_the_graph_of_the_architecture_page() -> None:
    """Figure 3: "weights (w) are applied to a feature vector (x), a bias term (b) is added, and
    the result is saved in a variable (s)".
    """
    graph = builder.Graph("figure 3")
    x = graph.parameter("x", "f32", [3])
    with graph:
        w, b, s = (
            builder.Variable([1.0, 2.0, 3.0], "w"),
            builder.Variable(0.5, "b"),
            builder.Variable(0.0, "s"),
        )
    saved = s.assign(ops.matmul(w.read(), x) + b.read())
    session = builder.compat.v1.Session(graph)
    assert [session.run(saved, {x: values}) for values in ([1, 1, 1], [0, 0, 2])] == [6.5, 6.5]
    assert session.variables["s"] == 6.5
    assert session.run(w.read()).tolist() == [1, 2, 3]


def test_reads_and_assignments_go_in_the_order_of_the_calls() -> None:
    graph, count = counter()
    seen = [
        count.read(),
        count.assign(3),
        count.read(),
        count.assign_add(4),
        count.assign_sub(1),
        count.read(),
        count.assign(50.0),
    ]
    session = loopscope.Session(graph.model(seen))
    assert [one.item() for one in session.run().outputs] == [10, 3, 3, 7, 6, 6, 50]
    assert [one.item() for one in session.run().outputs] == [50, 3, 3, 7, 6, 6, 50]


def test_an_assignment_alone_is_a_model() -> None:
    graph, count = counter()
    session = loopscope.Session(graph.model(count.assign(1)))
    assert session.run().outputs[0] == 1
    assert session.variables == {"count": 1}


def test_a_loop_assigns_and_what_is_read_after_it_sees_that() -> None:
    graph, count = counter()
    before = count.read()
    (last,) = builder.while_loop(
        lambda i: i < 3,
        lambda i: ops.convert(count.assign_add(1), destination_type="i64") * 0 + i + 1,
        [0],
    )
    session = loopscope.Session(graph.model([before, last, count.read()]))
    assert [one.item() for one in session.run().outputs] == [10, 3, 13]
    assert [one.item() for one in session.run().outputs] == [13, 3, 16]


def test_two_variables_of_one_name_are_two() -> None:
    graph = builder.Graph("names")
    with graph:
        one, other = builder.Variable([1, 2], "v"), builder.Variable(True, "v")
    assert (one.name, other.name, repr(one)) == ("v", "v_1", "<Variable 'v' i64[2]>")
    model = graph.model([one.read(), other.read()])
    assert [value.tolist() for value in loopscope.run(model).outputs] == [[1, 2], True]


def test_what_a_variable_cannot_hold_is_refused() -> None:
    graph, count = counter()
    wide = graph.parameter("wide", "f32", [2])
    with pytest.raises(
        BuildError,
        match=r"<Variable 'count' f32\[\]>.assign_add\(\): the value would be .*f32\[2\]",
    ):
        count.assign_add(wide)
    with pytest.raises(BuildError, match="assign"):
        count.assign(graph.constant(1, "i32"))
    with graph, pytest.raises(BuildError, match=r"initial_value is .*, expected f16"):
        builder.Variable(count.read(), "half", "f16")


def test_variables_are_saved_and_loaded(tmp_path: Path) -> None:
    graph, count = counter()
    with graph:
        half = builder.Variable([1.5, 2.5], "half", "bf16")
    model = graph.model([count.assign_add(1), half.assign_add(half.read())])
    session = loopscope.Session(model)
    session.run()
    session.run()
    session.save(tmp_path / "state.npz")
    again = loopscope.Session(model)
    again.load(tmp_path / "state.npz")
    assert {name: value.tolist() for name, value in again.variables.items()} == {
        "count": 12,
        "half": [6, 10],
    }
    assert str(again.variables["half"].dtype) == "bfloat16"
    assert [one.tolist() for one in again.run().outputs] == [13, [12, 20]]
    with np.load(tmp_path / "state.npz") as stored:
        assert stored["count"] == 12


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"other": 1}, "there is no variable 'other' in the model: there are 'count'"),
        ({"count": [1.0, 2.0]}, "variable 'count': expected shape"),
        ({"count": "many"}, "variable 'count' takes f32"),
    ],
)
def test_values_that_no_variable_takes_are_refused(values: dict[str, Any], words: str) -> None:
    graph, count = counter()
    session = loopscope.Session(graph.model(count.read()))
    with pytest.raises(InputError, match=words):
        session.put(values)
    session.put({"count": 4})
    assert session.run().outputs[0] == 4


def test_files_that_hold_no_variables_are_refused(tmp_path: Path) -> None:
    graph, count = counter()
    session = loopscope.Session(graph.model(count.read()))
    (tmp_path / "text.npz").write_text("no")
    with pytest.raises(InputError, match=r"is not an .npz file of plain arrays"):
        session.load(tmp_path / "text.npz")
    with pytest.raises(InputError, match="No such file"):
        session.load(tmp_path / "nothing.npz")


# -- order
# ------------------------------------------------------------------------------------------------------------


def test_control_dependencies_make_what_is_waited_for_run_first() -> None:
    graph, count = counter()
    x = graph.parameter("x", "f32", [])
    with builder.control_dependencies([count.assign_add(1)]):
        y = x * 2
    session = builder.compat.v1.Session(graph)
    assert [session.run(y, {x: 4}) for _ in range(3)] == [8, 8, 8]
    assert session.variables["count"] == 13
    assert session.run(x * 2, {x: 1}) == 2
    assert session.variables["count"] == 13  # nothing that was asked for has waited for it


def test_a_constant_waits_as_every_operation_does() -> None:
    """TF_AddControlInput: a Const may have control inputs too; numbers in an expression are no
    operations of the caller's.
    """
    graph, count = counter()
    with graph, builder.control_dependencies([count.assign_add(1)]):
        three = builder.constant(3.0)
        filled = builder.constant(1.0, shape=[2])
    session = builder.compat.v1.Session(graph)
    assert session.run(three) == 3
    assert session.run(filled).tolist() == [1, 1]
    assert session.variables["count"] == 12


def test_what_bodies_wait_for() -> None:
    """Control dependencies inside a body, from outside into a body, and around a loop:
    TensorFlow 2.21 counts 3, and 1 and 3.
    """
    graph, count = counter()

    def body(i: Any) -> Any:
        with builder.control_dependencies([count.assign_add(1)]):
            return i + 1

    (inside,) = builder.while_loop(lambda i: i < 3, body, [graph.constant(0)])
    session = builder.compat.v1.Session(graph)
    assert session.run(inside) == 3
    assert session.variables == {"count": 13}

    graph, count = counter()
    once = count.assign_add(100)

    def waits_outside(i: Any) -> Any:
        with builder.control_dependencies([once]):
            return i + 1

    (last,) = builder.while_loop(lambda i: i < 3, waits_outside, [graph.constant(0)])
    session = builder.compat.v1.Session(graph)
    assert session.run(last) == 3
    assert session.variables == {"count": 110}

    graph, count = counter()
    seen: list[builder.Tensor] = []

    def assigns(i: Any) -> Any:
        seen.append(count.assign_add(1))
        return i + 1

    (last,) = builder.while_loop(lambda i: i < 3, assigns, [graph.constant(0)])
    words = r"belongs to the body of while_loop\(\) 'while' and cannot be used in graph 'counter'"
    with pytest.raises(BuildError, match=words), builder.control_dependencies(seen):
        pass


def test_prints_are_put_in_order() -> None:
    graph = builder.Graph("order")
    x = graph.parameter("x", "f32", [])
    late = builder.Print(x, message="first ")
    with builder.control_dependencies([late]):
        other = builder.Print(x + 1, message="second ")
        with builder.control_dependencies([other.graph[other.name]]):
            third = builder.Print(x, message="third ")
        with builder.control_dependencies(None):
            free = x * 3
    lines = loopscope.run(graph.model([third, free]), [1]).printed
    assert [line.text for line in lines] == ["first [1.0]", "second [2.0]", "third [1.0]"]
    assert graph[free.name].inputs[0] is x
    assert graph[third.name].inputs[0] is not x


def test_a_loop_waits_too() -> None:
    graph, count = counter()
    with builder.control_dependencies([count.assign(2.0)]):
        (last,) = builder.while_loop(lambda i: i < 3, lambda i: i + 1, [graph.constant(0)])
    assert builder.compat.v1.Session(graph).run(last) == 3
    session = builder.compat.v1.Session(graph)
    session.run(last)
    assert session.variables == {"count": 2}


@pytest.mark.parametrize("wrong", [[3], ["Add"]])
def test_only_tensors_and_operations_are_waited_for(wrong: list[Any]) -> None:
    builder.Graph("wrong")
    with (
        pytest.raises(BuildError, match="expected tensors or operations"),
        builder.control_dependencies(wrong),
    ):
        pass


# -- operations of a graph
# --------------------------------------------------------------------------------------------


def test_operations_are_found_by_name_and_gone_through() -> None:
    graph = builder.Graph("operations")
    x = graph.parameter("x", "f32", [4])
    first, second = ops.split(x, 0, num_splits=2, name="halves")
    total = ops.add(first, second, name="total")
    assert [(one.name, one.type) for one in graph] == [
        ("x", "Parameter"),
        ("Const", "Const"),
        ("halves", "Split"),
        ("total", "Add"),
    ]
    assert len(graph) == 4
    assert all(
        one is other for one, other in zip(graph["halves"].outputs, (first, second), strict=True)
    )
    assert graph["total"].inputs[1] is second
    assert graph["total"].outputs[0] is total
    assert graph["halves"].attributes["num_splits"] == "2"
    assert "total" in graph
    assert "sum" not in graph
    assert repr(graph["total"]) == "<Add 'total'>"
    with pytest.raises(
        BuildError,
        match="graph 'operations' does not have an operation 'totl': did you mean 'total'",
    ):
        graph["totl"]


# -- models in graphs
# -------------------------------------------------------------------------------------------------


def power() -> loopscope.Model:
    """base to the power of n, by a loop."""
    graph = builder.Graph("power")
    base, n = graph.parameter("base", "f32", [None]), graph.parameter("n", "i64", [])
    _, result = builder.while_loop(
        lambda i, value: i < n,
        lambda i, value: (i + 1, value * base),
        (0, base * 0 + 1),
        (None, [None]),
    )
    return graph.model({"power": result, "n": n})


def test_a_model_becomes_a_part_of_a_graph(tmp_path: Path) -> None:
    loopscope.write_model(power(), tmp_path / "power.xml")
    graph = builder.Graph("twice")
    x = graph.parameter("x", "f32", [2])
    for model in (power(), loopscope.read_model(tmp_path / "power.xml")):
        squared, _ = graph.import_model(model, {"base": x, "n": 2})
        cubed, three = graph.import_model(model, [squared + 1, 3], name="cube")
        assert squared.rank == 1
        result = run_both(graph.model([cubed, three]), [np.array([1, 2], np.float32)])
        assert [one.tolist() for one in result.outputs] == [[8, 125], 3]
    names = {operation.name.partition("/")[0] for operation in graph}
    assert {"power", "power_1", "cube", "cube_1", "x"} <= names


IMPORTS: dict[str, tuple[Any, str]] = {
    "missing": ({"base": [1.0]}, "'power' also needs a value for 'n'"),
    "unknown": (
        {"base": [1.0], "m": 2},
        "'power' does not have an input 'm'; its inputs are 'base', 'n'",
    ),
    "too many": ([[1.0], 2, 3], "'power' has 2 inputs, got 3"),
    "type": (
        {"base": np.array([True]), "n": 2},
        r"input 'base' is f32\[\?\], got .*boolean",
    ),
    "shape": ({"base": [[1.0]], "n": 2}, r"input 'base' is f32\[\?\], got .*\[1,1\]"),
}


@pytest.mark.parametrize("case", IMPORTS)
def test_inputs_that_do_not_fit_a_model_are_refused(case: str) -> None:
    inputs, words = IMPORTS[case]
    graph = builder.Graph("refused")
    with pytest.raises(BuildError, match=words):
        graph.import_model(power(), inputs)
    assert len(graph) == 0
