"""Results are computed once per object and key, and are deleted with the object."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from weakref import ref

import pytest

from loopscope.object_cache import cache_by_object


class Owner:
    """An object with results, and a state that changes."""

    state = 0


class Result:
    """A value that a weak reference can follow."""


Arguments = tuple[Owner, tuple[Any, ...]]
LEFT, RIGHT = Owner(), Owner()
CALLS: dict[str, tuple[dict[str, Any], list[Arguments], list[int]]] = {
    "once": ({}, [(LEFT, ()), (LEFT, ())], [0, 0]),
    "by object": ({}, [(LEFT, ()), (RIGHT, ()), (LEFT, ()), (RIGHT, ())], [0, 1, 0, 1]),
    "by argument": ({}, [(LEFT, (1,)), (LEFT, (2,)), (LEFT, (1,))], [0, 1, 0]),
    "newest": (
        {"newest_only": True},
        [(LEFT, (1,)), (LEFT, (1,)), (LEFT, (2,)), (LEFT, (2,)), (LEFT, (1,))],
        [0, 0, 1, 1, 2],
    ),
    "newest by object": (
        {"newest_only": True},
        [(LEFT, (1,)), (RIGHT, (2,)), (LEFT, (1,)), (RIGHT, (2,))],
        [0, 1, 0, 1],
    ),
    "by key": (
        {"key": lambda owner, number: number % 2},
        [(LEFT, (1,)), (LEFT, (3,)), (LEFT, (2,)), (LEFT, (5,))],
        [0, 0, 1, 0],
    ),
    "key of arguments that are not hashable": (
        {"key": lambda owner, numbers: len(numbers)},
        [(LEFT, ([1],)), (LEFT, ([2],)), (LEFT, ([1, 2],))],
        [0, 0, 1],
    ),
    "newest by key": (
        {"key": lambda owner, number: number % 2, "newest_only": True},
        [(LEFT, (1,)), (LEFT, (3,)), (LEFT, (2,)), (LEFT, (1,))],
        [0, 0, 1, 2],
    ),
}
"""Options, calls, and which computation each call returns the result of."""


@pytest.mark.parametrize(("options", "calls", "computations"), CALLS.values(), ids=CALLS)
def test_which_calls_compute(
    options: dict[str, Any], calls: list[Arguments], computations: list[int]
) -> None:
    count = iter(range(len(calls)))

    @cache_by_object(**options)
    def number(owner: Owner, *arguments: Any) -> int:
        return next(count)

    assert [number(owner, *arguments) for owner, arguments in calls] == computations


def test_named_arguments_belong_to_the_key() -> None:
    @cache_by_object
    def pair(owner: Owner, left: int = 0, *, right: int = 0) -> list[int]:
        return [left, right]

    owner = Owner()
    assert pair(owner, 1, right=2) is pair(owner, 1, right=2)
    assert [pair(owner, 1), pair(owner, right=1), pair(owner, left=1)] == [[1, 0], [0, 1], [1, 0]]


def test_the_key_may_read_the_state_of_the_object() -> None:
    @cache_by_object(key=lambda owner: owner.state, newest_only=True)
    def states(owner: Owner) -> list[int]:
        return [owner.state]

    owner = Owner()
    first = states(owner)
    assert states(owner) is first
    owner.state = 7
    assert states(owner) == [7]


@pytest.mark.parametrize("newest_only", [False, True])
def test_an_entry_is_deleted_with_its_object(newest_only: bool) -> None:
    @cache_by_object(newest_only=newest_only)
    def result(owner: Owner, number: int) -> Result:
        return Result()

    owner, other = Owner(), Owner()
    alive, dead = ref(result(other, 1)), ref(result(owner, 1))
    assert dead() is not None
    del owner
    assert dead() is None
    assert alive() is result(other, 1)


def test_newest_only_deletes_the_result_that_it_replaces() -> None:
    @cache_by_object(newest_only=True)
    def result(owner: Owner, number: int) -> Result:
        return Result()

    owner = Owner()
    first = ref(result(owner, 1))
    newest = ref(result(owner, 2))
    assert (first(), newest()) == (None, result(owner, 2))


@pytest.mark.parametrize("result", [None, False, 0, ()])
def test_empty_results_are_cached(result: object) -> None:
    calls: list[Owner] = []

    @cache_by_object
    def compute(owner: Owner) -> object:
        calls.append(owner)
        return result

    owner = Owner()
    assert (compute(owner), compute(owner), calls) == (result, result, [owner])


def test_an_exception_is_not_cached() -> None:
    outcomes: list[Callable[[], int]] = [lambda: 1 // 0, lambda: 5, lambda: 1 // 0]

    @cache_by_object
    def compute(owner: Owner) -> int:
        return outcomes.pop(0)()

    owner = Owner()
    with pytest.raises(ZeroDivisionError):
        compute(owner)
    assert (compute(owner), compute(owner)) == (5, 5)


@pytest.mark.parametrize("newest_only", [False, True])
def test_threads_that_compute_at_once_receive_complete_results(newest_only: bool) -> None:
    threads = 4
    together = Barrier(threads)

    @cache_by_object(newest_only=newest_only)
    def squares(owner: Owner, number: int) -> list[int]:
        together.wait(timeout=30)
        return [number, number * number]

    owner, numbers = Owner(), [1, 1, 2, 3]
    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(lambda number: squares(owner, number), numbers)) == [
            [number, number * number] for number in numbers
        ]


def test_the_function_keeps_its_name_and_documentation() -> None:
    @cache_by_object(newest_only=True)
    def described(owner: Owner) -> int:
        """Return one."""
        return 1

    assert (described.__name__, described.__doc__) == ("described", "Return one.")
