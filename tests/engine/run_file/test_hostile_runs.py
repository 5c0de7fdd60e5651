"""Runs that somebody has tampered with, hashes and all: they give our errors and nothing else,
within bounds of memory.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
import tempfile
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopscope
from loopscope import builder
from loopscope.errors import EngineError, ReadError
from loopscope.executor.plan.plan import LoopRegion
from loopscope.explain import verdict
from loopscope.run_file import loading
from loopscope.run_file.recording_codec import RecordedTypes
from loopscope.run_file.run_archive import array_bytes, array_of, digest
from tests.draws import draws, share
from tests.engine.run_file.test_recorded_runs import addresses
from tests.engine.run_file.test_stored_files import STORED

MOST_MEMORY = 256 * 2**20
LIMITS = loopscope.Limits(iterations=2000, seconds=2, memory_bytes=2**26)
DEEP = b"[" * 100_000 + b"]" * 100_000


def contents(name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(STORED / name) as archive:
        return {one: archive.read(one) for one in archive.namelist()}


WHOLE, BARE = contents("version_2.loopscope"), contents("version_2_without_weights.loopscope")


def packed(entries: dict[str, bytes], *, rehash: bool = True) -> bytes:
    entries = dict(entries)
    if rehash:
        try:
            data = json.loads(entries["run.json"])
            data["files"] = {
                name: digest(content) for name, content in entries.items() if name != "run.json"
            }
            entries["run.json"] = json.dumps(data).encode()
        except (ValueError, RecursionError, TypeError, KeyError):
            pass
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def look(data: bytes) -> bool:
    """Opens a run and looks around in it, as the app does; whether it opened. Anything but our
    errors is a failure of the test.
    """
    refused = ""
    try:
        run = loading.resume(loading.read_run(data), limits=LIMITS)
    except EngineError as error:
        refused = str(error)
    assert "\n" not in refused
    assert len(refused) < 3000
    for ask in () if refused else questions(run):
        with warnings.catch_warnings(), contextlib.suppress(EngineError):
            warnings.simplefilter("ignore")
            ask()
    return not refused


def questions(run: loopscope.Debugger) -> Iterator[Callable[[], object]]:
    yield lambda: run.cursor
    yield lambda: list(zip(run.control_flow, range(20), strict=False))
    yield lambda: [run.frames(), run.statuses()]
    for step in (0, run.steps // 2, run.steps):
        yield partial(run.seek, step)
        yield lambda: run.scene()
    for address in addresses(run):
        yield partial(run.value, address)
    yield lambda: verdict(run, "main/for_each_word")
    yield lambda: run.value("main/for_each_word[1]/body/next_word")
    yield lambda: run.step()
    yield lambda: run.run()
    yield lambda: run.result.outputs


def test_what_is_looked_at_opens_when_nobody_has_tampered() -> None:
    assert look(packed(WHOLE))
    assert look(packed(BARE))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, inner in (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    ):
        yield from places(inner, (*path, key))


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    data = copy.deepcopy(data)
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return data


BOUNDED = settings(max_examples=draws(150), deadline=None, suppress_health_check=list(HealthCheck))


@BOUNDED
@given(st.data())
def test_any_field_may_be_anything(data: st.DataObject) -> None:
    entries = dict(data.draw(st.sampled_from([WHOLE, BARE])))
    name = data.draw(st.sampled_from(["run.json", "recording.json"]))
    document = json.loads(entries[name])
    path = data.draw(st.sampled_from(sorted(places(document), key=str)))
    near = st.sampled_from([0, 1, 2, 3, 5, 10**6, 2**62, -1])
    entries[name] = json.dumps(replaced(document, path, data.draw(JSON | near))).encode()
    look(packed(entries))


@BOUNDED
@given(st.data())
def test_any_array_may_hold_anything(data: st.DataObject) -> None:
    entries = dict(data.draw(st.sampled_from([WHOLE, BARE])))
    name = data.draw(st.sampled_from(sorted(one for one in entries if one.endswith(".npy"))))
    array = array_of(entries[name])
    made = data.draw(
        st.sampled_from(
            [
                array.reshape(-1)[:-1],
                np.concatenate([array.reshape(-1)] * 2),
                array.astype(np.float64) if array.dtype.kind != "U" else array[()],
                np.full(array.shape, np.iinfo(np.int64).max),
                np.full(array.shape, -1),
                np.zeros((0,), array.dtype),
                np.array("text"),
                np.zeros((2, 3, 4), array.dtype),
            ]
        )
    )
    entries[name] = array_bytes(np.asarray(made))
    look(packed(entries))


@BOUNDED
@given(st.data())
def test_bytes_may_be_flipped_and_entries_lost_doubled_or_exchanged(data: st.DataObject) -> None:
    entries = dict(data.draw(st.sampled_from([WHOLE, BARE])))
    names = st.sampled_from(sorted(entries))
    name, other = data.draw(names), data.draw(names)
    match data.draw(st.sampled_from(["flip", "lose", "exchange", "cut"])):
        case "flip":
            content = bytearray(entries[name])
            for at, byte in data.draw(
                st.lists(
                    st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)),
                    min_size=1,
                    max_size=4,
                )
            ):
                content[at] = byte
            entries[name] = bytes(content)
        case "lose":
            del entries[name]
        case "exchange":
            entries[name], entries[other] = entries[other], entries[name]
        case _:
            entries[name] = entries[name][: data.draw(st.integers(0, len(entries[name])))]
    whole = packed(entries)
    look(whole)
    look(whole[: data.draw(st.integers(0, len(whole)))])


def bomb(name: str, size: int) -> Callable[[], bytes]:
    return lambda: packed({**WHOLE, name: bytes(size)})


def many_iterations() -> bytes:
    """A loop of 2 ** 40 iterations, and one of as many as are allowed."""
    entries = dict(WHOLE)
    counts = next(name for name in entries if "branches" in name).replace("branches.1", "counts.0")
    return packed(
        {
            **entries,
            counts: array_bytes(np.array([2**40])),
            counts.replace("counts", "endings"): array_bytes(np.zeros(1, np.uint8)),
        }
    )


def lying_header(descr: str, length: int) -> bytes:
    text = (
        f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({length},), }}".encode().ljust(
            117
        )
        + b"\n"
    )
    return packed(
        {
            **WHOLE,
            "inputs/0.npy": b"\x93NUMPY\x01\x00"
            + len(text).to_bytes(2, "little")
            + text
            + bytes(8 if descr == "<f8" else 0),
        }
    )


def wide_shapes() -> bytes:
    """Ragged values whose shapes promise what no memory holds."""
    recording = json.loads(WHOLE["recording.json"])
    row = next(iter(recording["rows"]))
    slot = next(iter(recording["rows"][row]["columns"]))
    recording["rows"][row]["columns"][slot] = {"ragged": 1}
    recording["rows"][row]["rows"] = 1
    more = {
        "recording.json": json.dumps(recording).encode(),
        f"recording/column.{row}.{slot}.npy": array_bytes(np.zeros(1)),
        f"recording/column.{row}.{slot}.shapes.npy": array_bytes(np.array([[2**40, 2**40]])),
    }
    return packed({**WHOLE, **more})


def two_of_one_name() -> bytes:
    buffer = io.BytesIO(packed(WHOLE))
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("run.json", WHOLE["run.json"])
    return buffer.getvalue()


@pytest.mark.parametrize(
    "made",
    [
        bomb("run.json", 64 * 2**20),
        bomb("recording.json", 64 * 2**20),
        lambda: packed({**WHOLE, "run.json": DEEP}),
        lambda: packed({**WHOLE, "recording.json": DEEP}),
        lambda: packed({**WHOLE, "recording.json": b'{"layout": ' + b"9" * 10_000 + b"}"}),
        lambda: packed({**WHOLE, "recording/../../x.npy": b"x"}),
        lambda: packed({**WHOLE, "model/model.xml": b"<net>" * 200_000}),
        many_iterations,
        partial(lying_header, "<f8", 10**12),
        partial(lying_header, "<U0", 2**27),
        wide_shapes,
        two_of_one_name,
    ],
)
@pytest.mark.measured
def test_bombs_and_lies_take_little_memory(made: Callable[[], bytes]) -> None:
    data = made()
    tracemalloc.start()
    try:
        look(data)
        assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    finally:
        tracemalloc.stop()


def _saved(
    model: str, inputs: list[object], steps: int | None, *, weights: bool = True
) -> dict[str, bytes]:
    """The entries of a saved run that has come so far."""
    debugger = loopscope.Debugger(loopscope.read_model(f"sample_models/{model}/model.xml"), inputs)
    if steps is None:
        debugger.run()
    else:
        debugger.seek(steps)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.loopscope"
        loopscope.save(debugger, path, weights=weights)
        with zipfile.ZipFile(path) as archive:
            return {one: archive.read(one) for one in archive.namelist()}


RUNS: dict[str, Callable[[], dict[str, bytes]]] = {
    "stored": lambda: WHOLE,
    "without weights": lambda: BARE,
    "collatz, without weights": lambda: _saved("collatz", [27], 50, weights=False),
    "gcd": lambda: _saved("gcd", [48, 18], None, weights=False),
}


def other_arrays(array: np.ndarray) -> Iterator[np.ndarray]:
    """Arrays of other shapes and types, as near to the recorded one as they can be."""
    flat = array.reshape(-1)
    rows = len(array) if array.ndim else 1
    yield from (
        np.zeros(shape, array.dtype) for shape in ((0,), (rows, 0), (0, rows), (rows, 2), ())
    )
    yield from (flat[:-1], array[None])
    if array.dtype.kind not in "US":
        for dtype in ("c16", "f2", "f8", "i1", "?", "M8[s]"):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield array.astype(dtype)
    yield np.full(array.shape, "x")


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_every_array_may_have_another_type_or_shape_or_be_gone(name: str) -> None:
    entries = RUNS[name]()
    assert look(packed(entries))
    arrays = [one for one in entries if one.endswith(".npy")]
    for number, one in enumerate(arrays):
        look(packed({other: content for other, content in entries.items() if other != one}))
        for array in share(list(other_arrays(array_of(entries[one]))), first=number % 2):
            look(packed({**entries, one: array_bytes(np.asarray(array))}))


def _column(entries: dict[str, bytes]) -> str:
    return next(name for name in entries if re.fullmatch(r"recording/column\.\d+\.\d+\.npy", name))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda column: column.astype(np.complex128),
            "its recording has complex128 [] as main/while_not_one/body/",
        ),
        (
            lambda column: column.astype(np.float32),
            "its recording has f32 [] as main/while_not_one/body/",
        ),
        (
            lambda column: np.zeros((len(column), 0), column.dtype),
            "its recording has i64 [0] as main/while_not_one/body/",
        ),
        (lambda column: np.full(len(column), "x"), " as main/while_not_one/body/"),
    ],
)
def test_a_column_that_no_run_records_is_one_sentence(
    change: Callable[[np.ndarray], np.ndarray], expected: str
) -> None:
    entries = _saved("collatz", [27], None, weights=False)
    name = _column(entries)
    entries[name] = array_bytes(change(array_of(entries[name])))
    with pytest.raises(ReadError, match=re.escape(expected)) as refused:
        loading.resume(loading.read_run(packed(entries)))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(0, np.int64),
        np.zeros(2, np.int64),
        np.zeros((), np.complex64),
        np.zeros((1, 0), np.int64),
    ],
)
def test_a_trip_count_that_no_loop_takes_is_refused(value: np.ndarray) -> None:
    """The model says neither type nor shape of it, so that only the loop knows them."""
    graph = builder.Graph("counted")
    n = graph.parameter("n", "i64")
    (last,) = builder.while_loop(
        lambda y: True, lambda y: y + 1, [graph.constant(0)], maximum_iterations=n * 1
    )
    debugger = loopscope.Debugger(graph.model(last), [3])
    (region,) = (one.region for _, one in debugger.plan.regions)
    assert isinstance(region, LoopRegion)
    assert region.trip_count is not None
    types = RecordedTypes(debugger.plan)
    types.expect(region.trip_count, np.array(3))
    with pytest.raises(ValueError, match=r"its recording has .* as main/.*, expected"):
        types.expect(region.trip_count, value)
