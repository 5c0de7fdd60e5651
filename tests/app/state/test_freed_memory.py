"""What a run of the command frees, the next one writes into."""

from __future__ import annotations

import resource
import sys

import numpy as np
import pytest

import loopscope
from loopscope_app import cli
from loopscope_app.state import process_memory
from tests.engine.executor.machine.test_memory import LENGTH, adding


@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems keep what a process frees in ways of their own"
)
def test_a_run_that_repeats_another_asks_for_no_fresh_memory() -> None:
    model, inputs = adding(1), [np.zeros(LENGTH, np.float32)]

    def fresh_pages() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        debugger = loopscope.Debugger(model, inputs, record=loopscope.Record(everything=True))
        debugger.run()
        assert debugger.machine.recording.bytes > 40 * 2**20
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    process_memory.keep_freed_memory()
    fresh_pages()
    assert fresh_pages() < 1000, "40 MB are 10,000 pages"


def test_every_command_keeps_what_it_frees(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr(cli, "keep_freed_memory", lambda: called.append(True))
    assert cli.main(["run", "there is no such model.xml"]) == cli.REFUSED
    assert called
