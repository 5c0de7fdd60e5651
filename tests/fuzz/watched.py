"""Cases in processes of their own, which may die alone, and one that watches them."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import re
import resource
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from tests.fuzz.subjects import Subject, subject

MOST_SECONDS = 30
"""What a case may take: native code of others, in a process of its own, is given 20 of them."""
MOST_BYTES = 2**30
_MOST_IN_ONE = 20_000
"""Cases after which a process begins anew: what it keeps of them is nobody's fault."""
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that did what none may; the seed and its number make it again."""

    seed: int
    case: int
    stage: str
    name: str
    what: str

    @property
    def signature(self) -> str:
        """Where it happened, and what was raised: the same for cases that differ in nothing that
        matters.
        """
        places = re.findall(r'File "[^"]*?([\w.]+/[\w.]+)", line (\d+)', self.what)
        kind = re.findall(r"^(\w[\w.]*)(?=:|$)", self.what, re.M)
        return f"{self.stage} {':'.join(places[-1]) if places else self.what[:60]} {kind[-1] if kind else ''}"

    def __str__(self) -> str:
        return f"seed {self.seed}, case {self.case} of {self.name[:80]!r}, stage {self.stage}: {self.what}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to go through: numbers from ``first`` on, until the time is up or ``count`` cases are
    done.
    """

    seed: int
    files: Sequence[Path] = ()
    first: int = 0
    count: int | None = None
    until: float = float("inf")
    jobs: int = 1
    share: float = 1.0
    data: str = ""
    """The kind of the files of data that are damaged; empty for models."""

    @property
    def subject(self) -> Subject:
        return subject(self.data, self.files)

    def has_ended(self, number: int) -> bool:
        return time.time() > self.until or (
            self.count is not None and number >= self.first + self.count
        )


@dataclass(eq=False)
class _Worker:
    """A process, the numbers that it goes through, and what it says of where it is."""

    plan: Plan
    begins: int
    now: Any = field(default_factory=lambda: _SPAWN.RawArray("q", [-1, 0, 0]))
    """The case that it is at, its stage, and how many it has done."""
    process: SpawnProcess | None = None
    receiver: Connection | None = None
    died_at: int = -1

    def start(self) -> Connection:
        self.now[0], self.now[2] = -1, 0
        self.receiver, sender = _SPAWN.Pipe(duplex=False)
        self.process = _SPAWN.Process(
            target=_work, args=(sender, self.plan, self.begins, self.died_at, self.now)
        )
        self.process.start()
        sender.close()
        return self.receiver


def fuzz(plan: Plan) -> Iterator[Finding | int]:
    """Findings as they come, and each time a process begins anew, and in the end, the number of
    cases gone through.
    """
    workers = [_Worker(plan, plan.first + number) for number in range(plan.jobs)]
    whole, done = plan.subject, 0
    reached = {one.start(): one for one in workers}
    try:
        while reached:
            for receiver in wait(list(reached)):
                assert isinstance(receiver, Connection)
                worker = reached[receiver]
                try:
                    case, stage, what = receiver.recv()
                    yield Finding(plan.seed, case, stage, whole.case(plan.seed, case).name, what)
                except EOFError:
                    del reached[receiver]
                    done += worker.now[2]
                    yield from _ended(worker, whole)
                    if worker.begins >= 0:
                        reached[worker.start()] = worker
                        yield done
    finally:
        for worker in workers:
            if worker.process is not None:
                worker.process.kill()
                worker.process.join()
    yield done


def _ended(worker: _Worker, whole: Subject) -> Iterator[Finding]:
    """Sets where a worker goes on, below zero for nowhere, and tells of the case at which it
    died twice.
    """
    assert worker.process is not None
    worker.process.join()
    plan, at, code = worker.plan, int(worker.now[0]), worker.process.exitcode
    if code == 0:
        worker.begins = -1 if plan.has_ended(at) else at
        return
    if at < 0:
        raise RuntimeError(f"a process ended with {worker.process.exitcode} before its first case")
    # What took too long goes once more: on a busy machine the first time may have been nobody's
    # fault.
    if at == worker.died_at or (code is not None and code < 0):
        what = f"crash, or more than {MOST_SECONDS} s (exit {worker.process.exitcode})"
        yield Finding(
            plan.seed, at, whole.stages[worker.now[1]], whole.case(plan.seed, at).name, what
        )
        at += plan.jobs
    worker.died_at, worker.begins = at, at
    if plan.has_ended(at) and time.time() > plan.until + 2 * MOST_SECONDS:
        worker.begins = -1


def _work(report: Connection, plan: Plan, begins: int, again: int, now: Any) -> None:
    """Goes through cases, every ``jobs``-th number; ends well with the number that comes next."""
    # Not the bound itself, which is measured: only to keep a runaway case from taking the whole
    # machine.
    resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
    whole = plan.subject
    at_first = bytes_held()

    def tell(stage: int) -> None:
        now[1] = stage

    number, watcher = begins, os.getppid()
    while (
        os.getppid() == watcher
        and now[2] < _MOST_IN_ONE
        and (number == again or not plan.has_ended(number))
    ):
        now[0] = number
        case = whole.case(plan.seed, number)
        before = bytes_held()
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        try:
            whole.go(case, tell, plan.share)
            found = ""
        except Exception:
            found = traceback.format_exc(limit=-8)
        faulthandler.cancel_dump_traceback_later()
        used, kept = most_bytes_held() - before, before - at_first
        if used > MOST_BYTES:
            found = f"took {used / 2**20:.0f} MB\n{found}"
        elif kept > MOST_BYTES:
            found = f"{kept / 2**20:.0f} MB were kept of the {now[2]} cases before\n{found}"
        if found:
            report.send((number, whole.stages[now[1]], found))
        now[2] += 1
        number += plan.jobs
        if max(used, kept) > MOST_BYTES:
            break
    now[0] = number


def bytes_held() -> int:
    """The memory that this process holds now; where the kernel lets it, ``most_bytes_held``
    begins anew there.
    """
    with suppress(OSError):
        _PEAK.write_text("5")
    return most_bytes_held()


def most_bytes_held() -> int:
    """The most memory that this process has held since.

    The kernel's own mark for this process, where it keeps one: `ru_maxrss` starts at what the
    process that started this one held.
    """
    marks = re.findall(r"^VmHWM:\s*(\d+) kB", _STATUS.read_text(), re.M) if _STATUS.exists() else []
    return int(marks[0] if marks else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024


_STATUS, _PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")
