"""A mutation changes one operator or number, and the tests of the file notice it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests import mutation

SOURCE = """
def last(values: list[int], flag=True) -> int:
    if not values or len(values) < 1:
        return 0 - 1
    return values[len(values) - 1]
"""


def _result(number: int) -> list[object]:
    names: dict[str, object] = {}
    exec(mutation.mutated_code(SOURCE.encode(), "last.py", number), names)
    last = names["last"]
    assert callable(last)
    results: list[object] = []
    for values in ([], [5], [5, 7]):
        try:
            results.append(last(values))
        except IndexError:
            results.append("error")
    return results


def test_each_change_is_one_operator_or_number_outside_of_annotations() -> None:
    changes = sorted(item.change for item in mutation.mutations(ast.parse(SOURCE)))
    assert changes == sorted(
        [
            "True to False",
            "Or to And",
            "Lt to LtE",
            "1 to 2",
            "0 to 1",
            "1 to 2",
            "1 to 2",
            "Sub to Add",
            "Sub to Add",
        ]
    )


def test_a_changed_function_gives_something_else() -> None:
    count = len(mutation.mutations(ast.parse(SOURCE)))
    unnoticed = [number for number in range(count) if _result(number) == [-1, 5, 7]]
    every = mutation.mutations(ast.parse(SOURCE))
    # The flag is not read, and an empty list has less than one element.
    assert [every[number].change for number in unnoticed] == ["True to False", "Or to And"]


def test_every_subject_and_its_tests_exist() -> None:
    for file, tests in mutation.SUBJECTS.items():
        assert [name for name in (file, *tests) if not (mutation.ROOT / name).exists()] == []


def test_survivors_are_those_that_no_test_notices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "last.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    monkeypatch.setattr(mutation, "_is_noticed", lambda file, number, tests: number > 0)
    tried, unnoticed = mutation.survivors("last.py", (), 100)
    assert (tried, len(unnoticed)) == (9, 1)
