"""Which samples the gallery shows for what is typed and chosen."""

from __future__ import annotations

import pytest

from loopscope_app.parts.gallery import (
    Wanted,
    control_flow_patterns,
    frameworks,
    lessons_of,
    matching,
)
from loopscope_samples import samples

ALL = samples()


def names(wanted: Wanted) -> set[str]:
    return {one.name for one in matching(ALL, wanted)}


@pytest.mark.parametrize(
    ("wanted", "among", "not_among"),
    [
        (Wanted(), "collatz", ""),
        (Wanted("  "), "collatz", ""),
        (Wanted("mamba"), "hybrid_stack", "collatz"),
        (Wanted("MAMBA token"), "mamba2", "collatz"),
        (Wanted("keras"), "keras_gru", "gcd"),
        (Wanted(pattern="loop in a loop"), "count_primes", "gcd"),
        (Wanted(source="ONNX"), "records_scan", "gcd"),
        (Wanted(teaches="training"), "gated_memory", "gcd"),
        (
            Wanted("prime", pattern="while", source="PyTorch", teaches="branches"),
            "count_primes",
            "collatz",
        ),
    ],
)
def test_what_is_shown(wanted: Wanted, among: str, not_among: str) -> None:
    assert among in names(wanted)
    assert not_among not in names(wanted)


def test_what_is_called_so_comes_first() -> None:
    assert matching(ALL, Wanted("mamba"))[0].name == "mamba2"


def test_nothing_has_everything() -> None:
    assert matching(ALL, Wanted("mamba", source="TensorFlow")) == ()


def test_every_choice_leads_to_a_sample_and_no_choice_to_one_alone() -> None:
    for pattern in control_flow_patterns(ALL):
        assert len(names(Wanted(pattern=pattern))) >= 1
    for source in frameworks(ALL):
        assert len(names(Wanted(source=source))) >= 2
    for lesson in lessons_of(ALL):
        assert len(names(Wanted(teaches=lesson))) >= 2
    assert max(len(control_flow_patterns(ALL)), len(frameworks(ALL)), len(lessons_of(ALL))) <= 10, (
        "a list that is read at a glance"
    )
