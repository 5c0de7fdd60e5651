"""Words for an iteration, by its number in the model (from 0), for all sentences and screens."""

from __future__ import annotations


def iteration_words(number: int, count: int | None = None) -> str:
    """Return the words for an iteration.

    ``count`` is the known number of iterations of the loop, or the highest number that it may run.

    >>> iteration_words(0), iteration_words(3, 12), iteration_words(6, 7), iteration_words(1199)
    ('iteration 0', 'iteration 3 of 12', 'iteration 6, the last of 7', 'iteration 1,199')
    >>> iteration_words(0, 1)
    'iteration 0, the only one'
    """
    position = "" if count is None else place_among(number, count)
    separator = " " if position.startswith("of") else ", "
    return f"iteration {number:,}{separator}{position}" if position else f"iteration {number:,}"


def place_among(number: int, count: int) -> str:
    """Return the words for the position of an iteration among all iterations of its loop.

    >>> place_among(3, 12), place_among(6, 7), place_among(0, 1)
    ('of 12', 'the last of 7', 'the only one')
    """
    if number + 1 < count:
        return f"of {count:,}"
    return "the only one" if count == 1 else f"the last of {count:,}"


def iteration_range(first: int, last: int) -> str:
    """Return the words for consecutive iterations, both ends included.

    >>> iteration_range(3, 3), iteration_range(0, 1199)
    ('iteration 3', 'iterations 0 to 1,199')
    """
    return iteration_words(first) if first == last else f"iterations {first:,} to {last:,}"
