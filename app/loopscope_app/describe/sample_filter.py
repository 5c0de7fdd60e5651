"""Filter of the gallery's samples: by words, pattern, source and lesson."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loopscope_samples import Sample


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter; empty texts match everything."""

    words: str = ""
    pattern: str = ""
    source: str = ""
    teaches: str = ""

    def __bool__(self) -> bool:
        return any((self.words.strip(), self.pattern, self.source, self.teaches))


def matching(samples: Sequence[Sample], filter: Wanted) -> tuple[Sample, ...]:
    """Return the samples that contain all words, in the gallery's order.

    Samples with all words in their title or name come first.
    """
    words = filter.words.lower().split()
    matches = [
        sample
        for sample in samples
        if _is_tagged(sample, filter) and all(word in _text(sample) for word in words)
    ]
    return tuple(
        sorted(
            matches,
            key=lambda sample: (
                bool(words) and not all(word in _title_text(sample) for word in words)
            ),
        )
    )


def patterns(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Return the patterns of control flow in the order of the samples."""
    return tuple(dict.fromkeys(pattern for sample in samples for pattern in sample.patterns))


def sources(samples: Sequence[Sample]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sample.source for sample in samples))


def lessons_of(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Return what the samples teach."""
    return tuple(dict.fromkeys(sample.teaches for sample in samples))


def _is_tagged(sample: Sample, filter: Wanted) -> bool:
    return (
        (not filter.pattern or filter.pattern in sample.patterns)
        and filter.source in ("", sample.source)
        and filter.teaches in ("", sample.teaches)
    )


def _title_text(sample: Sample) -> str:
    return f"{sample.title} {sample.name} {sample.name.replace('_', ' ')}".lower()


def _text(sample: Sample) -> str:
    return " ".join(
        (
            _title_text(sample),
            sample.card,
            sample.origin,
            sample.source,
            sample.teaches,
            *sample.patterns,
            sample.lesson,
        )
    ).lower()
