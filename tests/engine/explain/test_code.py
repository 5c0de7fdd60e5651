"""Models written out as Python: the text runs and gives the machine's very numbers, and every
line knows its node.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx.parser import parse_model

import loopscope
from loopscope.errors import AddressError, EngineError
from loopscope.executor.plan.planner import plan_of
from loopscope.explain.code import listing, runnable_code
from loopscope.explain.code_parts import array_text
from loopscope.explain.running import kernel, onnx_kernel
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Port
from loopscope.ir.replace import replace
from loopscope.ir.shape import PartialShape
from loopscope_samples import InputSet, Sample, samples
from tests.draws import draws
from tests.engine.debug.walks import model as walk
from tests.engine.drafts import BOOL, F32, I64, Draft, branch
from tests.engine.drawn.two_numbers import Drawn, bodies, whole
from tests.engine.executor.machine.test_where_runtimes_differ import ROWS, Row
from tests.engine.executor.record.test_memory_of_runs import accumulating, random_walk
from tests.engine.read.onnx_models import CASES, Case

SETS = [(sample, one) for sample in samples() for one in sample.sets if not one.never_ends]


def executed(model: loopscope.Model, inputs: Sequence[object]) -> tuple[np.ndarray, ...]:
    """What the code of a model gives."""
    code = runnable_code(plan_of(model))
    names: dict[str, Any] = {"__name__": "listing"}
    text = code.text.replace('np.load("weights.npz")', "given_weights")
    names["given_weights"] = code.weights
    exec(compile(text, "listing", "exec"), names)
    with np.errstate(all="ignore"):
        return tuple(np.asarray(value) for value in names["main"](*inputs))


def agree(mine: tuple[np.ndarray, ...], theirs: tuple[np.ndarray, ...]) -> None:
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("sample", "inputs"), SETS, ids=[f"{sample.name}-{one.name}" for sample, one in SETS]
)
def test_samples(sample: Sample, inputs: InputSet) -> None:
    model = loopscope.read_model(sample.model)
    arrays = inputs.arrays()
    ordered = [
        arrays[next(name for name in (one.name, *one.names) if name in arrays)]
        for one in model.inputs
    ]
    agree(executed(model, ordered), loopscope.run(model, arrays).outputs)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_corners_of_control_flow(row: Row) -> None:
    model = row.model()
    given = [
        np.asarray(value, one.element_type and one.element_type.dtype)
        for value, one in zip(row.inputs, model.inputs, strict=True)
    ]
    if row.name == "converted initial value":
        given[1] = np.asarray(row.inputs[1])
    agree(executed(model, given), loopscope.run(model, row.inputs).outputs)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name != "sequences"], ids=lambda case: case.name
)
def test_control_flow_of_onnx(case: Case) -> None:
    model = loopscope.read_model(case.model().SerializeToString())
    agree(
        executed(model, [case.inputs[one.name] for one in model.inputs]),
        loopscope.run(model, case.inputs).outputs,
    )


OF_ONNX = {
    "a name that OpenVINO has too": "main (float[1,1,4,4] x) => (float[1,1,2,2] y) { y = MaxPool <kernel_shape = [3, 3]> (x) }",
    "fewer outputs than the operation has": """main (float[2,3] x) => (float[2,3] y) {
        s = Constant <value = float[3] {1, 2, 3}> ()
        y = LayerNormalization (x, s)
    }""",
    "several outputs": "main (float[2,4] x) => (uint8[2,4] a, float b, uint8 c) { a, b, c = DynamicQuantizeLinear (x) }",
    "as many outputs as the node says": "main (float[4,2] x) => (float[2,2] a, float[2,2] b) { a, b = Split <num_outputs = 2> (x) }",
    "another opset": "main (float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 0> (x) }",
}


@pytest.mark.parametrize("text", OF_ONNX.values(), ids=OF_ONNX.keys())
def test_operations_of_onnx(text: str) -> None:
    """They were looked for among OpenVINO's: most are none of those, and some have the name and
    version of another one.
    """
    model = loopscope.read_model(
        parse_model('<ir_version: 9, opset_import: ["" : 18]>' + text).SerializeToString()
    )
    given = [
        np.random.default_rng(0).normal(size=one.shape.lengths_or_zeros()).astype(np.float32)
        for one in model.inputs
    ]
    agree(executed(model, given), loopscope.run(model, given).outputs)


@settings(
    max_examples=draws(30),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(draft=bodies(), inputs=st.tuples(st.floats(-2, 2, width=32), st.floats(-2, 2, width=32)))
def test_random_nests(draft: Drawn, inputs: tuple[float, float]) -> None:
    model = whole(draft)
    feeds = [np.float32(value) for value in inputs]
    agree(executed(model, feeds), loopscope.run(model, feeds).outputs)


@pytest.mark.parametrize("trips", [0, 3])
def test_variables(trips: int) -> None:
    x = np.array([2], np.float32)
    agree(executed(accumulating(trips), [x]), loopscope.run(accumulating(trips), [x]).outputs)


def test_random_operations_begin_as_an_unseeded_debugger_does() -> None:
    x = np.zeros(2, np.float32)
    debugger = loopscope.Debugger(random_walk(5), [x])
    debugger.run()
    agree(executed(random_walk(5), [x]), debugger.result.outputs)


def test_operations_on_constants_keep_their_attributes() -> None:
    """The machine multiplies by a large constant in another order than the plain kernel, which
    the text calls.
    """
    draft, weights = (
        Draft(),
        np.random.default_rng(0).standard_normal((200, 100)).astype(np.float32),
    )
    shift = draft.op(
        "ReduceSum", draft.const(np.ones((1, 200))), draft.const([1], I64), keep_dims="true"
    )
    draft.nodes[-1] = replace(draft.nodes[-1], outputs=(Port(2, F32, PartialShape.of((1, 1))),))
    product = draft.op(
        "MatMul",
        draft.parameter("x", F32, (100, 70)),
        draft.const(weights),
        transpose_a="true",
        transpose_b="true",
    )
    draft.result(draft.op("Add", product, shift))
    model, feed = (
        draft.model(),
        np.random.default_rng(1).standard_normal((100, 70)).astype(np.float32),
    )
    for found in (*executed(model, [feed]), *loopscope.run(model, [feed]).outputs):
        np.testing.assert_allclose(found, feed.T.astype(np.float64) @ weights.T + 200, rtol=1e-5)


def test_a_file_of_code_runs_by_itself(tmp_path: Path) -> None:
    code = runnable_code(plan_of(walk()), "main", [np.array(1, np.float32)])
    (tmp_path / "walk.py").write_text(code.text)
    surroundings = os.environ | {"PYTHONPATH": str(Path(loopscope.__file__).parent.parent)}
    made = subprocess.run(
        [sys.executable, str(tmp_path / "walk.py")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=surroundings,
    )
    assert made.stdout == "104.0\n"


TEXT = """\
def main(x):
    double = x * 2.0
    state = double
    outer = double
    all_outer_1 = []
    for i in range(3):
        value = state
        inner = state
        for i_2 in range(2):
            grow = value + 1.0
            inner = grow
            value = grow
        above = inner > 6.5
        if above:
            halve = inner * 0.5
            choice = halve
        else:
            keep = inner + 0.0
            choice = keep
        outer = choice
        all_outer_1.append(choice)
        state = choice
    outer_1 = join(all_outer_1, np.zeros((0,), np.float32), axis=0)
    last = outer + 100.0
    return (last,)
"""


def test_the_text_reads_like_python() -> None:
    assert listing(plan_of(walk())).text == TEXT


def test_lines_and_nodes() -> None:
    code = listing(plan_of(walk()))
    by_text = {line.text.strip(): number for number, line in enumerate(code.lines, 1)}
    for text, address in (
        ("double = x * 2.0", "main/double"),
        ("grow = value + 1.0", "main/outer/body/inner/body/grow"),
        ("halve = inner * 0.5", "main/outer/body/choice/then/halve"),
        ("if above:", "main/outer/body/choice"),
        ("for i in range(3):", "main/outer"),
        ("def main(x):", ""),
    ):
        assert code.address_of(by_text[text]) == address
        assert not address or by_text[text] in code.lines_of(address)
    assert code.lines_of("main/outer/body/choice/else/keep") == (by_text["keep = inner + 0.0"],)
    assert code.lines_of("main/nothing") == ()


def test_a_body_is_a_function_of_one_iteration() -> None:
    code = listing(plan_of(walk()), "main/outer/body/inner/body")
    (first, *rest) = code.text.splitlines()
    assert first.endswith(" = np.bool_(True)")
    assert rest == [
        "",
        "",
        "def inner_body(value):",
        "    grow = value + 1.0",
        f"    return (grow, {first.split()[0]})",
    ]
    assert "halve" in listing(plan_of(walk()), "main/outer/body/choice/then").text
    with pytest.raises(AddressError, match="no graph at main/nothing"):
        listing(plan_of(walk()), "main/nothing")


HOSTILE = (
    "__import__('os').system('true')",
    "x\nimport os",
    "import",
    "class",
    "print",
    "np",
    "WEIGHTS",
    "kernel",
    "'''",
    '"); evil("',
    "\\",
    "#",
    "\u202e\u2066",
    "９",
    "",
    "a" * 3000,
)


def test_names_of_a_model_never_become_code() -> None:
    draft = Draft()
    value = draft.parameter(HOSTILE[0], F32, ())
    for name in HOSTILE:
        value = draft.op("Add", value, draft.const(np.nan, name=name), name=name)
    draft.result(value, "result")
    model = draft.model()
    code = runnable_code(plan_of(model))
    allowed = {
        "np",
        "kernel",
        "iterations",
        "join",
        "part",
        "parts",
        "converted",
        "ElementType",
        "inf",
        "nan",
        "VARIABLES",
        "numpy",
    }
    tree = ast.parse(code.text)
    assigned = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    read = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    assert read <= assigned | arguments | allowed
    assert code.text.isascii()
    assert not {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    } - {"kernel"}
    assert np.isnan(executed(model, [np.float32(1)])[0])


def test_text_of_attributes_and_variables_is_quoted() -> None:
    draft = Draft()
    value = draft.parameter("x", F32, (1,))
    hostile = "v'] = __import__('os') #"
    kept = draft.op(
        "ReadValue", value, opset=6, variable_id=hostile, variable_type="f32", variable_shape="1"
    )
    draft.op("Assign", draft.op("Add", kept, value), opset=6, variable_id=hostile)
    draft.result(kept)
    code = runnable_code(plan_of(draft.model()))
    assert repr(hostile) in code.text
    assert executed(draft.model(), [np.array([2], np.float32)])[0].tolist() == [2]


def deep(levels: int) -> loopscope.Model:
    """Ifs in Ifs."""
    inside = Draft()
    c, x = inside.parameter("c", BOOL, ()), inside.parameter("x", F32, ())
    result = inside.result(inside.op("Add", x, x, name="add"))
    for _ in range(levels):
        outer, other = Draft(), Draft()
        c, x = outer.parameter("c", BOOL, ()), outer.parameter("x", F32, ())
        _, passed = other.parameter("c", BOOL, ()), other.parameter("x", F32, ())
        arms = [
            branch("then", inside, [(0, c), (1, x)], [result]),
            branch("else", other, [(0, c), (1, x)], [other.result(passed)]),
        ]
        made = outer.region("If", [c, x], arms, 1, name="if", opset=8)
        result = outer.result(made)
        inside = outer
    return inside.model()


def test_what_lies_too_deep_is_left_out_of_sight() -> None:
    code = listing(plan_of(deep(300)))
    assert not code.complete
    ast.parse(code.text)
    assert "too deep to be shown here" in code.text
    with pytest.raises(EngineError, match="write them one by one"):
        runnable_code(plan_of(deep(300)))
    flat = [np.bool_(True), np.float32(2)]
    agree(executed(deep(10), flat), loopscope.run(deep(10), flat).outputs)


def fed_by_nothing(element_type: ElementType, shape: Sequence[int]) -> loopscope.Model:
    """An If of which one branch gives a Parameter that nothing feeds, and the other a Parameter
    that the If's input feeds.
    """
    draft, inside, other = Draft(), Draft(), Draft()
    condition, x = draft.parameter("c", BOOL, ()), draft.parameter("x", element_type, shape)
    unfed, fed = (
        inside.parameter("p", element_type, shape),
        other.parameter("p", element_type, shape),
    )
    arms = (
        branch("then", inside, [], [inside.result(unfed)]),
        branch("else", other, [(1, fed)], [other.result(fed)]),
    )
    draft.result(draft.region("If", [condition, x], arms, 1, name="if", opset=8))
    return draft.model()


@pytest.mark.parametrize("shape", [(), (2, 3), (0, 2), (-1, 2)])
@pytest.mark.parametrize(
    "element_type",
    [ElementType.F32, ElementType.F16, ElementType.BF16, ElementType.I64, BOOL, ElementType.U4],
)
def test_what_nothing_feeds_is_written_as_zeros(
    element_type: ElementType, shape: tuple[int, ...]
) -> None:
    model = fed_by_nothing(element_type, shape)
    given = [np.bool_(True), np.zeros([max(length, 0) for length in shape], element_type.dtype)]
    agree(executed(model, given), loopscope.run(model, given).outputs)


def test_what_nothing_feeds_is_written_without_an_array_of_its_shape() -> None:
    """A file may claim any shape: its code shows it, and only who runs the code needs the array."""
    code = listing(plan_of(fed_by_nothing(F32, (3, 2**31 - 1))))
    assert "p = np.zeros((3, 2147483647), np.float32)" in code.text


def test_kernels_by_title() -> None:
    assert kernel("SoftMax-8")(np.array([0, 0], np.float32), axis=0).tolist() == [0.5, 0.5]
    for title in ("Nothing-1", "Add-99", "Add", "Loop-5"):
        with pytest.raises(EngineError, match="no kernel"):
            kernel(title)
    assert onnx_kernel("Softmax", "ai.onnx 18")(np.zeros(2, np.float32)).tolist() == [0.5, 0.5]
    for type, opset in (("Nothing", "ai.onnx 18"), ("Loop", "ai.onnx 18"), ("Softmax", "")):
        with pytest.raises(EngineError, match="no kernel"):
            onnx_kernel(type, opset)


def test_a_signalling_nan_is_written_without_a_warning() -> None:
    """numpy warns of one where it asks whether any number is not 0."""
    assert (
        array_text("w", np.array([0x7F800001, 0], np.uint32).view(np.float32))
        == "np.array([nan, 0.0], np.float32)"
    )
