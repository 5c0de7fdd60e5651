"""The one way in which sentences and screens name an iteration: by its number in the model, which begins at 0."""

from __future__ import annotations


def iteration_words(number: int, count: int | None = None) -> str:
    """An iteration in words; ``count`` is the number of iterations of the loop, or the most that it may run, where that is known.

    >>> iteration_words(0), iteration_words(3, 12), iteration_words(6, 7), iteration_words(1199)
    ('iteration 0', 'iteration 3 of 12', 'iteration 6, the last of 7', 'iteration 1,199')
    >>> iteration_words(0, 1)
    'iteration 0, the only one'
    """
    if count is None:
        return f"iteration {number:,}"
    if number + 1 < count:
        return f"iteration {number:,} of {count:,}"
    return f"iteration {number:,}, {'the only one' if count == 1 else f'the last of {count:,}'}"
