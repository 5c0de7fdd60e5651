"""The records of a Model: frozen, made again with other fields, equal by what they hold or by
being the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import Body, LayerId, ModelGraph, Node, OutputRef, Port
from loopscope.ir.replace import replace

A_NODE = Node(LayerId(0), "a", "Add")
CASES: list[tuple[Any, str, Any]] = [
    (Port(0), "shape", None),
    (OutputRef(LayerId(1), 0), "output", 2),
    (A_NODE, "name", "b"),
    (Body("body", ModelGraph((), ())), "name", "then"),
    (Constant(ElementType.F32, (0,), b""), "shape", (0, 1)),
    (ModelGraph((), ()), "name", "g"),
]


@pytest.mark.parametrize(("record", "name", "value"), CASES, ids=lambda one: type(one).__name__)
def test_a_record_never_changes_but_is_made_again(record: Any, name: str, value: Any) -> None:
    with pytest.raises(AttributeError):
        setattr(record, name, value)
    made = replace(record, **{name: value})
    assert type(made) is type(record)
    assert getattr(made, name) == value != getattr(record, name)
    with pytest.raises(TypeError):
        replace(record, no_such_field=1)


def test_ports_and_sources_are_equal_by_what_they_hold_and_nodes_are_themselves() -> None:
    assert Port(0, names=("x",)) == Port(0, names=("x",)) != Port(1, names=("x",))
    assert len({Port(0, rt_info={}), Port(0, rt_info={}), Port(1)}) == 2
    assert len({OutputRef(LayerId(1), 0), OutputRef(LayerId(1), 0), OutputRef(LayerId(1), 1)}) == 2
    assert replace(A_NODE) != A_NODE
    assert len({A_NODE, replace(A_NODE)}) == 2
