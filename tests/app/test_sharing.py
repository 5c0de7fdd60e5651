"""Work that needs more memory than there is: what others only keep makes room for it."""

from __future__ import annotations

import pytest

from app import sharing
from engine.errors import EngineError


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_work_is_done_again_once_there_is_room(monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    happened: list[str] = []

    def work() -> str:
        happened.append("tried")
        if happened.count("tried") <= failures:
            raise MemoryError
        return "done"

    monkeypatch.setattr(sharing, "make_room", lambda: happened.append("room"))
    if failures == 2:
        with pytest.raises(EngineError, match="not enough memory"):
            sharing.with_room(work)
    else:
        assert sharing.with_room(work) == "done"
    assert happened == ["tried", "room", "tried"][: 1 if failures == 0 else 3]
