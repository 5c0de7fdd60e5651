"""Dataclasses that are made swiftly are what they were."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace

import pytest

from engine.ir.model import LayerId, Node, Port
from engine.ir.swift import swiftly_made

_NOTHING: tuple[int, ...] = ()


def _nothing() -> tuple[int, ...]:
    return _NOTHING


@dataclass(frozen=True, slots=True)
class Slow:
    first: int
    second: str = "two"
    third: tuple[int, ...] = field(default_factory=_nothing, hash=False)


@swiftly_made
@dataclass(frozen=True, slots=True)
class Swift:
    first: int
    second: str = "two"
    third: tuple[int, ...] = field(default_factory=_nothing, hash=False)


@pytest.mark.parametrize(("given", "named"), [((1,), {}), ((1, "b"), {}), ((1, "b", (3,)), {}), ((), {"third": (4,), "first": 1})])
def test_it_holds_what_the_other_holds(given: tuple[int], named: dict[str, int]) -> None:
    slow, swift = Slow(*given, **named), Swift(*given, **named)  # type: ignore[arg-type]
    assert asdict(swift) == asdict(slow)
    assert repr(swift) == repr(slow).replace("Slow", "Swift")
    assert hash(swift) == hash(slow)
    assert swift == copy.copy(swift) == copy.deepcopy(swift) == Swift(*given, **named)  # type: ignore[arg-type]
    assert asdict(replace(swift, first=7)) == asdict(replace(slow, first=7))


@pytest.mark.parametrize(("given", "named"), [((), {}), ((1, "b", (), 4), {}), ((1,), {"fourth": 4}), ((1,), {"first": 1})])
def test_it_takes_no_other_arguments(given: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match=r"Swift\.__init__"):
        Swift(*given, **named)  # type: ignore[arg-type]


@pytest.mark.parametrize("one", [Swift(1), Port(0), Node(LayerId(0), "a", "Add")])
def test_it_is_of_its_own_class_and_frozen(one: Swift | Port | Node) -> None:
    assert type(one) in (Swift, Port, Node)
    for known in fields(one):
        with pytest.raises(FrozenInstanceError):
            setattr(one, known.name, None)
        with pytest.raises(FrozenInstanceError):
            delattr(one, known.name)
