"""Half a minute of damaged model files: whatever is in them, nothing comes out but the engine's own errors."""

from __future__ import annotations

import random

import pytest

from tests.fuzz import fuzz, go_through, originals

FOUND = {
    "a length of 19 digits": ("for_loop", 'shape=""', 'shape="9223372036854775807"'),
    "another axis": ("beam_search", 'version="opset8"', 'version="opset7"'),
}
"""What was found once: a sample, and what was changed in it."""


@pytest.mark.parametrize(("sample", "old", "new"), FOUND.values(), ids=FOUND.keys())
def test_what_was_found_once(sample: str, old: str, new: str) -> None:
    one = next(original for original in originals() if original.name.startswith(f"{sample}/"))
    document = one.document.replace(old.encode(), new.encode())
    assert document != one.document
    go_through(document, one.weights, one.inputs, random.Random(0))


@pytest.mark.slow
def test_damaged_files_bring_about_nothing_but_the_engines_errors() -> None:
    *found, cases = fuzz(seconds=30, seed=2026)
    assert not found, "\n".join(str(one) for one in found[:5])
    assert isinstance(cases, int)
    assert cases > 20
