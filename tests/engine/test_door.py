"""The engine's door: what newcomers hand over by mistake is told in a sentence, and what they print says what it is."""

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

import engine
from engine import build
from engine.ir.element_type import ElementType

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
    "ValueUnavailable",
    "WriteError",
    "build",
    "check",
    "check_gradient",
    "compare",
    "drift",
    "gradients",
    "load",
    "read_model",
    "run",
    "save",
    "show",
    "sweep",
    "verdict",
    "widget",
    "write_model",
]


def test_the_names_of_the_door() -> None:
    """Somebody's program breaks when one goes, and one that nobody needs stays for ever: README speaks of each."""
    assert sorted(engine.__all__) == PUBLIC
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    spoken = re.compile(r"\bengine\.(\w+)|from engine import (\w+)")
    assert set(PUBLIC) - {name for found in spoken.finditer(readme) for name in found.groups()} == set()


def test_each_name_of_the_door_is_what_its_room_has() -> None:
    assert set(engine._HOMES) | {"build"} == set(PUBLIC)
    assert set(PUBLIC) <= set(dir(engine))
    for name, home in engine._HOMES.items():
        assert getattr(engine, name) is getattr(importlib.import_module(f"engine.{home}"), name)
    assert not hasattr(engine, "nothing")


def test_a_name_is_imported_when_it_is_asked_for() -> None:
    """``loopscope --help`` and ``import engine`` wait for nothing that they do not need."""
    program = "import app.cli, engine, sys; print('numpy' in sys.modules, engine.Limits.__name__, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "Limits", "True"]
    program = (
        "import app.cli, sys; app.cli.main(['check', 'sample_models/collatz/model.xml']); print({'scipy', 'engine.debug'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")


@pytest.mark.slow
@pytest.mark.parametrize("room", ["check", "compare", "run"])
def test_functions_called_as_their_rooms_hide_no_module(room: str) -> None:
    """Whichever is imported first; but for modules whose room exports a function of their name."""
    exported = importlib.import_module(f"engine.{room}").__all__
    modules = sorted(path.stem for path in (Path(engine.__file__).parent / room).glob("[a-z]*.py") if path.stem not in exported)
    assert modules
    lines = [f"from engine.{room}.{module} import __doc__" for module in modules] + [f"from engine.{room} import {modules[0]} as module"]
    for order in (["import engine", *lines], [*lines, "import engine"]):
        program = "\n".join([*order, f"print(callable(engine.{room}), module.__name__)"])
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["True", f"engine.{room}.{modules[0]}"]


def test_a_report_is_printed_as_its_summary() -> None:
    assert str(engine.check(halving())) == "No problems found."


def test_explaining_takes_a_debugger() -> None:
    debugger, result = engine.Debugger(halving(), [100]), engine.run(halving(), [100])
    for call in (lambda: engine.verdict(result, "main/while"), lambda: engine.compare(debugger, result)):
        with pytest.raises(TypeError, match=r"takes a Debugger, not Result: engine\.Debugger\(model, inputs\) makes one"):
            call()


def halving() -> engine.Model:
    x = build.Graph("halve").parameter("x", "f32", [])
    (last,) = build.while_loop(lambda v: v > 1, lambda v: v / 2, [x])
    return x.graph.model({"last": last})


TAKERS: dict[str, Callable[[Any, Path], object]] = {
    "engine.run": lambda given, folder: engine.run(given, [100]),
    "engine.Debugger": lambda given, folder: engine.Debugger(given, [100]),
    "engine.Session": lambda given, folder: engine.Session(given),
    "engine.write_model": lambda given, folder: engine.write_model(given, folder / "model.xml"),
    "engine.check": lambda given, folder: engine.check(given),
    "engine.show": lambda given, folder: engine.show(given, wait=False, browser=False),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_a_path_or_a_graph_is_no_model(taker: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=rf"^{taker} takes a Model, not str: engine\.read_model\(path\) reads one$"):
        TAKERS[taker]("model.xml", tmp_path)
    with pytest.raises(TypeError, match=rf"^{taker} takes a Model, not Graph: a graph's model\(\) makes one$"):
        TAKERS[taker](build.Graph("g"), tmp_path)


@pytest.mark.parametrize("fetches", [3, [3], ["x", None]])
def test_fetches_are_names_or_tensors(fetches: Any) -> None:
    with pytest.raises(engine.AddressError, match=r"^fetches are tensor names, node names, addresses or tensors, not (3|None)$"):
        engine.run(halving(), [100], fetches)


def test_a_tensor_of_another_graph_is_no_fetch() -> None:
    x = build.Graph("g").parameter("x", "f32", [])
    with pytest.raises(engine.AddressError, match=r"^<Tensor 'x' f32\[\]> is no tensor of the model 'halve': it was built elsewhere"):
        engine.run(halving(), [100], [x])


@pytest.mark.parametrize("bound", ["10", -1, float("nan"), [1]])
@pytest.mark.parametrize("name", ["iterations", "seconds", "memory_bytes"])
def test_a_limit_is_a_number(name: str, bound: Any) -> None:
    with pytest.raises(engine.InputError, match=f"^the limit of {name} is .*: a number from 0 on is expected, or None for no bound$"):
        engine.Limits(**{name: bound})


def test_what_is_printed_says_what_it_is() -> None:
    model = halving()
    debugger = engine.Debugger(model, [100])
    assert repr(debugger) == "<Debugger of 'halve', paused: step 0, before main/while%2FGreater>"
    assert repr(debugger.watches) == "<watches: none>"
    debugger.watches.add("Divide * 2")
    assert repr(debugger.watches) == "<watches: 1 Divide * 2>"
    debugger.run()
    assert repr(debugger) == "<Debugger of 'halve', finished: step 23, at the end>"
    assert repr(engine.run(model, [100])) == "<Result of 'halve', finished: 1 output>"
    assert repr(engine.Session(model)) == "<Session of 'halve', variables that have a value: none>"


@pytest.mark.parametrize("call", [engine.run, engine.Debugger, engine.Session, build.Graph])
def test_signatures_can_be_read(call: Callable[..., Any]) -> None:
    """``help(engine.run)`` shows one line of arguments, not the catalogue of all operations."""
    assert len(str(inspect.signature(call))) < 500


@pytest.mark.parametrize("element_type", ["bf16", "f8e4m3", "f8e8m0", "f4e2m1", "i4", "u4", "u2"])
def test_narrow_types_come_back_from_a_file_of_numpy(element_type: str, tmp_path: Path) -> None:
    """Such a file keeps their bytes and forgets their type, which the model's input knows."""
    x = build.Graph("same").parameter("x", element_type, [2])
    model = x.graph.model({"same": build.ops.reshape(x, [2, 1], special_zero=False)})
    array = np.array([1, 1], ElementType(element_type).dtype)
    np.savez(tmp_path / "in.npz", x=array)
    with np.load(tmp_path / "in.npz") as stored:
        (same,) = engine.run(model, {"x": stored["x"]}).outputs
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
    x = build.Graph("same").parameter("x", "i64", [])
    with pytest.raises(engine.InputError, match=f"^input 'x' takes i64: {said}$"):
        engine.run(x.graph.model({"same": x + 0}), [given])


def same() -> engine.Model:
    x = build.Graph("same").parameter("x", "i64", [])
    return x.graph.model({"same": x + 0})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda model: engine.run(model, [1], limits=5), "5 is given where an engine.Limits is expected"),
        (
            lambda model: engine.Session(model).run([1], limits={"iterations": 3}),
            r"\{'iterations': 3\} is given where an engine.Limits is expected",
        ),
        (lambda model: engine.Debugger(model, [1], record=True), "True is given where an engine.Record is expected"),
        (lambda model: engine.Debugger(model, [1]).value(5), "5 is not an address: text such as main/"),
        (lambda model: engine.Debugger(model, [1]).breakpoints.add(5), "5 is not an address: text such as main/"),
        (lambda model: engine.Debugger(model, [1]).run_to(None), "None is not an address: text such as main/"),
    ],
)
def test_what_is_of_another_kind_is_told(call: Callable[..., Any], said: str) -> None:
    with pytest.raises(engine.EngineError, match=f"^{said}"):
        call(same())


def random() -> engine.Model:
    graph = build.Graph("random")
    return graph.model({"three": build.ops.random_uniform([3], 0.0, 1.0, output_type="f32")})


@pytest.mark.parametrize("run", [engine.run, lambda model, seed: engine.Debugger(model, seed=seed)])
@pytest.mark.parametrize("seed", ["3", 1.5, [3]])
def test_a_seed_is_a_whole_number(run: Callable[..., Any], seed: Any) -> None:
    with pytest.raises(engine.InputError, match=r"^the seed is .*, expected a whole number$"):
        run(random(), seed=seed)


@pytest.mark.parametrize("seed", [np.int64(3), np.uint8(3)])
def test_seeds_of_numpy_are_those_of_python(seed: Any) -> None:
    assert engine.run(random(), seed=seed).outputs[0].tolist() == engine.run(random(), seed=3).outputs[0].tolist()


def test_variables_are_looked_at_and_not_written_to() -> None:
    x = build.Graph("sum").parameter("x", "f32", [2])
    total = build.ops.read_value(x * 0, variable_id="total", variable_type="f32", variable_shape="2") + x
    build.ops.assign(total, variable_id="total")
    session = engine.Session(x.graph.model({"total": total}))
    session.run([[1, 2]])
    with pytest.raises(ValueError, match="read-only"):
        session.variables["total"][...] = 50
    assert repr(session) == "<Session of 'sum', variables that have a value: 'total'>"
    assert session.run([[1, 2]]).outputs[0].tolist() == [2, 4]
