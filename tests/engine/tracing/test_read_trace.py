"""A trace file is untrusted: whatever is in it, it opens or is refused in one sentence."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import loopscope
from loopscope.errors import ReadError
from loopscope.run_file import is_run_file
from loopscope.tracing import read_trace
from loopscope.tracing import trace_format as form
from tests.draws import draws


def block(kind: bytes, data: bytes) -> bytes:
    return struct.pack("<cQ", kind, len(data)) + data


def file_of(*events: Any) -> bytes:
    return form.HEADER + block(b"E", msgspec.msgpack.encode(events))


FACTS = {"digest": "x", "norm": 1.0, "minimum": 0, "maximum": 1, "nans": 0, "infinities": 0}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (form.MAGIC, "does not begin like a trace"),
        (form.MAGIC + struct.pack("<I", 9), "version 9 of the format"),
        (form.HEADER + block(b"X", b""), "unknown block b'X'"),
        (form.HEADER + block(b"E", b"\xff"), "damaged"),
        (form.HEADER + block(b"E", b"\x91" * 2000), "damaged"),
        (form.HEADER + block(b"D", b"123"), "belong to no tensor"),
        (file_of([]), "invalid event"),
        (file_of([99]), "invalid event"),
        (file_of(["x"]), "invalid event"),
        (file_of([form.ITERATION]), "invalid event"),
        (file_of([form.LOOP, "a", -1]), "invalid event"),
        (file_of([form.LOOP, "a"]), "not enough values|invalid event"),
        (file_of([form.LOOP, 7, None]), "has the name 7"),
        (file_of([form.LOOP, "", None]), "has the name ''"),
        (file_of([form.LOOP, "x" * 2000, None]), "at most 1,000 characters"),
        (file_of([form.LOOP, "a", 1], [form.SCALARS, {"x": 1}]), "before the first iteration"),
        (file_of([form.SCALARS, {"x": [1]}]), "invalid event"),
        (file_of([form.SCALARS, [1]]), "invalid event"),
        (file_of([form.TENSOR, "x", "f99", [1], b"1234"]), "unknown type 'f99'"),
        (file_of([form.TENSOR, "x", "string", [1], b"1234"]), "unknown type 'string'"),
        (file_of([form.TENSOR, "x", "f32", [2], b"1234"]), "other than 8 bytes"),
        (file_of([form.TENSOR, "x", "f32", [-1], b"1234"]), "invalid shape"),
        (file_of([form.TENSOR, "x", "f32", [1] * 40, b"1234"]), "invalid shape"),
        (file_of([form.TENSOR, "x", "f32", [2**47, 2**47], b""]), "other than"),
        (file_of([form.LARGE, "x", "f32", [1]], [form.CLOSED]), "invalid event"),
        (file_of([form.FINGERPRINT, "x", "f32", [999], {}, b"1" * 256]), "invalid event"),
        (file_of([form.FINGERPRINT, "x", "f32", [999], FACTS, b"1"]), "other than 256 bytes"),
        (file_of([form.BRANCH, "x", 1]), "invalid event"),
        (file_of([form.END, "left", ""]), "invalid event"),
        (file_of([form.CARRIED, 3]), "invalid event"),
        (file_of(*[[form.LOOP, "a", 1], [form.ITERATION]] * 40), "invalid event"),
        (file_of(*[[form.SCALARS, {f"v{n}": n}] for n in range(20_001)]), "20,000 different"),
    ],
)
def test_what_is_refused(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.loopscope"
    path.write_bytes(data)
    with pytest.raises(ReadError, match=words):
        read_trace(path)


def test_what_is_cut_short_opens() -> None:
    data = file_of([form.LOOP, "a", 5], [form.ITERATION], [form.SCALARS, {"x": 1}])
    more = block(b"E", msgspec.msgpack.encode([[form.ITERATION]]))
    for end in range(len(more)):
        run = loopscope.Debugger(read_trace(data + more[:end]))
        run.run()
        assert run.control_flow[0].iterations == 1
        assert loopscope.verdict(run, "main/a").sentence == (
            "The recording ends after 1 of 5 iterations."
        )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A trace with every kind of event."""
    path = tmp_path_factory.mktemp("traces") / "whole.loopscope"
    with loopscope.trace(path, budget=0.001) as trace:
        trace.record(state=np.zeros(3))
        for step in trace.iterations("loop", range(4)):
            trace.record(state=np.full(3, step), large=np.arange(5000.0), n=step)
            trace.branch("even", step % 2 == 0)
            with trace.loop("inner"):
                trace.record(y=[step], carried="y")
    return path.read_bytes()


@given(st.floats(0, 1), st.integers(0, 255))
@settings(max_examples=draws(300), deadline=None)
def test_a_changed_byte_gives_a_trace_or_one_sentence(
    whole: bytes, place: float, byte: int
) -> None:
    changed = bytearray(whole)
    changed[int(len(form.HEADER) + place * (len(whole) - len(form.HEADER) - 1))] = byte
    try:
        model = read_trace(bytes(changed))
    except ReadError as error:
        sentence = str(error)
        event(sentence[:30])
        return
    assert loopscope.check(model).ok
    debugger = loopscope.Debugger(model)
    debugger.run()
    assert debugger.state == "finished", debugger.failure


def test_hostile_names_are_shown_and_escaped(tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>", "../../x", "a/b[1]:2", "\u202e\x00x", "{0}", "#"]
    path = tmp_path / "names.loopscope"
    with loopscope.trace(path) as trace:
        for name in names:
            for _ in trace.iterations(name, range(2)):
                named: dict[str, Any] = {name: 1}
                trace.record(**named)
                trace.branch(name, True)
    run = loopscope.Debugger(loopscope.read_model(path))
    run.run()
    assert run.state == "finished"
    loops = [record for record in run.control_flow if record.kind == "Loop"]
    assert len(loops) == len(names)
    for record in loops:
        assert loopscope.verdict(run, record.address).sentence == "Ran all 2 iterations."


def test_a_saved_run_and_a_trace_are_told_apart_by_their_content(tmp_path: Path) -> None:
    trace, run = tmp_path / "trace.loopscope", tmp_path / "run.loopscope"
    trace.write_bytes(file_of([form.SCALARS, {"x": 1}]))
    run.write_bytes(b"PK\x03\x04")
    assert not is_run_file(str(trace))
    assert not is_run_file("x.loopscope", trace.read_bytes())
    assert is_run_file(str(run))
    assert loopscope.load(trace).value("main/x") == 1
