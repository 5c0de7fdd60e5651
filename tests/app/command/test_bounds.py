"""What a server says of its bounds."""

from __future__ import annotations

import pytest

from loopscope_app.command.serve import bounds
from loopscope_app.state.launch import LAUNCH


def test_a_server_says_what_one_session_and_all_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LAUNCH, "server", True)
    monkeypatch.setattr("loopscope_app.actions.memory_budget.machine_bytes", lambda: 8 * 2**30)
    assert bounds().splitlines() == [
        "One run: at most 512 MB of values, 10,000,000 iterations, 60 s at a time.",
        "One upload: at most 100 MB; stored until its session ends, 120 s after its page.",
        "All sessions: at most 4.0 GB; above that, the runs that were idle longest lose their values.",
        "Models without a session: at most 64 MB are cached.",
    ]
