"""The four examples of the seed page tf.while_loop, as they stand there but for ``tf.``, which
is ``build.`` here; and what they print.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.ir.address import nodes
from loopscope.ir.shape import PartialShape
from tests.engine.builder.both import run_both

PAGE = Path(__file__).with_name("seed_while_loop.txt")
"""The code of the page's examples, word for word, with a line of dashes between two."""


def example(number: int, **changed: str) -> dict[str, Any]:
    """The names that an example leaves behind, run as the page has it but for the module's name."""
    code = PAGE.read_text(encoding="utf-8").split("----\n")[number - 1]
    code = re.sub(
        r"\btf\.",
        "builder.",
        code.replace("import tensorflow as tf", "from loopscope import builder"),
    )
    for old, new in changed.items():
        assert f"{old} = " in code
        code = re.sub(rf"^{old} = .*$", f"{old} = {new}", code, flags=re.MULTILINE)
    names: dict[str, Any] = {"builder": builder}
    with builder.Graph(f"example {number}"):
        exec(compile(code, PAGE.name, "exec"), names)
    return names


def values(result: Any) -> list[Any]:
    outputs = [leaf.value for leaf in builder.structure.leaves(result)]
    return [one.tolist() for one in run_both(outputs[0].graph.model(outputs)).outputs]


def test_example_1_counts_to_ten() -> None:
    names = example(1)
    assert isinstance(names["r"], list)
    assert values(names["r"]) == [10]


def test_example_2_has_nesting_and_a_named_tuple() -> None:
    """TensorFlow: (10, Pair(j=32, k=64))."""
    final = example(2)["ijk_final"]
    assert type(final) is tuple
    assert final[1]._fields == ("j", "k")
    assert values(final) == [10, 32, 64]


def test_example_3_has_shape_invariants() -> None:
    """TensorFlow: the shape (2048, 2); the example gives it no name, so that it is taken from
    the last operation of the graph.
    """
    names = example(3)
    graph = names["m0"].graph
    model = graph.model(names["i0"])
    (loop,) = [node for _, node in nodes(model) if node.type == "Loop"]
    assert str(loop.outputs[1].shape) == "[?,2]"
    found = loopscope.run(model, fetches=["while:0", "while:1"])
    assert found.outputs[0] == 10
    np.testing.assert_array_equal(found.outputs[1], np.ones((2048, 2)))


def test_example_4_prints_what_it_computes(capsys: pytest.CaptureFixture[str]) -> None:
    """ "prints [0] ... [9999]"; as in TensorFlow only the counter's lines are there when i is
    asked for, and both when out is.
    """
    example(4, n="20")
    out, err = capsys.readouterr()
    assert out == "20\n(20,)\n"
    counted = [f"[{i}]" for i in range(20)]
    both = [line for i in range(20) for line in (f"[{i}]", f"x:[{i}]")]
    assert err.splitlines() == counted + both


def test_the_page_says_what_the_examples_say() -> None:
    """The code that runs here is the page's: it names TensorFlow, and nothing of ours."""
    code = PAGE.read_text(encoding="utf-8")
    assert code.count("----\n") == 3
    assert "builder" not in code
    assert code.count("tf.while_loop(") == 4


def printing() -> loopscope.Model:
    graph = builder.Graph("printing")
    x = graph.parameter("x", "f32", [None])

    def body(i: Any, x: Any) -> Any:
        shown = builder.cond(i % 2 == 0, lambda: builder.Print(x, [i, x], "even "), lambda: x + 1)
        return builder.print(i, first_n=2) + 1, shown

    _, last = builder.while_loop(lambda i, x: i < 4, body, (0, x), (None, [None]))
    return graph.model(builder.Print(last, message="end: ", summarize=-1))


def test_lines_come_in_the_order_in_which_they_were_printed() -> None:
    result = loopscope.run(printing(), [np.zeros(4, np.float32)])
    assert result.outputs[0].tolist() == [2, 2, 2, 2]
    assert [line.text for line in result.printed] == [
        "even [0][0.0 0.0 0.0...]",
        "[0]",
        "[1]",
        "even [2][1.0 1.0 1.0...]",
        "end: [2.0 2.0 2.0 2.0]",
    ]
    assert result.printed[3].address == "main/while[2]/body/cond/then/Print"


def test_at_a_moment_of_the_past_only_what_was_printed_by_then_is_there() -> None:
    debugger = loopscope.Debugger(printing(), [np.zeros(4, np.float32)])
    debugger.run()
    assert [line.text for line in debugger.printed(2)] == [
        "even [2][1.0 1.0 1.0...]",
        "end: [2.0 2.0 2.0 2.0]",
    ]
    debugger.seek("main/while[1]/body/Print")
    assert [line.text for line in debugger.printed(9)] == ["even [0][0.0 0.0 0.0...]", "[0]"]
    debugger.seek(0)
    assert debugger.printed(9) == ()


def test_what_prints_survives_a_file(tmp_path: Path) -> None:
    loopscope.write_model(printing(), tmp_path / "m.xml")
    again = loopscope.run(loopscope.read_model(tmp_path / "m.xml"), [np.zeros(4, np.float32)])
    assert [line.text for line in again.printed][-1] == "end: [2.0 2.0 2.0 2.0]"


def test_a_model_without_a_print_prints_nothing() -> None:
    graph = builder.Graph("quiet")
    assert loopscope.run(graph.model(graph.constant(1))).printed == ()


NAMES: dict[str, tuple[Any, Any]] = {
    "add": (lambda: builder.add(1, builder.constant(2)), 3),
    "subtract": (lambda: builder.subtract(builder.constant(1), 2), -1),
    "multiply": (lambda: builder.multiply(builder.constant(3), 2), 6),
    "equal": (lambda: builder.equal(builder.constant(3), 3), True),
    "not_equal": (lambda: builder.not_equal(builder.constant(3), 3), False),
    "less": (lambda: builder.less(builder.constant(3), 4), True),
    "less_equal": (lambda: builder.less_equal(builder.constant(3), 3), True),
    "greater": (lambda: builder.greater(builder.constant(3), 4), False),
    "greater_equal": (lambda: builder.greater_equal(builder.constant(3), 3), True),
    "logical_and": (lambda: builder.logical_and(builder.constant(True), False), False),
    "logical_or": (lambda: builder.logical_or(builder.constant(True), False), True),
    "logical_not": (lambda: builder.logical_not(builder.constant(True)), False),
    "ones": (lambda: builder.ones([2, 1]), [[1], [1]]),
    "zeros": (lambda: builder.zeros([2], "i32"), [0, 0]),
    "cast": (lambda: builder.cast(builder.constant([1.9, 0.0]), "i32"), [1, 0]),
    "concat": (
        lambda: builder.concat([builder.ones([1, 2]), builder.zeros([1, 2])], axis=0),
        [[1, 1], [0, 0]],
    ),
    "constant, filled": (lambda: builder.constant(7, shape=[2]), [7, 7]),
    "constant, shaped": (
        lambda: builder.constant([1, 2, 3, 4], "f32", [2, 2], name="four"),
        [[1, 2], [3, 4]],
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_mean_what_they_mean_in_tensorflow(name: str) -> None:
    made, expected = NAMES[name]
    graph = builder.Graph(name.replace(",", ""))
    with graph:
        assert run_both(graph.model(made())).outputs[0].tolist() == expected


def test_shapes_by_tensorflows_name() -> None:
    assert builder.TensorShape([None, 2]) == PartialShape.parse("?,2")
    assert str(builder.TensorShape(None)) == "..."
    assert builder.ones([2, 2]).get_shape() == builder.TensorShape([2, 2])


def test_a_session_keeps_the_structure_and_takes_feeds(capsys: pytest.CaptureFixture[str]) -> None:
    graph = builder.Graph("session")
    x, y = graph.parameter("x", "f32", []), graph.parameter("y", "f32", [])
    both = builder.Print(x + y, [x])
    with builder.compat.v1.Session(graph) as session:
        assert session.run({"both": both, "x": x}, {x: 1.5, y: 2}) == {"both": 3.5, "x": 1.5}
        assert session.run([x * 2], {x: 4.0}) == [8]  # y is not needed
        assert session.run([]) == []
    assert capsys.readouterr().err == "[1.5]\n"
    with pytest.raises(
        loopscope.BuildError,
        match="fetches is 3, expected a tensor or an operation of the graph, or its name",
    ):
        session.run(3)


def test_a_session_takes_tensors_and_operations_by_name() -> None:
    """ "Session: its main job is to Run() a graph": of an operation only what it does is asked
    for; TensorFlow 2.21 gives None for it.
    """
    graph = builder.Graph("names")
    x = graph.parameter("x", "f32", [2])
    low, _ = builder.ops.split(x * 2, 0, num_splits=2, name="halves")
    total = builder.ops.add(low, 1.0, name="total")
    session = builder.compat.v1.Session(graph)
    assert session.run(["total:0", "halves:1", "total", graph["halves"]], {"x:0": [1, 2]}) == [
        [3],
        [4],
        None,
        None,
    ]
    assert session.run({"a": [total, ("total",)]}, {"halves:0": [7]}) == {"a": [[8], (None,)]}
    assert session.run(total, {low: [7], "x": [0, 0]}) == [8]
    wrong: tuple[tuple[Any, dict[Any, Any], str], ...] = (
        ("totl", {}, "graph 'names' does not have an operation 'totl': did you mean 'total'"),
        ("halves:2", {}, "fetches is 'halves:2', but <Split 'halves'> has 2 outputs"),
        (total, {"halves": [1]}, "feed_dict contains 'halves', expected a tensor"),
        (total, {3: [1]}, "feed_dict contains 3, expected a tensor"),
    )
    for fetches, feeds, words in wrong:
        with pytest.raises(loopscope.BuildError, match=words):
            session.run(fetches, feeds)


def test_what_lives_in_a_body_may_be_neither_fetched_nor_fed() -> None:
    """TensorFlow 2.21: "Operation while/mul has been marked as not fetchable." and "Tensor
    while/mul:0 may not be fed.".
    """
    graph, seen = builder.Graph("inside"), []

    def body(i: Any) -> Any:
        seen.append(i * 2)
        return i + seen[-1] + 1

    (last,) = builder.while_loop(lambda i: i < 10, body, [graph.constant(0)])
    session = builder.compat.v1.Session(graph)
    with pytest.raises(
        loopscope.BuildError,
        match=r"belongs to the body of while_loop\(\) 'while' and cannot be fed: feed a tensor outside of it",
    ):
        session.run(last, {seen[0]: 3})
    with pytest.raises(
        loopscope.BuildError, match=r"belongs to the body of while_loop\(\) 'while'"
    ):
        session.run(seen[0])


def test_the_first_constant_makes_a_graph() -> None:
    code = "from loopscope import builder; c = builder.constant(3); print(builder.compat.v1.Session().run(c + 1))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "4\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "i32"),
        ([1, -(2**31)], "i32"),
        (2**31, "i64"),
        ([], "f32"),
        (0.0, "f32"),
        (True, "boolean"),
        (np.int64(0), "i64"),
        (np.zeros(2, np.int16), "i16"),
    ],
    ids=repr,
)
def test_constant_has_the_type_that_tensorflow_gives(value: object, expected: str) -> None:
    with builder.Graph("types"):
        assert str(builder.constant(value).element_type) == expected


def test_where_whole_numbers_of_two_types_meet_the_difference_is_said() -> None:
    with builder.Graph("mixed"):
        i, _ = builder.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, x), (0, builder.constant(2.0))
        )
        with pytest.raises(
            loopscope.BuildError,
            match=r"builder\.constant are i32 as in TensorFlow, those of loop variables are i64",
        ):
            builder.add(builder.constant(1), i)
