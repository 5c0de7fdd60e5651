"""Which samples of the gallery a person asks for: by words, by pattern, by source, by what they
teach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopscope_samples import Sample


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was typed and chosen; empty texts ask for nothing."""

    words: str = ""
    pattern: str = ""
    source: str = ""
    teaches: str = ""

    def __bool__(self) -> bool:
        return any((self.words.strip(), self.pattern, self.source, self.teaches))


def matching(samples: Sequence[Sample], wanted: Wanted) -> tuple[Sample, ...]:
    """The samples in which all words are found, in the gallery's order; those whose title or
    name has them all come first.
    """
    words = wanted.words.lower().split()
    chosen = [
        one
        for one in samples
        if _is_tagged(one, wanted) and all(word in _text(one) for word in words)
    ]
    return tuple(
        sorted(
            chosen, key=lambda one: bool(words) and not all(word in _called(one) for word in words)
        )
    )


def patterns(samples: Sequence[Sample]) -> tuple[str, ...]:
    """The patterns of control flow that there are, in the order in which the samples have them."""
    return tuple(dict.fromkeys(pattern for one in samples for pattern in one.patterns))


def sources(samples: Sequence[Sample]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.source for one in samples))


def lessons_of(samples: Sequence[Sample]) -> tuple[str, ...]:
    """What the samples teach."""
    return tuple(dict.fromkeys(one.teaches for one in samples))


def _is_tagged(one: Sample, wanted: Wanted) -> bool:
    return (
        (not wanted.pattern or wanted.pattern in one.patterns)
        and wanted.source in ("", one.source)
        and wanted.teaches in ("", one.teaches)
    )


def _called(one: Sample) -> str:
    return f"{one.title} {one.name} {one.name.replace('_', ' ')}".lower()


def _text(one: Sample) -> str:
    return " ".join(
        (_called(one), one.card, one.origin, one.source, one.teaches, *one.patterns, one.lesson)
    ).lower()
