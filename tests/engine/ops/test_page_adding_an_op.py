"""TensorFlow's page "Adding a New Op", statement by statement: what it registers and runs is
registered and run here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape
from loopscope.ops import Attribute, Operation, attribute, by_element_type, install, same
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.custom import install_file
from loopscope.ops.declare import Known
from loopscope.ops.plain_data import operation_data
from loopscope_app.cli import main


@pytest.fixture(autouse=True)
def own_catalogue() -> Iterator[None]:
    before = CATALOGUE.categories
    yield
    CATALOGUE.categories = before
    CATALOGUE.install(())


def zero_out(to_zero: np.ndarray, /, *, preserve_index: int) -> np.ndarray:
    if to_zero.ndim != 1:
        raise ValueError("ZeroOut expects a 1-D vector")
    if preserve_index >= to_zero.shape[0]:
        raise ValueError("preserve_index out of range")
    zeroed = np.zeros_like(to_zero)
    zeroed[preserve_index] = to_zero[preserve_index]
    return zeroed


def declared(name: str, *attributes: Attribute, kernel: Any = None, **fields: Any) -> Operation:
    """An operation whose kernel keeps the attributes that it is given in ``SEEN``."""

    def keep(x: np.ndarray, /, **given: Any) -> np.ndarray:
        SEEN.append(given)
        return x

    own = {
        "version": 1,
        "opsets": (1, 1),
        "opset": "user",
        "page": "",
        "kernel": kernel or keep,
        "infer": same,
        "attributes": attributes,
    }
    return Operation(name=name, **{**own, **fields})


SEEN: list[dict[str, Any]] = []


def vector(values: Any = (5, 4, 3, 2, 1)) -> tuple[builder.Tensor, np.ndarray]:
    array = np.array(values, np.int32)
    return builder.Graph("page").parameter("to_zero", "i32", array.shape), array


def test_define_the_interface_and_implement_the_kernel() -> None:
    """REGISTER_OP("ZeroOut").Attr("preserve_index: int = 0").Input("to_zero:
    int32").Output("zeroed: int32"), and its test.
    """
    operation = declared(
        "ZeroOut",
        attribute("preserve_index: int = 0"),
        kernel=zero_out,
        types=(frozenset((ElementType.I32,)),),
        output_docs={"zeroed": "A copy of the tensor, all but one element 0."},
    )
    install([operation])
    x, array = vector()
    assert loopscope.run(x.graph.model(builder.ops.zero_out(x)), [array]).outputs[0].tolist() == [
        5,
        0,
        0,
        0,
        0,
    ]
    assert loopscope.run(x.graph.model(builder.ops.zero_out(x, preserve_index=3)), [array]).outputs[
        0
    ].tolist() == [0, 0, 0, 2, 0]
    with pytest.raises(
        loopscope.BuildError, match=r"zero_out\(\): input 0 \(to_zero\) is .*f32.*, expected i32"
    ):
        builder.ops.zero_out(x.graph.parameter("f", "f32", [2]))


@pytest.mark.parametrize(
    ("type", "given", "words"),
    [
        (ElementType.I32, [[1, 2], [3, 4]], ""),
        (ElementType.U8, [[1, 2], [3, 4]], ""),
        (ElementType.F64, [[1, 2], [3, 4.0]], ""),
        (ElementType.F16, [[1, 2], [3, 4]], ""),
        (ElementType.I8, [[1, 2], [3, 400]], "i64; expected i8"),
        (ElementType.I32, [[1, 2], [3, 4.5]], "f32; expected i32"),
        (ElementType.I32, np.array([[1, 2], [3, 4]]), "i64; expected i32"),
    ],
)
def test_constants_are_handed_over_as_they_are(type: ElementType, given: Any, words: str) -> None:
    """ "zero_out_module.zero_out([[1, 2], [3, 4]]).eval()": Python's numbers become the type that
    the input takes.
    """
    install(
        [
            declared(
                "FirstOnly",
                kernel=lambda x, /: x * np.eye(1, x.size).reshape(x.shape).astype(x.dtype),
                types=(frozenset((type,)),),
            )
        ]
    )
    with builder.Graph("constants"), builder.compat.v1.Session() as session:
        if words:
            with pytest.raises(loopscope.BuildError, match=words):
                builder.ops.first_only(given)
            return
        found = session.run(builder.ops.first_only(given))
    assert (found.tolist(), found.dtype) == ([[1, 0], [0, 0]], type.dtype)


def test_an_operation_is_loaded_as_a_library(tmp_path: Path) -> None:
    """ "load_op_library returns a Python module, which contains the Python wrappers"; the page's
    zero_out of [[1, 2], [3, 4]].
    """
    library = tmp_path / "zero_out.py"
    library.write_text(
        "import numpy as np\nfrom loopscope import Operation\nfrom loopscope.ir import ElementType\nfrom loopscope.ops import same\n"
        "def zero_out(to_zero, /):\n    zeroed = np.zeros_like(to_zero)\n    zeroed.flat[:1] = to_zero.flat[:1]\n    return zeroed\n"
        "OPERATIONS = (Operation(name='ZeroOut', version=1, opsets=(1, 1), opset='user', page='', kernel=zero_out, infer=same,\n"
        "    types=(frozenset((ElementType.I32,)),)),)\n"
    )
    module = builder.load_op_library(library)
    with builder.Graph("library"), builder.compat.v1.Session() as session:
        assert session.run(module.zero_out([[1, 2], [3, 4]])).tolist() == [[1, 0], [0, 0]]
    assert builder.load_op_library(str(library)) is module
    with pytest.raises(loopscope.EngineError, match="there is no such Python file"):
        builder.load_op_library(tmp_path / "none.py")


TYPES: list[tuple[str, list[int | None], list[str | None]]] = [
    ("Add", [None, 0], ["input 0"]),
    ("Less", [None, 0], ["boolean"]),
    ("Convert", [None], ["attribute destination_type"]),
    ("Select", [None, None, 1], ["input 1"]),
    ("Gather", [None, None, None], ["input 0"]),
    ("TopK", [None, None], ["input 0", "attribute index_element_type"]),
    ("LSTMCell", [None, 0, 0, 0, 0, 0], ["input 0", "input 0"]),
    ("NonMaxSuppression", [None] * 6, ["attribute output_type", "f32", "attribute output_type"]),
]


@pytest.mark.parametrize(("name", "shared", "outputs"), TYPES, ids=[one[0] for one in TYPES])
def test_types_that_refer_to_others(
    name: str, shared: list[int | None], outputs: list[str | None]
) -> None:
    """OpDef: "a list of inputs and outputs; their types may be polymorphic by referring to
    attributes".
    """
    told = operation_data(max(CATALOGUE.versions(name), key=lambda one: one.version), "")
    assert [one["same_type_as"] for one in told["inputs"]["each"]] == shared
    assert [one["type"] for one in told["outputs"]["each"]] == outputs


def test_the_types_of_own_operations() -> None:
    """A type attribute of one's own, and operations whose shape function says nothing or fails."""
    one = declared(
        "Cast",
        attribute("to: {float, int32}"),
        infer=lambda known, given: (Known(given["to"], known[0].shape),),
    )
    assert operation_data(one, "custom")["outputs"]["each"] == [
        {"name": "", "type": "attribute to", "doc": ""}
    ]
    for infer in (None, lambda known, given: 1 / 0):
        silent = operation_data(declared("Silent", infer=infer, outputs=2), "custom")
        assert [one["type"] for one in silent["outputs"]["each"]] == [None, None]


def test_functions_whose_names_python_keeps_for_itself() -> None:
    """ "It is good to have a list of keywords, to rename op functions and arguments that clash
    with those of the language".
    """
    names = ("Lambda", "While", "Import", "Version")
    install(
        [
            declared(name, attribute("class: int = 1"), kernel=lambda x, /, *, class_: x * class_)
            for name in names
        ]
    )
    assert {"lambda_", "while_", "import_", "version_"} < set(dir(builder.ops))
    for called in ("lambda_", "while_", "import_", "version_"):
        x, array = vector()
        assert loopscope.run(
            x.graph.model(getattr(builder.ops, called)(x, class_=2)), [array]
        ).outputs[0].tolist() == [10, 8, 6, 4, 2]


def test_validation_in_the_kernel() -> None:
    """OP_REQUIRES(context, TensorShapeUtils::IsVector(...), errors::InvalidArgument("ZeroOut
    expects a 1-D vector."))
    """
    install([declared("ZeroOut", attribute("preserve_index: int = 0"), kernel=zero_out)])
    x, array = vector([[1, 2], [3, 4]])
    with pytest.raises(
        loopscope.RunStopped,
        match=r"main/ZeroOut.*ZeroOut-1 failed: ZeroOut expects a 1-D vector \(inputs: i32\[2,2\]",
    ):
        loopscope.run(x.graph.model(builder.ops.zero_out(x)), [array])
    x, array = vector()
    with pytest.raises(loopscope.RunStopped, match="preserve_index out of range"):
        loopscope.run(x.graph.model(builder.ops.zero_out(x, preserve_index=5)), [array])


def test_several_kernels_for_several_types() -> None:
    """A kernel may exist for each of several element types."""
    kernel = by_element_type(
        {ElementType.I32: lambda x, /: x + 1, ElementType.F32: lambda x, /: x / 2}
    )
    install([declared("Either", kernel=kernel)])
    graph = builder.Graph("both")
    i, f = graph.parameter("i", "i32", []), graph.parameter("f", "f32", [])
    assert [
        float(one)
        for one in loopscope.run(
            graph.model([builder.ops.either(i), builder.ops.either(f)]), [1, 1.0]
        ).outputs
    ] == [2, 0.5]


def test_a_model_from_before_an_attribute_still_runs() -> None:
    """Backward compatibility: an attribute that is added to an operation has a default."""
    install([declared("ZeroOut", kernel=lambda x, /: zero_out(x, preserve_index=0))])
    x, array = vector()
    before = x.graph.model(builder.ops.zero_out(x))
    install(
        [declared("ZeroOut", attribute("preserve_index: int = 1"), kernel=zero_out)], replace=True
    )
    later = loopscope.run(replace(before), [array])
    assert later.outputs[0].tolist() == [0, 4, 0, 0, 0]


ALL_TYPES = (
    "s: string = 'foo'",
    "i: int = 0",
    "f: float = 1.0",
    "b: bool = true",
    "ty: type = DT_INT32",
    "sh: shape = { dim { size: 1 } dim { size: 2 } }",
    "te: tensor = { dtype: DT_INT32 int_val: 5 }",
    "l_empty: list(int) = []",
    "l_int: list(int) = [2, 3, 5, 7]",
)
"""AttrDefaultExampleForAllTypes, as the page has it."""


def test_defaults_for_all_types(tmp_path: Path) -> None:
    """AttrDefaultExampleForAllTypes: as defaults, given anew, through a file, and in a model
    that says nothing of them.
    """
    install([declared("AttrDefaultExampleForAllTypes", *map(attribute, ALL_TYPES))])
    defaults = {
        "s": b"foo",
        "i": 0,
        "f": 1.0,
        "b": True,
        "ty": ElementType.I32,
        "sh": PartialShape.of([1, 2]),
        "te": np.int32(5),
    }
    defaults |= {"l_empty": (), "l_int": (2, 3, 5, 7)}
    given = {
        "s": b"\xff\x00",
        "i": -1,
        "f": 0.5,
        "b": False,
        "ty": ElementType.STRING,
        "sh": DYNAMIC,
        "te": np.array([[1.5]], np.float32),
    }
    given |= {"l_empty": (1,), "l_int": ()}
    for values in (defaults, given):
        x, array = vector()
        call = builder.ops.attr_default_example_for_all_types
        model = x.graph.model(call(x) if values is defaults else call(x, **values))
        loopscope.write_model(model, tmp_path / "all.xml")
        for one in (model, loopscope.read_model(tmp_path / "all.xml")):
            loopscope.run(one, [array])
            assert SEEN[-1].keys() == values.keys()
            for name, value in values.items():
                found = SEEN[-1][name]
                assert type(found) is type(value) or name == "te"
                np.testing.assert_array_equal(found, value, strict=name == "te" and values is given)
    document = (tmp_path / "all.xml").read_text()
    bare = re.sub(r'<data [^>]*te="[^>]*/>', "", document)
    assert bare != document
    (tmp_path / "all.xml").write_text(bare)
    loopscope.run(loopscope.read_model(tmp_path / "all.xml"), [array])
    assert SEEN[-1]["s"] == b"foo"


CONSTRAINED: list[tuple[str, str, list[Any], list[tuple[Any, str]]]] = [
    (
        "EnumExample",
        "e: {'apple', 'orange'}",
        ["apple", "orange"],
        [("pear", "attribute 'e' is 'pear', expected one of apple, orange")],
    ),
    (
        "RestrictedTypeExample",
        "t: {int32, float, bool}",
        [np.int32, "f32", bool],
        [("f64", "attribute 't' is 'f64', expected one of i32, f32, boolean")],
    ),
    (
        "NumberType",
        "t: numbertype",
        [np.int32, "f16", "u4"],
        [(bool, "attribute 't' is 'boolean'"), ("string", "attribute 't'")],
    ),
    (
        "RealNumberType",
        "t: realnumbertype",
        [np.int32, "bf16"],
        [(bool, "attribute 't' is 'boolean'")],
    ),
    (
        "QuantizedType",
        "t: quantizedtype",
        ["i8", "u8", "i16", "u16", "i32"],
        [("f32", "attribute 't' is 'f32', expected one of i32, i16")],
    ),
    (
        "MinIntExample",
        "a: int >= 2",
        [2, 9],
        [(1, "attribute 'a' is '1', expected an integer of at least 2")],
    ),
    (
        "TypeListExample",
        "a: list({int32, float}) >= 3",
        [["i32"] * 3, ["i32", "f32", "i32", "f32"]],
        [
            (["i32", "f32"], "attribute 'a' is 'i32,f32', expected at least 3 of: i32, f32"),
            (
                ["i32", "f32", "i8"],
                "attribute 'a' is 'i32,f32,i8', expected at least 3 of: i32, f32",
            ),
        ],
    ),
]


@pytest.mark.parametrize(
    ("name", "expression", "valid", "invalid"), CONSTRAINED, ids=[one[0] for one in CONSTRAINED]
)
def test_constraints(
    name: str, expression: str, valid: list[Any], invalid: list[tuple[Any, str]]
) -> None:
    """Default values & constraints: {'apple', 'orange'}, {<type1>, <type2>}, numbertype, int >=
    <n>, list(<type>) >= <n>.
    """
    one = attribute(expression)
    install([declared(name, one)])
    x, array = vector()
    call = getattr(builder.ops, builder.ops.version(name, 1).__name__)
    for value in valid:
        loopscope.run(x.graph.model(call(x, **{one.name: value})), [array])
    for value, says in invalid:
        with pytest.raises(loopscope.BuildError, match=re.escape(says)):
            call(x, **{one.name: value})


@pytest.mark.parametrize(
    ("expression", "kind", "default"),
    [
        ("a: list(string) = ['a,b', '\\xff']", "bytes_list", (b"a,b", b"\xff")),
        ("a: list(bool) = [true, false]", "bools", (True, False)),
        ("a: list(float) = [-1e3, inf]", "floats", (-1000.0, float("inf"))),
        ("a: list(type) = [DT_HALF, qint8]", "types", (ElementType.F16, ElementType.I8)),
        (
            "a: list(shape) = [{ unknown_rank: true }, { dim { size: -1 } }, {}]",
            "shapes",
            (DYNAMIC, PartialShape.of([None]), PartialShape(())),
        ),
        ("a: list({'x', 'y'}) = ['y']", "strs", ("y",)),
        ('a: string = "caf\u00e9"', "bytes", "caf\u00e9".encode()),
    ],
)
def test_lists_of_each(expression: str, kind: str, default: object) -> None:
    """list(<type>): a list of <type>, where <type> is one of the above types."""
    found = attribute(expression)
    assert (found.kind, found.default) == (kind, default)
    install([declared("AnyList", found)])


def test_tensors_as_defaults() -> None:
    filled = attribute(
        "a: list(tensor) = [{ dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: [1.5, 2] }, { dtype: DT_BOOL }]"
    )
    assert isinstance(filled.default, tuple)
    np.testing.assert_array_equal(filled.default[0], np.array([1.5, 2, 2], np.float32), strict=True)
    np.testing.assert_array_equal(filled.default[1], np.array(False), strict=True)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a: tensor = { dtype: DT_HALF half_val: 15360 }", np.array(1, np.float16)),
        (
            "a: tensor = { dtype: DT_HALF tensor_shape { dim { size: 2 } } half_val: [15360, 64512] }",
            np.array([1, -np.inf], np.float16),
        ),
        (
            r"a: tensor = { dtype: DT_INT32 tensor_shape { dim { size: 2 } } tensor_content: '\001\000\000\000\377\377\377\377' }",
            np.array([1, -1], np.int32),
        ),
        (r"a: tensor = { dtype: DT_BOOL tensor_content: '\002' }", np.array(True)),
    ],
)
def test_tensors_whose_elements_are_bits_or_bytes(expression: str, expected: np.ndarray) -> None:
    """A TensorProto's half_val holds 16 bits for each number; tensor_content all bytes in a row,
    the least first.
    """
    np.testing.assert_array_equal(attribute(expression).default, expected, strict=True)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (
            "a: list(list(int))",
            "has 'list', expected one of string, int, .*; a list of lists is none",
        ),
        ("a int", "has 'int', expected ':'"),
        ("a: text", "has 'text', expected one of string"),
        ("a: float >= 2", "has '>=', expected it after `int` or a list alone"),
        ("a: int >= two", "has 'two', expected a whole number"),
        ("a: int = 1.5", "has '1.5', expected a whole number"),
        ("a: int = 1 2", "has '2', expected the end"),
        ("a: bool = yes", "has 'yes', expected true or false"),
        ("a: {'x', int32}", "expected texts in quotes, or types"),
        ("a: {}", "expected texts in quotes, or types"),
        ("a: {'\\xff'}", "expected a text in UTF-8"),
        ("a: type = DT_INT33", "has 'DT_INT33', expected an element type"),
        ("a: shape = { dim { size: x } }", "expected a shape"),
        ("a: shape = { dim", "has 'nothing'"),
        ("a: tensor = { dtype: DT_INT32 int_val: [1, 2] }", "expected a tensor"),
        ("a: tensor = { dtype: DT_BOOL bool_val: maybe }", "expected a tensor"),
        ("a: tensor = { dtype: DT_INT32 half_val: 3 }", "expected a tensor"),
        (r"a: tensor = { dtype: DT_INT32 tensor_content: '\001\000' }", "expected a tensor"),
        (
            "a: tensor = { dtype: DT_INT8 tensor_shape { dim { size: 99999999999 } } }",
            "expected a tensor",
        ),
        ("a: string = 'x", "expected a name, a number, a text in quotes"),
    ],
)
def test_expressions_that_are_wrong(expression: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        attribute(expression)


def test_what_is_documented_shows_in_help_and_in_the_list_of_operations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OpDef: documentation of the op, its inputs, its outputs and the attributes that cannot be
    inferred.
    """
    file = Path(__file__).with_name("my_ops.py")
    text = file.read_text().replace(
        'page="",',
        'page="", doc="Zeroes the rest.\\n\\nSlowly.", output_docs={"zeroed": "The rest."},',
    )
    (tmp_path / "ops.py").write_text(text)
    install_file(tmp_path / "ops.py")
    told = builder.ops.zero_out.__doc__
    assert told is not None
    for words in (
        "Zeroes the rest.\n\nSlowly.",
        "A tensor of any shape.",
        "zeroed: The rest.",
        "default 1. How many elements stay.",
    ):
        assert words in told
    CATALOGUE.categories = {
        name: rows for name, rows in CATALOGUE.categories.items() if name != "custom"
    }
    CATALOGUE.install(())
    assert main(["ops", "ZeroOut", "--json", "--ops", str(tmp_path / "ops.py")]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["name"], found["version"], found["doc"]) == (
        "ZeroOut",
        1,
        "Zeroes the rest.\n\nSlowly.",
    )
    assert found["inputs"]["each"][0] | {"types": []} == {
        "name": "values",
        "types": [],
        "same_type_as": None,
        "doc": "A tensor of any shape.",
    }
    assert found["outputs"] == {
        "most": 1,
        "each": [{"name": "zeroed", "type": "input 0", "doc": "The rest."}],
    }
    (keep,) = found["attributes"]
    assert (keep["name"], keep["kind"], keep["default"], keep["least"], keep["doc"]) == (
        "keep",
        "int",
        "1",
        "0",
        "How many elements stay.",
    )


def test_every_operation_is_in_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    """TF_GetAllOpList: all registered operations, for generators in other languages."""
    assert main(["ops", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {(one["name"], one["version"]) for one in found} >= {
        (one.name, one.version) for one in CATALOGUE
    }
    assert all(one["doc"] or one["category"] for one in found)
