"""No room loses tests without a reason: pytest leaves out folders and files silently."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import COLLECTED

RECORD = Path(__file__).with_name("collected_tests.json")
"""The number of tests in each folder; written anew only when LOOPSCOPE_REWRITE_GOLDEN=1 is set."""


def test_no_folder_has_fewer_tests_than_recorded(request: pytest.FixtureRequest) -> None:
    counts = request.config.stash[COLLECTED]
    if counts is None:
        pytest.skip("only a run of all tests counts them")
    if os.environ.get("LOOPSCOPE_REWRITE_GOLDEN") == "1":
        RECORD.write_text(
            json.dumps(dict(sorted(counts.items())), indent=1) + "\n", encoding="utf-8"
        )
    recorded: Counter[str] = Counter(json.loads(RECORD.read_text(encoding="utf-8")))
    fewer = {
        folder: (counts[folder], number)
        for folder, number in recorded.items()
        if counts[folder] < number
    }
    assert not fewer, f"tests found, tests recorded: {fewer}"
