"""Users of one server, one after the other and side by side: what a session held comes back, and
all of them together stay in bounds.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope_app.actions.memory_budget import GAVE_UP
from loopscope_app.state.background_run import OUT_OF_MEMORY
from tests.app.serving import ROOT, SOURCES, serving_process
from tests.app.visitor import Visitor

pytestmark = [
    pytest.mark.measured,
    pytest.mark.skipif(
        sys.platform != "linux", reason="the memory of another process is read from /proc"
    ),
]
MEGABYTE = 2**20
LONG = 60.0


@dataclass(frozen=True)
class Server:
    address: str
    process: subprocess.Popen[bytes]

    def megabytes(self) -> float:
        """What the process has of the machine's memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * 4096 / MEGABYTE

    def shrinks_to(self, megabytes: float) -> bool:
        """Whether it comes down to so much before long: sessions end some time after their page
        was closed.
        """
        deadline = time.monotonic() + LONG
        while time.monotonic() < deadline:
            if self.megabytes() <= megabytes:
                return True
            time.sleep(0.2)
        return False


@contextlib.contextmanager
def serving(
    seconds: float,
    megabytes: int,
    left_alone: float = 30,
    of_one: int = 0,
    of_all: int | None = None,
    own: bool = False,
) -> Iterator[Server]:
    """Of a run's values ``of_one`` megabytes may be held, ``of_all`` is what the process may
    take. ``own``: files of this machine open.
    """
    given = [
        *(str(one) for one in (seconds, megabytes, left_alone, of_one)),
        *(["--local"] if own else []),
    ]
    bound = [] if of_all is None else ["prlimit", f"--data={of_all * MEGABYTE}"]
    command = [*bound, sys.executable, "-m", "tests.app.small_server", *given]
    with serving_process(
        command, folder=ROOT, environment={**os.environ, "PYTHONPATH": SOURCES}
    ) as (address, process):
        yield Server(address, process)


def loop_model(
    nodes: list[onnx.NodeProto], trips: int, joined: bool, length: int = 1 << 18
) -> bytes:
    """A loop that works on a vector of so many elements (1 MB) so many times, and joins what it
    gives where that is wanted.
    """
    state, out = (
        helper.make_tensor_value_info("s", TensorProto.FLOAT, [None]),
        helper.make_tensor_value_info("out", TensorProto.FLOAT, [None]),
    )
    number, go = (
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
    )
    going = helper.make_tensor_value_info("going", TensorProto.BOOL, [])
    nodes = [helper.make_node("Identity", ["go"], ["going"]), *nodes]
    if joined:
        nodes.append(helper.make_node("Identity", ["out"], ["part"]))
    parts = [helper.make_tensor_value_info("part", TensorProto.FLOAT, [None])] if joined else []
    body = helper.make_graph(nodes, "body", [number, go, state], [going, out, *parts])
    made = ["y", "parts"] if joined else ["y"]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in made]
    graph = helper.make_graph(
        [
            helper.make_node("Constant", [], ["trips"], value_int=trips),
            helper.make_node("Constant", [], ["length"], value_ints=[length]),
            helper.make_node("Expand", ["x", "length"], ["begin"]),
            helper.make_node("Loop", ["trips", "", "begin"], made, body=body),
        ],
        "near the limits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        outputs,
    )
    document: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    ).SerializeToString()
    return document


DOUBLE = helper.make_node("Concat", ["s", "s"], ["out"], axis=0)
NEGATE = helper.make_node("Neg", ["s"], ["out"])
EXPANDS = loop_model([DOUBLE], 7, joined=False)
"""To 128 MB, after 64, 32, ...: 256 together."""
COLLECTS = loop_model([NEGATE], 120, joined=True)
"""120 parts of 1 MB, which are recorded too: 240 together."""
EXPANDS_MOST = loop_model([DOUBLE], 8, joined=False, length=240_000)
"""468 of the 512 MB that a server lets a run hold."""
COLLECTS_MOST = loop_model([NEGATE], 240, joined=True)
"""480 of them."""


def visit(server: Server, data: bytes) -> list[str]:
    """Opens a page, uploads a model, runs it and closes the page; gives what the page refused."""
    with Visitor(server.address) as visitor:
        visitor.upload("opener_upload", "mine.onnx", data)
        visitor.press("transport_run")
        visitor.wait()
        return visitor.messages.copy()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_many_visitors_leave_next_to_nothing() -> None:
    with serving(seconds=0.5, megabytes=2000, of_one=270) as server:  # near which they come
        before = server.megabytes()
        most = 0.0
        for number in range(24):
            assert visit(server, (EXPANDS, COLLECTS)[number % 2]) == []
            most = max(most, server.megabytes())
        assert most > before + 250, "the models are large enough to tell"
        assert server.shrinks_to(before + 300)
        assert server.megabytes() < before + 300


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_after_three_visitors_at_the_limits_a_sample_opens() -> None:
    with serving(seconds=0.5, megabytes=4000) as server:
        before = server.megabytes()
        for data in (EXPANDS_MOST, COLLECTS_MOST, EXPANDS_MOST):
            assert visit(server, data) == []
        with Visitor(server.address, "model=sample:collatz") as newcomer:
            assert newcomer.messages == []
            assert "transport_run" in newcomer.widgets
        assert server.shrinks_to(before + 300)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_where_no_memory_is_left_one_run_fails_and_a_sample_opens() -> None:
    with (
        serving(seconds=60, megabytes=4000, of_all=1200) as server,
        contextlib.ExitStack() as pages,
    ):
        told = []
        for _ in range(2):
            visitor = pages.enter_context(Visitor(server.address))
            visitor.upload("opener_upload", "mine.onnx", COLLECTS_MOST)
            visitor.press("transport_run")
            visitor.wait()
            told.append(" ".join(visitor.messages))
        assert told[0] == ""
        # Which allocation is the one too many differs between runs: an operation's output, or what
        # is collected of it.
        assert re.match(r"(Neg-13 failed: )?out of memory\b", told[1])
        assert told[1].endswith(OUT_OF_MEMORY)
        newcomer = pages.enter_context(Visitor(server.address, "model=sample:collatz"))
        assert newcomer.messages == []
        newcomer.press("transport_run")
        newcomer.wait()
        assert newcomer.messages == []


def test_beyond_the_budget_the_oldest_run_gives_up_its_values_and_others_open() -> None:
    with (
        serving(seconds=60, megabytes=400, left_alone=0) as server,
        contextlib.ExitStack() as pages,
    ):
        first, second = (pages.enter_context(Visitor(server.address)) for _ in range(2))
        for visitor in (first, second):
            visitor.upload("opener_upload", "mine.onnx", COLLECTS)
            visitor.press("transport_run")
            visitor.wait()
        newcomer = pages.enter_context(Visitor(server.address, "model=sample:collatz"))
        assert newcomer.messages == []
        assert "transport_run" in newcomer.widgets
        time.sleep(3)  # in which the server looks
        for visitor, told in ((second, []), (first, [GAVE_UP])):
            visitor.rerun()
            assert visitor.messages == told
        first.press("transport_step")
        assert first.messages == [], "it was told once"


def test_what_is_uploaded_goes_with_its_session() -> None:
    with serving(seconds=0.5, megabytes=2000) as server:
        with Visitor(server.address, "model=sample:collatz"):
            pass
        before = server.megabytes()
        for _ in range(4):
            with Visitor(server.address) as visitor:
                visitor.upload("opener_upload", "mine.onnx", bytes(90 * MEGABYTE))
                assert "binary data of an unknown kind" in visitor.messages[0]
        assert server.shrinks_to(before + 60)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ten_models_of_a_day_are_given_back(tmp_path: Path) -> None:
    """Each has weights of 60 MB that lie at odd places of their file, so that its plan copies
    them when it runs.
    """
    graph = builder.Graph("day")
    value = graph.parameter("x", "f32", [4, 1252])
    for _ in range(10):
        value = ops.relu(ops.matmul(value, np.ones((1252, 1252), np.float32)))
    loopscope.write_model(graph.model(value), tmp_path / "day.xml")
    text = re.sub(
        r'offset="(\d+)"',
        lambda found: f'offset="{int(found[1]) + 1}"',
        (tmp_path / "day.xml").read_text(),
    )
    weights = b"x" + (tmp_path / "day.bin").read_bytes()
    with serving(seconds=0.5, megabytes=8000, own=True) as server:
        with Visitor(server.address, "model=sample:collatz"):
            pass
        before, most = server.megabytes(), 0.0
        for number in range(10):
            path = tmp_path / f"model_{number}.xml"
            path.write_text(text)
            path.with_suffix(".bin").write_bytes(weights)
            with Visitor(server.address, f"model={path}") as visitor:
                visitor.press("transport_run")
                visitor.wait()
                assert visitor.messages == []
                most = max(most, server.megabytes())
        assert most > before + 100, "the models are large enough to tell"
        assert server.shrinks_to(before + 150), (
            f"{server.megabytes():.0f} MB are held, {before:.0f} were before"
        )
