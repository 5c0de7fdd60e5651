"""What a program records is what the trace shows."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopscope
from loopscope.errors import InputError
from loopscope.ir.address import nodes
from loopscope.tracing import IDLE, import_dumps, trace_format


def shown(path: Path) -> loopscope.Debugger:
    """The run that shows a trace."""
    debugger = loopscope.Debugger(loopscope.read_model(path))
    debugger.run()
    assert debugger.state == "finished", debugger.failure
    return debugger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "decode.loopscope"


def test_a_loop_that_a_decision_ends(path: Path) -> None:
    with loopscope.trace(path) as trace:
        for step in trace.iterations("decode", range(200)):
            trace.record(state=np.full(3, step, np.float32), loss=step / 2)
            if trace.branch("stop", step == 136):
                break
    run = shown(path)
    assert loopscope.verdict(run, "main/decode").sentence == (
        "Ended after 137 of 200 iterations: `stop` was true."
    )
    assert run.control_flow[0].iterations == 137
    assert run.value("main/decode[7]/body/state").tolist() == [7, 7, 7]
    assert run.value("main/decode[7]/body/loss") == 3.5
    assert [record.branch for record in run.control_flow[1:]] == ["else"] * 136 + ["then"]


@pytest.mark.parametrize(
    ("ending", "sentence"),
    [
        ("all", "Ran all 3 iterations."),
        ("reason", "Ended after 1 of 3 iterations: the budget is spent."),
        ("leave", "Ended after 1 of 3 iterations: the program left the loop."),
        ("raise", "Ended after 1 of 3 iterations: the program raised ValueError: wrong."),
    ],
)
def test_endings(path: Path, ending: str, sentence: str) -> None:
    try:
        with loopscope.trace(path) as trace:
            for number in trace.iterations("loop", [1, 2, 3]):
                trace.record(number=number)
                if ending == "reason":
                    trace.ended("the budget is spent")
                if ending == "raise":
                    raise ValueError("wrong")
                if ending != "all":
                    break
    except ValueError:
        assert ending == "raise"
    assert loopscope.verdict(shown(path), "main/loop").sentence == sentence


def test_a_while_loop_by_turns_and_loops_in_loops(path: Path) -> None:
    with loopscope.trace(path) as trace:
        for outer in trace.iterations("outer", range(5)):
            inner = 0
            while trace.branch("go", inner < outer % 3):
                with trace.loop("search"):
                    trace.record(inner=inner)
                    inner += 1
            trace.record(sum=inner)
    run = shown(path)
    counts = [r.iterations for r in run.control_flow if r.address.endswith("search")]
    assert counts == [0, 1, 2, 0, 1]
    assert run.value("main/outer[4]/body/search[0]/body/inner") == 0
    assert run.value("main/outer[2]/body/search[1]/body/inner") == 1
    sentences = [
        loopscope.verdict(run, f"main/outer[{outer}]/body/search").sentence for outer in (0, 2)
    ]
    assert sentences == [
        "Did not run: the program did not reach this loop.",
        "Ended after 2 iterations: `go` was false.",
    ]


def test_carried_values_are_found_by_name_or_marked(path: Path) -> None:
    with loopscope.trace(path) as trace:
        trace.record(state=10)
        for step in trace.iterations("loop", range(3)):
            trace.record(state=step)
            trace.record(memory=step * 2, carried="memory")
    run = shown(path)
    assert [run.value(f"main/loop[{step}]/body/state_before") for step in range(3)] == [10, 0, 1]
    assert run.value("main/loop[2]/body/memory_before") == 2
    assert not isinstance(run.value("main/loop[0]/body/memory_before"), (int, float, np.generic))


def test_what_an_iteration_lacks_is_absent_and_a_repeated_name_gets_a_number(path: Path) -> None:
    with loopscope.trace(path) as trace:
        for step in trace.iterations("loop", range(40)):
            if step % 4 == 1:
                trace.record(rare=np.arange(step))
            trace.record(twice=step)
            trace.record(twice=-step)
    run = shown(path)
    assert run.value("main/loop[5]/body/rare").tolist() == [0, 1, 2, 3, 4]
    assert run.value("main/loop[6]/body/rare") is None
    assert [run.value(f"main/loop[6]/body/twice{end}") for end in ("", "#2")] == [6, -6]


@pytest.mark.parametrize(
    "dtype",
    [
        np.float16,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
        np.int8,
        np.uint64,
        np.bool_,
    ],
)
def test_types_are_kept(path: Path, dtype: Any) -> None:
    values = np.array([[0, 1], [1, 0]]).astype(dtype)
    with loopscope.trace(path) as trace:
        for _ in trace.iterations("loop", range(2)):
            trace.record(x=values, scalar=values[0, 1], none=values[:0])
    run = shown(path)
    stored = run.value("main/loop[1]/body/x")
    assert stored.dtype == values.dtype
    assert stored.tobytes() == values.tobytes()
    assert np.asarray(run.value("main/loop[1]/body/scalar")).dtype == values.dtype
    assert run.value("main/loop[1]/body/none").shape == (0, 2)


class Tensor:
    """A tensor of another framework: it only has the protocol of DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_other_frameworks_and_complex_numbers(path: Path) -> None:
    with loopscope.trace(path) as trace:
        trace.record(dlpack=Tensor(np.arange(3)), listed=[1, 2], z=np.array([1 + 2j]))
        with pytest.raises(InputError, match=r"the value of 'text' is builtins\.str"):
            trace.record(text="no number")
        trace.record(large=2**70)
    run = shown(path)
    assert run.value("main/dlpack").tolist() == [0, 1, 2]
    assert run.value("main/z.imag").tolist() == [2]
    assert run.value("main/large") == 2.0**70


def test_later_changes_of_an_array_are_not_recorded(path: Path) -> None:
    state = np.zeros(4)
    large = np.zeros(10_000)
    with loopscope.trace(path) as trace:
        for _ in trace.iterations("loop", range(3)):
            trace.record(state=state, large=large)
            state += 1
            large += 1
    run = shown(path)
    for name in ("state", "large"):
        assert [run.value(f"main/loop[{step}]/body/{name}")[0] for step in range(3)] == [0, 1, 2]


def test_values_beyond_the_budget_become_fingerprints(path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((6, 1000)).astype(np.float32)
    with loopscope.trace(path, budget=0.01) as trace:
        for row in trace.iterations("loop", rows):
            trace.record(x=row)
    model = loopscope.read_model(path)
    (note,) = model.notes
    assert note == (
        "4 values of `x` in `loop` are beyond the budget of the trace: 64 sampled elements and "
        "their norm represent each of them."
    )
    run = shown(path)
    assert run.value("main/loop[1]/body/x").tolist() == rows[1].tolist()
    assert run.value("main/loop[2]/body/x").shape == (64,)
    assert run.value("main/loop[2]/body/x")[-1] == rows[2, -1]
    assert path.stat().st_size < 12_000


def test_a_trace_of_a_killed_program_opens_up_to_there(path: Path) -> None:
    program = (
        "import sys, time, numpy as np, loopscope\n"
        "with loopscope.trace(sys.argv[1]) as trace:\n"
        "    for step in trace.iterations('loop', range(1000)):\n"
        "        trace.record(x=np.full(4000, step), n=step)\n"
        "        print(step, flush=True)\n"
        "        time.sleep(0.02)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 20:
                process.send_signal(signal.SIGKILL)
                break
    run = shown(path)
    count = run.control_flow[0].iterations or 0
    assert count >= 15
    assert run.value("main/loop[9]/body/x")[0] == 9
    assert loopscope.verdict(run, "main/loop").sentence == (
        f"The recording ends after {count} of 1,000 iterations."
    )


def test_off_by_the_switch_or_without_a_context(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert loopscope.trace() is IDLE
    monkeypatch.setenv("LOOPSCOPE_TRACE", "0")
    with loopscope.trace(path) as trace:
        assert trace is IDLE
        items = [1, 2]
        assert trace.iterations("loop", items) is items
        assert trace.branch("stop", True) is True
        with trace.loop("turn"):
            trace.record(x=object())
        trace.ended("never")
    assert not path.exists()


def test_the_open_trace_without_a_path(path: Path) -> None:
    with loopscope.trace(path) as trace:
        assert loopscope.trace() is trace
        loopscope.trace().record(x=1)
    assert shown(path).value("main/x") == 1


def test_another_file_is_not_replaced_but_a_trace_is(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(b"weights")
    with pytest.raises(InputError, match="is not a trace"):
        loopscope.trace(other)
    assert other.read_bytes() == b"weights"
    for _ in range(2):
        with loopscope.trace(path) as trace:
            trace.record(x=1)
    with pytest.raises(InputError, match="cannot be written"):
        loopscope.trace(tmp_path / "nowhere" / "x.loopscope")


def record_arrays(path: Path) -> None:
    with loopscope.trace(path) as trace:
        for step in trace.iterations("loop", range(9)):
            trace.record(x=np.full(4000, step))


def test_a_full_disk_ends_the_trace_and_not_the_program(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trace opens with what was written before."""
    write = os.write
    sizes: list[int] = []

    def limited(descriptor: int, data: Any) -> int:
        if sum(sizes) + len(data) > 100_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        sizes.append(len(data))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", limited)
    with pytest.warns(RuntimeWarning, match="ends here, because it cannot be written: No space"):
        record_arrays(path)
    run = shown(path)
    assert run.control_flow[0].iterations in (3, 4)
    assert run.value("main/loop[2]/body/x")[0] == 2


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the trace .* cannot be written"):
        loopscope.trace(tmp_path)


def test_a_trace_that_nobody_closes_is_written_at_the_end_of_the_program(path: Path) -> None:
    program = (
        "import sys, numpy as np, loopscope\n"
        "trace = loopscope.trace(sys.argv[1])\n"
        "for step in trace.iterations('loop', range(3)):\n"
        "    trace.record(x=np.full(4000, step))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, str(path)], env=environment, check=True)
    run = shown(path)
    assert run.control_flow[0].iterations == 3
    assert run.value("main/loop[2]/body/x")[0] == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_does_not_write_to_the_trace(path: Path) -> None:
    with loopscope.trace(path) as trace:
        for step in trace.iterations("loop", range(3)):
            trace.record(x=np.full(4000, step))
            child = os.fork()
            if child == 0:
                trace.record(x=np.zeros(4000))
                trace.__exit__(None, None, None)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    run = shown(path)
    assert [run.value(f"main/loop[{step}]/body/x")[0] for step in range(3)] == [0, 1, 2]
    assert "x#2" not in {node.name for _, node in nodes(run.model)}


def test_more_than_may_wait_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_format, "_MAX_WAITING_BYTES", 100_000)
    record_arrays(path)
    run = shown(path)
    assert [run.value(f"main/loop[{step}]/body/x")[-1] for step in range(9)] == [*range(9)]


Steps = st.recursive(
    st.lists(st.integers(-3, 3), max_size=3),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=12,
)


@given(Steps)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_nest_of_loops_comes_back(path: Path, nest: Any) -> None:
    """Loops of drawn depth and counts, also zero: each value is at its address."""
    expected: dict[str, int] = {}

    def walk(trace: Any, items: Any, graph: str, depth: int) -> None:
        for number, item in enumerate(trace.iterations(f"loop{depth}", items)):
            body = f"{graph}/loop{depth}[{number}]/body"
            if isinstance(item, list):
                walk(trace, item, body, depth + 1)
            else:
                trace.record(value=item)
                expected[f"{body}/value"] = item

    with loopscope.trace(path) as trace:
        walk(trace, nest, "main", 0)
    run = shown(path)
    assert {address: run.value(address) for address in expected} == expected


def dumps(folder: Path) -> Iterator[tuple[int, int]]:
    for step in range(12):
        for layer in range(2):
            np.save(folder / f"h_layer{layer}_step{step}.npy", np.full(2, 10 * step + layer))
            yield step, layer


def test_dumped_files_become_loops(tmp_path: Path, path: Path) -> None:
    assert len([*dumps(tmp_path)]) == 24
    np.save(tmp_path / "logits_step3.npy", np.ones(1))
    patterns = ["{name}_layer{layer}_step{step}.npy", "{name}_step{step}.npy"]
    assert import_dumps(tmp_path, patterns, path) == 25
    run = shown(path)
    assert run.value("main/step[11]/body/layer[1]/body/h").tolist() == [111, 111]
    assert run.value("main/step[3]/body/logits").tolist() == [1]
    assert run.value("main/step[4]/body/logits") is None
