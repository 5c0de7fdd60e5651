"""Worker processes of a sweep: they listen nowhere, a lost worker costs nothing, and they end
with the sweep.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import loopscope
from loopscope.errors import EngineError
from loopscope.ops import custom
from loopscope.ops.catalogue import CATALOGUE
from loopscope.sweeps import process_pool
from loopscope.sweeps.job import Stop, SweepJob, rows_in_parallel
from loopscope.sweeps.process_pool import ProcessPool
from tests.engine.sweeps.chunks import numbers_of, order_and_chunks

pytestmark = pytest.mark.slow

LISTENS = "0A"
"""The state of a listening socket in Linux's tables."""

ENDING = """
import multiprocessing
import os

from loopscope.ops.declare import Operation
from loopscope.ops.infer import same


def ending(values, /):
    if multiprocessing.parent_process() is not None:
        os._exit(9)
    return values


OPERATIONS = (Operation(name="Ending", version=1, opsets=(1, 17), opset="extension", page="", kernel=ending, infer=same, attributes=()),)
"""


def listening_sockets(processes: list[int]) -> set[str]:
    """Return the TCP sockets, by inode, on which any of some processes listens."""
    listening = set[str]()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        rows = [line.split() for line in Path(table).read_text(encoding="ascii").splitlines()[1:]]
        listening |= {row[9] for row in rows if row[3] == LISTENS}
    links = [
        str(file.readlink())
        for process in processes
        for file in Path(f"/proc/{process}/fd").iterdir()
        if file.is_symlink()
    ]
    return {link.removeprefix("socket:[").removesuffix("]") for link in links} & listening


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="this system has no /proc/net/tcp")
def test_no_process_of_a_sweep_listens_on_tcp() -> None:
    order, batches = order_and_chunks()
    before = listening_sockets([os.getpid()])
    rows = rows_in_parallel(ProcessPool(order, 2), iter(batches), Stop())
    first = next(rows)
    workers = [process.pid or 0 for process in multiprocessing.active_children()]
    assert len(workers) == 2
    assert listening_sockets([os.getpid(), *workers]) == before
    assert numbers_of([first, *rows]) == list(range(1, 161))


def test_a_lost_worker_has_its_chunks_done_again() -> None:
    order, batches = order_and_chunks()
    pool = ProcessPool(order, 2)
    rows = rows_in_parallel(pool, iter(batches), Stop())
    first = next(rows)
    os.kill(next(one.process.pid for one in pool._workers if one.is_ready) or 0, signal.SIGKILL)
    assert numbers_of([first, *rows]) == list(range(1, 161))
    assert not multiprocessing.active_children()


def test_a_worker_that_is_killed_while_it_starts_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = process_pool._start

    def killed() -> process_pool._Worker:
        worker = start()
        os.kill(worker.process.pid or 0, signal.SIGKILL)
        return worker

    monkeypatch.setattr(process_pool, "_start", killed)
    order, batches = order_and_chunks()
    with pytest.raises(EngineError, match=r"exit code -9\): another process or a lack of memory"):
        next(rows_in_parallel(ProcessPool(order, 1), iter(batches), Stop()))


def test_a_sweep_that_is_left_ends_its_processes() -> None:
    order, batches = order_and_chunks()
    rows = rows_in_parallel(ProcessPool(order, 2), iter(batches), Stop())
    next(rows)
    assert multiprocessing.active_children()
    rows.close()
    assert not multiprocessing.active_children()


def test_a_chunk_that_ends_its_worker_again_and_again_is_a_sentence(tmp_path: Path) -> None:
    own = tmp_path / "ending.py"
    own.write_text(ENDING, encoding="utf-8")
    before = CATALOGUE.categories
    try:
        custom.install_file(own)
        x = loopscope.builder.Graph("ends").parameter("x", "f32", [])
        order = SweepJob(x.graph.model({"y": loopscope.builder.ops.ending(x)}), lanes=False)
        _, batches = order_and_chunks()
        with pytest.raises(
            EngineError,
            match=r"a chunk of the sweep has ended its worker 4 times, the last time with exit code 9",
        ):
            list(rows_in_parallel(ProcessPool(order, 1), iter(batches), Stop()))
    finally:
        CATALOGUE.categories = before
        CATALOGUE.install(())
    assert not multiprocessing.active_children()


def test_a_script_without_its_guard_is_a_sentence(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    model = Path("sample_models/collatz/model.xml").resolve()
    script.write_text(
        f"import loopscope\nloopscope.sweep(loopscope.read_model({str(model)!r}), 'number=1..600', workers=2, lanes=False).run()\n"
    )
    ended = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert ended.returncode == 1
    assert (
        "EngineError: a worker process of the sweep ended while it started (exit code 1): a script"
        in ended.stderr.splitlines()[-1]
    )


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """Each worker is in a run that would take days."""
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, threading, time\nimport numpy as np\nimport loopscope\nfrom loopscope import builder\n\n"
        "def tell():\n    while len(multiprocessing.active_children()) < 2:\n        time.sleep(0.1)\n    time.sleep(3)\n"
        "    print(*(one.pid for one in multiprocessing.active_children()), flush=True)\n\n"
        "if __name__ == '__main__':\n    graph = builder.Graph()\n    most = graph.parameter('most', 'i64', [])\n"
        "    model = graph.model({'last': builder.while_loop(lambda i: i < most, lambda i: i + 1, [np.int64(0)])[0]})\n"
        "    threading.Thread(target=tell, daemon=True).start()\n    limits = loopscope.Limits(iterations=None, seconds=None)\n"
        "    loopscope.sweep(model, {'most': np.full(600, 10**15)}, workers=2, lanes=False, limits=limits).run()\n"
    )
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as parent:
        assert parent.stdout is not None
        workers = [int(word) for word in parent.stdout.readline().split()]
        parent.kill()
    assert len(workers) == 2
    until = time.monotonic() + 20
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]
