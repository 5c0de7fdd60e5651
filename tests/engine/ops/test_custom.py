"""Operations that users add: by file, by call, per element type; what is refused; every kind of
attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope import builder
from loopscope.ir.element_type import ElementType
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from loopscope.ops import custom
from loopscope.ops.attribute_text import AttributeKind
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Attribute, AttributeProblem, Operation, typed
from loopscope.ops.infer import same
from tests.engine.drafts import F32, I64, Draft

EXAMPLE = Path(__file__).with_name("my_ops.py")


@pytest.fixture(autouse=True)
def restored_catalogue() -> Iterator[Any]:
    before = CATALOGUE.categories
    yield
    CATALOGUE.categories = before
    CATALOGUE.install(())


def zero_out_model(**attributes: str) -> loopscope.Model:
    draft = Draft()
    x = draft.parameter("x", F32, (2, 2))
    node = draft.op("ZeroOut", x, opset=1, name="first_only", outputs=1, **attributes)
    draft.nodes[-1] = replace(draft.nodes[-1], opset="extension")
    draft.result(node)
    return draft.model()


def test_the_example_runs() -> None:
    with pytest.raises(loopscope.InvalidModel, match="ZeroOut"):
        loopscope.run(zero_out_model(), [np.ones((2, 2))])
    custom.install_file(EXAMPLE)
    assert loopscope.run(zero_out_model(), [np.full((2, 2), 5.0)]).outputs[0].tolist() == [
        [5, 0],
        [0, 0],
    ]
    assert loopscope.run(zero_out_model(keep="3"), [np.full((2, 2), 5.0)]).outputs[0].tolist() == [
        [5, 5],
        [5, 0],
    ]
    with pytest.raises(loopscope.InvalidModel, match="keep"):
        loopscope.run(zero_out_model(keep="-1"), [np.full((2, 2), 5.0)])


def test_the_example_can_be_built_written_and_read_again(tmp_path: Path) -> None:
    custom.install_file(EXAMPLE)
    x = builder.Graph("first ones").parameter("x", "f32", [2, 2])
    model = x.graph.model({"y": builder.ops.zero_out(x, keep=3)})
    assert loopscope.run(model, [np.full((2, 2), 5.0)]).outputs[0].tolist() == [[5, 5], [5, 0]]
    loopscope.write_model(model, tmp_path / "model.xml")
    again = loopscope.read_model(tmp_path / "model.xml")
    assert loopscope.run(again, [np.full((2, 2), 5.0)]).outputs[0].tolist() == [[5, 5], [5, 0]]
    with pytest.raises(
        loopscope.BuildError, match="attribute 'keep' is '-1', expected an integer of at least 0"
    ):
        builder.ops.zero_out(x, keep=-1)


def test_a_name_that_exists_is_refused_unless_replacing_is_asked_for() -> None:
    custom.install_file(EXAMPLE)
    with pytest.raises(loopscope.EngineError, match="ZeroOut-1 exists already"):
        custom.install_file(EXAMPLE)
    custom.install_file(EXAMPLE, replace=True)
    assert len(CATALOGUE.versions("ZeroOut")) == 1


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("Sigmoid", "OpenVINO's opsets"),
        ("SIGMOID", "OpenVINO's opsets"),
        ("DynamicQuantizeLinear", "the ONNX domain 'ai.onnx'"),
        ("TreeEnsemble", "the ONNX domain 'ai.onnx.ml'"),
        ("QGemm", "the ONNX domain 'com.microsoft'"),
    ],
)
def test_a_name_that_openvino_or_onnx_has_is_refused_whatever_its_version(
    name: str, whose: str
) -> None:
    mine = Operation(
        name=name, version=77, opsets=(1, 17), opset="extension", page="", kernel=lambda x, /: x
    )
    with pytest.raises(
        loopscope.EngineError, match=f"operation {name}-77 has a name that exists in {whose}"
    ):
        custom.install([mine])
    custom.install([mine], replace=True)


def test_onnx_has_its_own_sigmoid_after_a_refused_file(tmp_path: Path) -> None:
    data = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> one (float[2] x) => (float[2] y) { y = Sigmoid (x) }"""
    )
    (tmp_path / "model.onnx").write_bytes(data.SerializeToString())
    (tmp_path / "ops.py").write_text(
        EXAMPLE.read_text().replace('"ZeroOut"', '"Sigmoid"').replace("version=1", "version=9")
    )
    with pytest.raises(loopscope.EngineError, match="Sigmoid-9 has a name that exists"):
        custom.install_file(tmp_path / "ops.py")
    (got,) = loopscope.run(
        loopscope.read_model(tmp_path / "model.onnx"), [np.zeros(2, np.float32)]
    ).outputs
    assert got.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"name": ""},
            "an operation is called '', expected CamelCase: a capital letter, then letters, digits and underscores",
        ),
        ({"name": "Keep\n"}, "an operation is called 'Keep\\n', expected CamelCase"),
        ({"name": "_Keep"}, "an operation is called '_Keep', expected CamelCase"),
        ({"name": "keep"}, "an operation is called 'keep', expected CamelCase"),
        ({"name": "Keep/Two"}, "an operation is called 'Keep/Two', expected CamelCase"),
        ({"name": "Keep\x00"}, "an operation is called 'Keep\\x00', expected CamelCase"),
        ({"name": 3}, "an operation is called 3, expected CamelCase"),
        ({"version": 0}, "has the version 0, expected a whole number of at least 1"),
        (
            {"opset": "a\tb"},
            "has the opset 'a\\tb', expected the text that layers have as their version",
        ),
        ({"inputs": (2, 1)}, "takes 2 to 1 inputs, expected the smaller number first"),
        (
            {"inputs": (1, 2)},
            "has a kernel that does not take 2 inputs: too many positional arguments",
        ),
        ({"outputs": -1}, "has -1 outputs, expected at least 0"),
        (
            {"types": ("f32",)},
            "has the types 'f32' for input 0, expected a frozenset of element types",
        ),
        ({"types": ()}, "has no `types`"),
        ({"infer": 3}, "has the shape function 3, expected a function"),
        (
            {"attributes": (Attribute("", "int"),)},
            "has an attribute called '', expected a letter, then",
        ),
        ({"attributes": (Attribute("1st", "int"),)}, "has an attribute called '1st'"),
        ({"attributes": (Attribute("a b", "int"),)}, "has an attribute called 'a b'"),
        (
            {"attributes": (Attribute("name", "int"),)},
            "an attribute 'name', and 'name' is already what builder.ops calls the name of a node",
        ),
        (
            {"attributes": (Attribute("keep", "int"),) * 2},
            "'keep' is already the keyword of its attribute 'keep'",
        ),
        (
            {"attributes": (Attribute("a-b", "int"), Attribute("a_b", "int"))},
            "'a_b' is already the keyword of its attribute 'a-b'",
        ),
        (
            {"attributes": (Attribute("keep", "list"),)},  # type: ignore[arg-type]
            "of the kind 'list', expected one of int, float",
        ),
        (
            {"attributes": (Attribute("keep", "int", default="1"),)},
            "of the kind 'int' with the default '1', which is not of that kind",
        ),
        (
            {"attributes": (Attribute("keep", "ints", default=[1]),)},
            "with the default [1], which is not of that kind",
        ),
        (
            {"attributes": (Attribute("keep", "int", default=1, least=2),)},
            "with the default '1', which its own constraints refuse",
        ),
        (
            {
                "attributes": (
                    Attribute("keep", "str", default="pear", allowed=("apple", "orange")),
                )
            },
            "with the default 'pear', which its own",
        ),
        (
            {"attributes": (Attribute("keep", "ints", default=(1, 2), fewest=3),)},
            "with the default '1,2', which its own constraints refuse",
        ),
        (
            {"attributes": (Attribute("keep", "str", allowed=(1,)),)},
            "that allows 1, which is not of the kind 'str'",
        ),
        (
            {"attributes": (Attribute("keep", "str", least=1),)},
            "of the kind 'str' with `least`, expected a kind of numbers",
        ),
        (
            {"attributes": (Attribute("keep", "int", fewest=1),)},
            "of the kind 'int' with `fewest`, expected a kind of lists",
        ),
        (
            {"attributes": (Attribute("keep", "tensor", allowed=(np.int8(1),)),)},
            "of tensors with `allowed` values",
        ),
        (
            {"input_docs": {"y": "What to keep."}},
            "documents an input 'y', and the inputs of its kernel are x",
        ),
        ({"output_docs": {"a": "", "b": ""}}, "documents 2 outputs, and has 1"),
        ({"doc": 3}, "has the documentation 3, expected text"),
        ({"opsets": (5, 1)}, "is in opset5 to opset1, expected the first one first"),
        ({"kernel": None}, "has no kernel"),
        ({"kernel": 3}, "has the kernel 3, expected a function"),
        ({"attributes": ("keep",)}, "has the attribute 'keep', expected loopscope.ops.Attribute"),
        (
            {"attributes": (Attribute("kept", "int"),)},
            "not take its attributes as keywords: got an unexpected keyword argument 'kept'",
        ),
    ],
)
def test_declarations_that_are_refused(wrong: dict[str, object], says: str) -> None:
    right: dict[str, Any] = {
        "name": "Keep",
        "version": 1,
        "opsets": (1, 17),
        "opset": "extension",
        "page": "",
        "kernel": lambda x, /, *, keep: x,
    }
    with pytest.raises(loopscope.EngineError, match=re.escape(says)):
        custom.install([Operation(**{**right, "attributes": (Attribute("keep", "int"),), **wrong})])
    assert not CATALOGUE.versions("Keep")
    custom.install([Operation(**right, attributes=(Attribute("keep", "int"),))])
    assert CATALOGUE.versions("Keep")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "declares no OPERATIONS"),
        ("OPERATIONS = (1,)", "OPERATIONS holds 1"),
        ("1 / 0", "ZeroDivisionError"),
        ("x = (", "SyntaxError"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "ops.py"
    file.write_text(text)
    with pytest.raises(loopscope.EngineError, match=says):
        custom.install_file(file)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(loopscope.EngineError, match="no such Python file"):
        custom.install_file("nowhere.py")


def test_a_kernel_for_each_element_type() -> None:
    kernel = custom.by_element_type({F32: lambda x: x + 1, I64: lambda x: x - 1})
    assert kernel(np.float32(1)) == 2
    assert kernel(np.int64(1)) == 0
    with pytest.raises(ValueError, match="no kernel for f64, only for f32, i64"):
        kernel(np.float64(1))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", "3", 3),
        ("float", "0.5", 0.5),
        ("bool", "true", True),
        ("str", "a b", "a b"),
        ("type", "f16", ElementType.F16),
        ("shape", "2,?", PartialShape.of([2, None])),
        ("ints", "1,2", (1, 2)),
        ("floats", "1,2.5", (1.0, 2.5)),
        ("bools", "true,0", (True, False)),
        ("strs", "a, b", ("a", "b")),
        ("types", "f32,i8", (ElementType.F32, ElementType.I8)),
        ("shapes", "2,3;?", (PartialShape.of([2, 3]), PartialShape.of([None]))),
    ],
)
def test_kinds_of_attributes(kind: AttributeKind, text: str, value: object) -> None:
    operation = Operation(
        name="Any",
        version=1,
        opsets=(1, 1),
        page="",
        kernel=lambda x: x,
        attributes=(Attribute("a", kind),),
    )
    assert typed(operation, {"a": text}) == {"a": value}
    with pytest.raises(AttributeProblem, match="'a'"):
        typed(operation, {})


def test_tensors_as_attributes() -> None:
    operation = Operation(
        name="Any",
        version=1,
        opsets=(1, 1),
        page="",
        kernel=lambda x: x,
        attributes=(Attribute("a", "tensor"),),
    )
    np.testing.assert_array_equal(
        typed(operation, {"a": "[[1, 2], [3, 4]]"})["a"], [[1, 2], [3, 4]]
    )
    with pytest.raises(AttributeProblem, match="expected numbers in brackets"):
        typed(operation, {"a": "[1, [2]]"})


def _doubled_in_place(values: np.ndarray, /) -> np.ndarray:
    values *= 2
    return values


def _sorted_in_place(values: np.ndarray, /) -> np.ndarray:
    values.sort()
    return values


def _written_by_numpy(values: np.ndarray, /) -> np.ndarray:
    result: np.ndarray = np.add(values, 1, out=values)
    return result


@pytest.mark.parametrize("kernel", [_doubled_in_place, _sorted_in_place, _written_by_numpy])
@pytest.mark.parametrize("where", ["input", "constant", "computed", "loop"])
def test_a_kernel_does_not_write_into_its_inputs(
    kernel: Callable[[np.ndarray], np.ndarray], where: str
) -> None:
    operation = Operation(
        name="Writes",
        version=1,
        opsets=(1, 17),
        opset="extension",
        page="",
        kernel=kernel,
        infer=same,
    )
    graph = builder.Graph("writing", catalogue=CATALOGUE.with_operations([operation]))
    feed = np.array([3, 1, 2], np.float32)
    x = graph.parameter("x", "f32", [3])
    value = {"constant": graph.constant(feed.copy()), "computed": x + 1}.get(where, x)
    if where == "loop":
        _, made = builder.while_loop(
            lambda i, v: i < 40, lambda i, v: (i + 1, *graph.apply(operation, [v], {})), (0, x)
        )
    else:
        (made,) = graph.apply(operation, [value], {})
    with pytest.raises(
        loopscope.EngineError,
        match=r"its kernel writes into an input, .*: let it write into a copy",
    ):
        loopscope.run(graph.model([made, x]), [feed], catalogue=graph.catalogue)
    np.testing.assert_array_equal(feed, [3, 1, 2])


def test_a_kernel_that_returns_its_input_leaves_the_callers_array_writable() -> None:
    operation = Operation(
        name="Keeps",
        version=1,
        opsets=(1, 17),
        opset="extension",
        page="",
        kernel=lambda values, /: values,
        infer=same,
    )
    graph = builder.Graph("keeping", catalogue=CATALOGUE.with_operations([operation]))
    feed = np.ones(3, np.float32)
    (made,) = graph.apply(operation, [graph.parameter("x", "f32", [3])], {})
    np.testing.assert_array_equal(
        loopscope.run(graph.model([made]), [feed], catalogue=graph.catalogue).outputs[0], feed
    )
    feed[0] = 2
