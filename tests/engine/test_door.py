"""The engine's door: what newcomers hand over by mistake is told in a sentence, and what they
print says what it is.
"""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.ir.element_type import ElementType

PUBLIC = [
    "AddressError",
    "BuildError",
    "Debugger",
    "EngineError",
    "ExpressionError",
    "InputError",
    "InvalidModel",
    "Limits",
    "Model",
    "Operation",
    "Optimise",
    "ReadError",
    "Record",
    "Result",
    "RunStopped",
    "Session",
    "Specialised",
    "TakenPaths",
    "ValueUnavailable",
    "WriteError",
    "builder",
    "check",
    "check_gradient",
    "compare",
    "costs",
    "cut",
    "drift",
    "gradients",
    "load",
    "open_as_loop",
    "read_model",
    "run",
    "save",
    "show",
    "specialise",
    "sweep",
    "trace",
    "trace_callback",
    "trace_module",
    "verdict",
    "widget",
    "write_model",
]


def test_the_names_of_the_door() -> None:
    """Programs break when a name goes, so that each name of the door is documented."""
    assert sorted(loopscope.__all__) == PUBLIC
    reference = Path(__file__).parents[2] / "docs/reference/python.md"
    spoken = re.compile(r"\bloopscope\.(\w+)|`(\w+)`")
    assert (
        set(PUBLIC)
        - {
            name
            for found in spoken.finditer(reference.read_text(encoding="utf-8"))
            for name in found.groups()
        }
        == set()
    )


def test_each_name_of_the_door_is_what_its_room_has() -> None:
    assert set(loopscope._MODULE_OF_NAME) | {"builder"} == set(PUBLIC)
    assert set(PUBLIC) <= set(dir(loopscope))
    for name, home in loopscope._MODULE_OF_NAME.items():
        assert getattr(loopscope, name) is getattr(
            importlib.import_module(f"loopscope.{home}"), name
        )
    assert not hasattr(loopscope, "nothing")


def test_a_name_is_imported_when_it_is_asked_for() -> None:
    """``loopscope --help`` and ``import loopscope`` wait for nothing that they do not need."""
    program = "import loopscope_app.cli, loopscope, sys; print('numpy' in sys.modules, loopscope.Limits.__name__, 'numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "Limits", "True"]
    program = "import loopscope_app.cli, sys; loopscope_app.cli.main(['check', 'sample_models/collatz/model.xml']); print({'scipy', 'loopscope.debug'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("set()\n")


def test_a_report_is_printed_as_its_summary() -> None:
    assert str(loopscope.check(halving())) == "No problems found."


def test_explaining_takes_a_debugger() -> None:
    debugger, result = loopscope.Debugger(halving(), [100]), loopscope.run(halving(), [100])
    for call in (
        lambda: loopscope.verdict(result, "main/while"),
        lambda: loopscope.compare(debugger, result),
    ):
        with pytest.raises(
            TypeError,
            match=r"takes a Debugger, not Result: loopscope\.Debugger\(model, inputs\) makes one",
        ):
            call()


def halving() -> loopscope.Model:
    x = builder.Graph("halve").parameter("x", "f32", [])
    (last,) = builder.while_loop(lambda v: v > 1, lambda v: v / 2, [x])
    return x.graph.model({"last": last})


TAKERS: dict[str, Callable[[Any, Path], object]] = {
    "loopscope.run": lambda given, folder: loopscope.run(given, [100]),
    "loopscope.Debugger": lambda given, folder: loopscope.Debugger(given, [100]),
    "loopscope.Session": lambda given, folder: loopscope.Session(given),
    "loopscope.write_model": lambda given, folder: loopscope.write_model(
        given, folder / "model.xml"
    ),
    "loopscope.check": lambda given, folder: loopscope.check(given),
    "loopscope.show": lambda given, folder: loopscope.show(given, wait=False, browser=False),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_a_path_or_a_graph_is_no_model(taker: str, tmp_path: Path) -> None:
    with pytest.raises(
        TypeError,
        match=rf"^{taker} takes a Model, not str: loopscope\.read_model\(path\) reads one$",
    ):
        TAKERS[taker]("model.xml", tmp_path)
    with pytest.raises(
        TypeError, match=rf"^{taker} takes a Model, not Graph: a graph's model\(\) makes one$"
    ):
        TAKERS[taker](builder.Graph("g"), tmp_path)


@pytest.mark.parametrize("fetches", [3, [3], ["x", None]])
def test_fetches_are_names_or_tensors(fetches: Any) -> None:
    with pytest.raises(
        loopscope.AddressError,
        match=r"^fetches are tensor names, node names, addresses or tensors, not (3|None)$",
    ):
        loopscope.run(halving(), [100], fetches)


def test_a_tensor_of_another_graph_is_no_fetch() -> None:
    x = builder.Graph("g").parameter("x", "f32", [])
    with pytest.raises(
        loopscope.AddressError,
        match=r"^<Tensor 'x' f32\[\]> is not a tensor of the model 'halve': it was built elsewhere",
    ):
        loopscope.run(halving(), [100], [x])


@pytest.mark.parametrize("bound", ["10", -1, float("nan"), [1]])
@pytest.mark.parametrize("name", ["iterations", "seconds", "memory_bytes"])
def test_a_limit_is_a_number(name: str, bound: Any) -> None:
    with pytest.raises(
        loopscope.InputError,
        match=f"^limit {name}: expected a number of at least 0, or None for no limit, got .*$",
    ):
        loopscope.Limits(**{name: bound})


def test_what_is_printed_says_what_it_is() -> None:
    model = halving()
    debugger = loopscope.Debugger(model, [100])
    assert repr(debugger) == "<Debugger of 'halve', paused: step 0, before main/while%2FGreater>"
    assert repr(debugger.watches) == "<watches: none>"
    debugger.watches.add("Divide * 2")
    assert repr(debugger.watches) == "<watches: 1 Divide * 2>"
    debugger.run()
    assert repr(debugger) == "<Debugger of 'halve', finished: step 23, at the end>"
    assert repr(loopscope.run(model, [100])) == "<Result of 'halve', finished: 1 output>"
    assert (
        repr(loopscope.Session(model)) == "<Session of 'halve', variables that have a value: none>"
    )


@pytest.mark.parametrize(
    "call", [loopscope.run, loopscope.Debugger, loopscope.Session, builder.Graph]
)
def test_signatures_can_be_read(call: Callable[..., Any]) -> None:
    """``help(loopscope.run)`` shows one line of arguments, not the catalogue of all operations."""
    assert len(str(inspect.signature(call))) < 500


@pytest.mark.parametrize("element_type", ["bf16", "f8e4m3", "f8e8m0", "f4e2m1", "i4", "u4", "u2"])
def test_narrow_types_come_back_from_a_file_of_numpy(element_type: str, tmp_path: Path) -> None:
    """Such a file keeps their bytes and forgets their type, which the model's input knows."""
    x = builder.Graph("same").parameter("x", element_type, [2])
    model = x.graph.model({"same": builder.ops.reshape(x, [2, 1], special_zero=False)})
    array = np.array([1, 1], ElementType(element_type).dtype)
    np.savez(tmp_path / "in.npz", x=array)
    with np.load(tmp_path / "in.npz") as stored:
        (same,) = loopscope.run(model, {"x": stored["x"]}).outputs
    assert same.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros((), [("a", "i4")]), r"\[\('a', '<i4'\)\] is not a number"),
        (np.zeros((), "V4"), r"\|V4 is not a number"),
        (np.zeros((), "V8"), r"\|V8 is not a number"),
    ],
)
def test_records_and_raw_bytes_are_no_numbers(given: np.ndarray, said: str) -> None:
    x = builder.Graph("same").parameter("x", "i64", [])
    with pytest.raises(loopscope.InputError, match=f"^input 'x' takes i64: {said}$"):
        loopscope.run(x.graph.model({"same": x + 0}), [given])


def same() -> loopscope.Model:
    x = builder.Graph("same").parameter("x", "i64", [])
    return x.graph.model({"same": x + 0})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda model: loopscope.run(model, [1], limits=5),
            "expected loopscope.Limits, got 5",
        ),
        (
            lambda model: loopscope.Session(model).run([1], limits={"iterations": 3}),
            r"expected loopscope.Limits, got \{'iterations': 3\}",
        ),
        (
            lambda model: loopscope.Debugger(model, [1], record=True),
            "expected loopscope.Record, got True",
        ),
        (
            lambda model: loopscope.Debugger(model, [1]).value(5),
            "5 is not an address: text such as main/",
        ),
        (
            lambda model: loopscope.Debugger(model, [1]).breakpoints.add(5),
            "5 is not an address: text such as main/",
        ),
        (
            lambda model: loopscope.Debugger(model, [1]).run_to(None),
            "None is not an address: text such as main/",
        ),
    ],
)
def test_what_is_of_another_kind_is_told(call: Callable[..., Any], said: str) -> None:
    with pytest.raises(loopscope.EngineError, match=f"^{said}"):
        call(same())


def random() -> loopscope.Model:
    graph = builder.Graph("random")
    return graph.model({"three": builder.ops.random_uniform([3], 0.0, 1.0, output_type="f32")})


@pytest.mark.parametrize(
    "run", [loopscope.run, lambda model, seed: loopscope.Debugger(model, seed=seed)]
)
@pytest.mark.parametrize("seed", ["3", 1.5, [3]])
def test_a_seed_is_a_whole_number(run: Callable[..., Any], seed: Any) -> None:
    with pytest.raises(loopscope.InputError, match=r"^the seed is .*, expected a whole number$"):
        run(random(), seed=seed)


@pytest.mark.parametrize("seed", [np.int64(3), np.uint8(3)])
def test_seeds_of_numpy_are_those_of_python(seed: Any) -> None:
    assert (
        loopscope.run(random(), seed=seed).outputs[0].tolist()
        == loopscope.run(random(), seed=3).outputs[0].tolist()
    )


def test_variables_are_looked_at_and_not_written_to() -> None:
    x = builder.Graph("sum").parameter("x", "f32", [2])
    total = (
        builder.ops.read_value(x * 0, variable_id="total", variable_type="f32", variable_shape="2")
        + x
    )
    builder.ops.assign(total, variable_id="total")
    session = loopscope.Session(x.graph.model({"total": total}))
    session.run([[1, 2]])
    with pytest.raises(ValueError, match="read-only"):
        session.variables["total"][...] = 50
    assert repr(session) == "<Session of 'sum', variables that have a value: 'total'>"
    assert session.run([[1, 2]]).outputs[0].tolist() == [2, 4]
