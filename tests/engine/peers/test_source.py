"""A file beside the program that it was converted from, by what the framework said when it was
asked.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino
import pytest

import loopscope
from loopscope.errors import EngineError, InputError
from loopscope.native.run_once import never
from loopscope.peers import Source, SourceReport, source_of
from loopscope.peers.other_runtimes import Patience
from loopscope.peers.source.compare_source import RuntimeSide, reported, runtime_side
from loopscope.peers.source.program import SourceRun, run_source
from loopscope.peers.source.source_report import ran, took
from loopscope_app.cli import main
from loopscope_samples.recipes import linear_attention
from tests.engine.peers.sources.cases import TENSORFLOW, TORCH, Arrays, Case, count

IF, LOOP = "main/cond%2Fcond%2FIf", "while_loop%2Fwhile_loop%2FLoop"
ABSENT = RuntimeSide("OpenVINO", "not installed")


def finished(model: Path, inputs: Arrays) -> loopscope.Debugger:
    debugger = loopscope.Debugger(loopscope.read_model(model), inputs)
    debugger.run()
    assert debugger.state == "finished"
    return debugger


def beside(case: Case, did: SourceRun | None = None, inputs: Arrays | None = None) -> SourceReport:
    return reported(
        case.program, did or case.did(), finished(case.model, inputs or case.inputs), ABSENT
    )


def named(program: str, name: str) -> Case:
    return next(
        case for case in (*TORCH, *TENSORFLOW) if (case.program, case.name) == (program, name)
    )


@pytest.mark.parametrize(
    ("program", "name", "told"),
    [
        ("doubling", "three", [("while_loop", f"main/{LOOP}", "name", (3,), (3,))]),
        ("choosing", "then", [("cond", IF, "name", (1,), (1,)),
                              ("cond · then › while_loop", f"{IF}/then/{LOOP}", "name", (2,), (2,))]),
        ("choosing", "else", [("cond", IF, "name", (0,), (0,)),
                              ("cond · then › while_loop", f"{IF}/then/{LOOP}", "name", (), ())]),
        ("recurrent", "rows", [("scan", "main/node_scan__1", "name", (4,), (4,))]),
        ("mapping", "rows", [("map_impl", "main/map_impl", "name", (4,), (4,))]),
        ("alternating", "four", [("while_loop", "main/while_loop", "name", (4,), (4,)),
                                 ("while_loop › cond", "main/while_loop/body/cond", "name", (1, 0, 1, 0), (1, 0, 1, 0))]),
        ("alternating", "none", [("while_loop", "main/while_loop", "name", (0,), (0,)),
                                 ("while_loop › cond", "main/while_loop/body/cond", "name", (), ())]),
        ("tf_doubling", "none", [("while", "main/while", "name", (0,), (0,))]),
        ("tf_doubling", "three", [("while", "main/while", "name", (3,), (3,))]),
        ("tf_choosing", "then", [("cond", "main/If_103", "structure", (1,), (1,)),
                                 ("cond · then › cond/while", "main/If_103/then/cond%2Fwhile", "name", (2,), (2,))]),
        ("tf_choosing", "else", [("cond", "main/If_103", "structure", (0,), (0,)),
                                 ("cond · then › cond/while", "main/If_103/then/cond%2Fwhile", "name", (), ())]),
        ("tf_nested", "four", [("while", "main/while", "name", (4,), (4,)),
                               ("while › while/cond", "main/while/body/If_129", "structure", (1, 0, 1, 0), (1, 0, 1, 0)),
                               ("while › while/cond · then › while/cond/while",
                                "main/while/body/If_129/then/while%2Fcond%2Fwhile", "name", (4, 2), (4, 2))]),
    ],
)  # fmt: skip
def test_a_file_that_does_what_its_source_does(
    program: str, name: str, told: list[tuple[object, ...]]
) -> None:
    report = beside(named(program, name))
    assert [
        (one.source, one.address, one.how, one.there, one.here) for one in report.regions
    ] == told
    assert report.agrees
    assert report.outputs_agree
    assert report.sentence.startswith(
        f"All outputs agree with {'TensorFlow 2.21.0' if program.startswith('tf') else 'torch 2.13.0'}"
    )
    assert not report.only_source
    assert not report.only_file
    iterations = {one.source: sum(one.here) for one in report.regions if one.kind != "cond"}
    for region in report.regions:
        assert [value.compared for value in region.values] == [iterations.get(region.source)] * len(
            region.values
        )


def test_a_while_loop_that_was_made_a_do_while() -> None:
    report = beside(named("doubling", "none"))
    assert report.sentence.startswith(
        "torch: 0 iterations; the file: 1 (while_loop/while_loop › Loop). LS931: This Loop runs at least once; "
        "if it was converted from a while loop, that may run 0 times. The output 'getitem:0' differs: 0 in torch 2.13.0, -1 in the file."
    )
    assert not report.outputs_agree
    assert report.table()[:3] == (
        ("", "torch 2.13.0", "Loopscope", "OpenVINO"),
        ("while_loop = while_loop/while_loop › Loop", "0 iterations", "1 iteration", "not known"),
        ("output getitem:0", "0", "-1", ""),
    )


def test_the_third_column_is_what_the_runtime_does() -> None:
    case = named("doubling", "none")
    run = finished(case.model, case.inputs)
    side = runtime_side(run, case.inputs, tolerance=1e-3, seconds=120)
    report = reported("doubling", case.did(), run, side)
    assert report.runtime.called.startswith("OpenVINO 20")
    assert report.table()[1][1:] == ("0 iterations", "1 iteration", "1 iteration")
    assert report.table()[2][1:] == ("0", "-1", "-1")
    assert report.table()[3][1:] == ("1 at [0]", "2 at [0]", "2 at [0]")
    scan = named("recurrent", "rows")
    run = finished(scan.model, scan.inputs)
    side = runtime_side(run, scan.inputs, tolerance=1e-3, seconds=120)
    report = reported("recurrent", scan.did(), run, side)
    assert report.runtime.called.startswith("ONNX Runtime ")
    assert report.table()[1][1:] == ("4 iterations", "4 iterations", "4 iterations")


def test_a_loop_that_the_runtime_fuses(tmp_path: Path) -> None:
    """The runtime does what the source does, and not what the file says: the file's trip count
    is 5, and the source takes 16 tokens.
    """
    case = named("gated", "sixteen")
    openvino.save_model(linear_attention.model(5), tmp_path / "model.xml", compress_to_fp16=False)
    run = finished(tmp_path / "model.xml", case.inputs)
    report = reported(
        "gated", case.did(), run, runtime_side(run, case.inputs, tolerance=1e-3, seconds=120)
    )
    assert report.sentence.startswith(
        "torch: 16 iterations; the file: 5 (for_each_token). The output 'attention' differs: "
    )
    head, loop, attention, _ = report.table()
    assert (loop[1:], loop[3]) == (
        ("16 iterations", "5 iterations", "runs as GatedDeltaNet"),
        "runs as GatedDeltaNet",
    )
    assert head[3] in report.sentence
    assert attention[1] != attention[2] == "0 at [0,0,5,0]"
    there, ran_there = (float(cell.partition(" ")[0]) for cell in (attention[1], attention[3]))
    assert ran_there == pytest.approx(there, abs=1e-5)
    assert report.regions[0].how == "values"
    state, given = report.regions[0].values
    assert (state.label, state.compared, state.first) == ("S", 5, None)
    assert given.left_out == "the file's loop has none like it"


def test_a_value_that_differs_is_told_with_its_iteration() -> None:
    case = named("doubling", "three")
    did = case.did()
    x = did.regions[0].values[1]
    assert x.rows is not None
    rows = x.rows.copy()
    rows[1:, 2] += 1
    changed = replace(
        did,
        regions=(
            replace(did.regions[0], values=(did.regions[0].values[0], replace(x, rows=rows))),
        ),
    )
    report = beside(case, changed)
    assert report.outputs_agree
    assert not report.agrees
    assert report.sentence.startswith(
        "while_loop/while_loop › Loop · iteration 1 › loop_carried_1 is the first value that differs: 13 at [2] in torch 2.13.0, "
        "12 at [2] in the file. The outputs agree."
    )
    value = report.regions[0].values[1]
    assert (value.name, value.label, value.how, value.compared) == (
        "x",
        "loop_carried_1",
        "values",
        3,
    )


def test_what_differs_first_in_the_run_is_told_first() -> None:
    """A loop of another length comes after the branch that it begins with."""
    case = named("alternating", "four")
    report = beside(case, inputs={**case.inputs, "n": count(3)})
    assert report.sentence.startswith(
        "torch: the then branch; the file: the else branch (while_loop · iteration 0 › cond). "
        "torch: 4 iterations; the file: 3 (while_loop). The output "
    )
    assert [one.first is not None for one in report.regions] == [True, True]
    branches = report.regions[1].first
    assert branches is not None
    assert (branches.address, branches.there, branches.here) == (
        "main/while_loop[0]/body/cond",
        "the then branch",
        "the else branch",
    )


def test_loops_without_a_name_are_told_apart_by_what_they_carry() -> None:
    """Two loops of the file that are called as nothing in the source: which is which is seen by
    their first values.
    """
    graph = loopscope.builder.Graph("two")
    n = graph.parameter("n", "i64", [])
    x = graph.parameter("x", "f32", [4])
    found = [
        loopscope.builder.while_loop(
            lambda i, y: i < n,
            lambda i, y: (i + 1, y * 2),
            (loopscope.builder.constant(start), y),
            name=name,
        )
        for start, y, name in ((np.int64(0), x, "first"), (np.int64(1), x + 1, "second"))
    ]
    debugger = loopscope.Debugger(
        graph.model(outputs={"a": found[0][1], "b": found[1][1]}),
        {"n": count(4), "x": np.ones(4, np.float32)},
    )
    debugger.run()
    did = named("doubling", "three").did()
    loop, rows = did.regions[0], np.array([3, 2, 1], np.int64)
    values = [
        replace(loop.values[0], starts=np.array([1], np.int64), rows=rows),
        replace(
            loop.values[1],
            starts=np.full((1, 4), 2, np.float32),
            rows=np.full((3, 4), 4, np.float32),
        ),
    ]
    report = reported(
        "two", replace(did, regions=(replace(loop, values=tuple(values)),)), debugger, ABSENT
    )
    assert [(one.address, one.how) for one in report.regions] == [("main/second", "values")]
    assert report.only_file == ("main/first",)


def test_branches_without_a_name_are_told_apart_by_how_they_went() -> None:
    """OpenVINO calls a cond of TensorFlow If_1, and does not keep the order of two."""
    graph = loopscope.builder.Graph("two")
    x = graph.parameter("x", "f32", [4])
    total = loopscope.builder.ops.reduce_sum(x, [0])
    found = [
        loopscope.builder.cond(asks, lambda: x * 2, lambda: x + 1, name=name)
        for asks, name in ((total > 0, "If_1"), (total < 0, "If_2"))
    ]
    debugger = loopscope.Debugger(
        graph.model(outputs={"a": found[0], "b": found[1]}), {"x": np.ones(4, np.float32)}
    )
    debugger.run()
    did = named("choosing", "then").did()
    first, second = (
        replace(did.regions[0], name=name, taken=taken)
        for name, taken in (("cond", (False,)), ("cond_1", (True,)))
    )
    report = reported("two", replace(did, regions=(first, second)), debugger, ABSENT)
    assert [(one.source, one.address, one.how) for one in report.regions] == [
        ("cond", "main/If_2", "branches"),
        ("cond_1", "main/If_1", "branches"),
    ]


def test_a_whole_number_is_no_truth_value() -> None:
    """ONNX carries the condition of a loop: a number that is not 0 is like it, once it is taken
    for one.
    """
    case = named("recurrent", "rows")
    graph = loopscope.builder.Graph("asks")
    n = graph.parameter("n", "i64", [])
    ends = loopscope.builder.while_loop(
        lambda going, n: going, lambda going, n: (n > 2, n - 1), (n > 0, n), name="while_loop"
    )
    debugger = loopscope.Debugger(graph.model(outputs={"n_end": ends[1]}), {"n": count(3)})
    debugger.run()
    value = replace(
        named("doubling", "three").did().regions[0].values[0], rows=np.array([2, 1], np.int64)
    )
    loop = replace(named("doubling", "three").did().regions[0], counts=(2,), values=(value,))
    did = replace(case.did(), regions=(loop,), outputs=(("n_end", np.array(1)),))
    (region,) = reported("asks", did, debugger, ABSENT).regions
    assert region.values[0].label.endswith("n")
    assert region.values[0].first is None


def test_large_values_are_compared_at_a_sample() -> None:
    from loopscope.peers.source.watching import LARGE, SAMPLED, Watch

    watch = Watch()
    number = watch.declare("scan", "scan", -1, "body", ["h"])
    large = np.arange(2 * LARGE, dtype=np.float32)
    watch.began(number, [large])
    watch.iterated(number, [large + 1])
    column = watch.regions[0].columns[0]
    assert column.shape == (2 * LARGE,)
    assert column.rows[0].shape == (SAMPLED,)
    assert column.rows[0][0] == 1
    assert column.rows[0][-1] == 2 * LARGE


def test_outputs_that_cannot_be_compared_are_an_error() -> None:
    case = named("mapping", "rows")
    did = replace(case.did(), outputs=(("getitem", None),))
    with pytest.raises(
        EngineError,
        match="no output can be compared: 'rows' is not, since the source's value is not a tensor of numbers",
    ):
        beside(case, did)


def test_outputs_that_only_one_of_them_has() -> None:
    """The others are found by their shapes."""
    case = named("recurrent", "rows")
    did = case.did()
    _, (_, rows) = did.outputs
    report = beside(case, replace(did, outputs=(("rows", rows),)))
    assert [(one.name, one.source, one.differs) for one in report.outputs] == [
        ("getitem_1", "rows", False),
        ("getitem", "", False),
    ]
    report = beside(
        case, replace(did, outputs=(("rows", rows), ("more", np.zeros(7)), ("none", None)))
    )
    assert [(one.name, one.source, one.differs, one.left_out) for one in report.outputs] == [
        ("getitem_1", "rows", False, ""),
        ("", "more", False, "the file has no such output"),
        ("", "none", False, "the file has no such output"),
        ("getitem", "", False, "the source has no such output"),
    ]
    assert report.sentence.startswith("The outputs that were compared agree with torch 2.13.0")
    assert "Not compared: the output 'more' (the file has no such output), " in report.sentence


def test_what_only_one_of_them_has_is_told() -> None:
    case, other = named("alternating", "four"), named("choosing", "else")
    run = finished(other.model, other.inputs)
    report = reported("mixed", replace(case.did(), outputs=other.did().outputs), run, ABSENT)
    assert report.only_source == ("while_loop", "while_loop › cond")
    assert report.only_file == (IF, f"{IF}/then/{LOOP}")
    assert (
        "while_loop, while_loop › cond are only in the source; cond/cond › If, " in report.sentence
    )


def test_loops_that_were_not_watched_are_not_called_missing() -> None:
    """TensorFlow 1 has no loops: it lowers them to Enter, Exit and Switch."""
    case, why = (
        named("tf_doubling", "three"),
        "The source's loops are those of TensorFlow 1 (Enter, Exit), which were not watched.",
    )
    report = beside(case, replace(case.did(), regions=(), unwatched=why))
    assert (
        report.sentence
        == f"All outputs agree with TensorFlow 2.21.0. {why} OpenVINO is not beside them: not installed."
    )
    assert report.only_file == ("main/while",)
    report = beside(case, replace(case.did(), unwatched="Run as a whole, and not watched: case."))
    assert " Run as a whole, and not watched: case. " in report.sentence


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nothing.pt2", "'nothing.pt2' is not a source program (there is no such file)"),
        ("nothing", "'nothing' is not a source program (there is no such file)"),
        (__file__, "is not a source program (it is not one)"),
        ("a:b:c", "'a:b:c' is not a source program (there is no such file)"),
    ],
)
def test_what_is_no_source(text: str, why: str) -> None:
    with pytest.raises(InputError) as error:
        source_of(text)
    assert why in str(error.value)
    assert str(error.value).endswith(
        "expected a .pt2 file of torch.export, the folder of a TensorFlow SavedModel, or module:function"
    )


def test_a_framework_that_is_not_there_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, patience = named("doubling", "none"), Patience(60, never)
    model = loopscope.read_model(case.model)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    (tmp_path / "model.pt2").touch()
    (tmp_path / "saved_model.pb").touch()
    for source, extra in (
        (source_of(str(tmp_path / "model.pt2")), "torch"),
        (source_of(str(tmp_path)), "tensorflow"),
    ):
        with pytest.raises(
            EngineError, match=rf"install {extra}: pip install 'loopscope\[{extra}\]'"
        ):
            run_source(source, model, case.inputs, patience)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("import no_such_package\n", "No module named 'no_such_package'"),
        (
            "def make():\n    return 3\n",
            "named_program:make is a value of type int, expected a program of torch or TensorFlow",
        ),
        ("other = 1\n", "the module 'named_program' has no 'make'"),
        ("import torch_that_is_gone\n", "torch_that_is_gone"),
        ("import os\nos._exit(3)\n", "it crashed"),
    ],
)
def test_a_module_that_gives_no_program(
    content: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "named_program.py").write_text(content)
    monkeypatch.chdir(tmp_path)
    case = named("doubling", "none")
    with pytest.raises(EngineError) as error:
        run_source(
            Source("python", "named_program:make"),
            loopscope.read_model(case.model),
            case.inputs,
            Patience(60, never),
        )
    assert str(error.value).startswith("the source program 'named_program:make' does not run: ")
    assert why in str(error.value)


def test_a_program_that_does_not_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "endless_program.py").write_text("while True:\n    pass\n")
    monkeypatch.chdir(tmp_path)
    case = named("doubling", "none")
    model, source = loopscope.read_model(case.model), Source("python", "endless_program:make")
    with pytest.raises(EngineError, match="'endless_program:make' did not run within 1 seconds"):
        run_source(source, model, case.inputs, Patience(1, never))
    with pytest.raises(EngineError, match="'endless_program:make' was stopped before it had run"):
        run_source(source, model, case.inputs, Patience(60, lambda: True))


def test_the_command_tells_both_sides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = named("doubling", "none")
    np.savez(tmp_path / "in.npz", n=case.inputs["n"], x=case.inputs["x"])
    (tmp_path / "source.pt2").touch()
    words = [
        "compare",
        str(case.model),
        "--source",
        str(tmp_path / "source.pt2"),
        "--inputs",
        str(tmp_path / "in.npz"),
    ]
    monkeypatch.setattr("loopscope.peers.source.compare_source.run_source", lambda *_: case.did())
    assert main(words) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "torch: 0 iterations; the file: 1 (while_loop/while_loop › Loop). LS931: "
    )
    assert [line.split("  ")[1:] for line in lines[2:3]] == [
        ["while_loop = while_loop/while_loop › Loop", "0 iterations", "1 iteration", "1 iteration"]
    ]
    assert lines[-1] == "  while_loop is beside main/while_loop%2Fwhile_loop%2FLoop by name"
    assert main([*words, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["agrees"], told["outputs_agree"], told["framework"]) == (
        False,
        False,
        "torch 2.13.0",
    )
    assert [(one["source"], one["there"], one["here"]) for one in told["regions"]] == [
        ("while_loop", [0], [1])
    ]
    assert main([*words[:3], str(tmp_path / "gone.pt2"), *words[4:], "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["agrees"] is None


def test_words() -> None:
    assert ran(tuple(range(12))) == "0, 1, 2, 3, 4, 5, 6, 7, ... iterations"
    assert took((0, 0, 1)) == "else 2 times, then"
