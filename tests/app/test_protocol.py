"""The contract between Python and the canvas: one schema, and fixtures that both sides are
tested with (the other in ``tests/js``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator, ValidationError

from loopscope.view.colours import Family
from loopscope.view.graph import ClusterKind, EdgeKind, NodeKind
from loopscope.view.overlay_data import BreakpointState, FrameStatus, NodeStatus
from loopscope_app.canvas_event import (
    Act,
    CanvasEvent,
    EventKind,
    Move,
    StepReport,
    read_acts,
    read_ask,
    read_moves,
    read_report,
)
from loopscope_app.describe.controls import BY_NAME
from tests.app import protocol_fixtures
from tests.app.protocol_fixtures import MADE, as_sent, of_sample, read
from tests.protocol import SCHEMA, TYPES, declarations

DEFINED: Mapping[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
SHAPE = {
    "structure": "Structure",
    "unrolled": "Structure",
    "moment": "Moment",
    "stretch": "Stretch",
    "acts": "Acts",
    "moves": "Moves",
    "report": "Report",
    "ask": "Ask",
}
"""What each fixture is an example of."""
RUN = "run 1"
SAMPLES = sorted(
    path.parent.name for path in (SCHEMA.parents[4] / "sample_models").glob("*/model.xml")
)


def checked(message: object, shape: str) -> None:
    """Raises ``ValidationError`` unless a message has the shape of that name."""
    Draft202012Validator({"$ref": f"#/$defs/{shape}", "$defs": DEFINED}).validate(message)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_every_fixture_is_an_example_of_a_message() -> None:
    assert {path.stem for path in protocol_fixtures.FOLDER.iterdir()} == set(SHAPE)


@pytest.mark.parametrize("name", SHAPE)
def test_fixtures_have_the_shape_that_the_schema_says(name: str) -> None:
    checked(read(name), SHAPE[name])


@pytest.mark.parametrize("name", MADE)
def test_fixtures_are_what_python_sends(name: str) -> None:
    """After a change that is meant: ``python -m tests.protocol``."""
    assert as_sent(MADE[name]()) == read(name)


@pytest.mark.parametrize("sample", SAMPLES)
def test_what_is_sent_of_every_sample_has_the_shape(sample: str) -> None:
    for message, shape in of_sample(sample):
        checked(as_sent(message), shape)


def test_types_are_those_of_the_schema() -> None:
    """After a change that is meant: ``python -m tests.protocol``."""
    assert TYPES.read_text(encoding="utf-8") == declarations()


@pytest.mark.parametrize(
    ("name", "literal"),
    [
        ("NodeStatus", NodeStatus),
        ("FrameStatus", FrameStatus),
        ("BreakpointState", BreakpointState),
        ("NodeKind", NodeKind),
        ("ClusterKind", ClusterKind),
        ("EdgeKind", EdgeKind),
        ("Family", Family),
    ],
)
def test_words_of_the_schema_are_those_of_python(name: str, literal: object) -> None:
    assert tuple(DEFINED[name]["enum"]) == get_args(literal)


def test_acts_and_moves_of_the_schema_are_those_of_python() -> None:
    assert set(DEFINED["Act"]["properties"]["kind"]["enum"]) == set(get_args(EventKind))
    assert set(DEFINED["Move"]["properties"]["name"]["enum"]) == set(BY_NAME)


def test_what_the_canvas_says_is_understood() -> None:
    view = protocol_fixtures.view()
    assert read_acts(read("acts"), view) == (
        Act(11, CanvasEvent("select", "main/number")),
        Act(12, CanvasEvent("fold", "main/while_not_one", "main/while_not_one/body")),
        Act(13, CanvasEvent("key", key="Backspace")),
        Act(14, CanvasEvent("clear")),
    )
    assert read_moves(read("moves"), RUN) == (Move("over", 15, 7), Move("run", 16, None))
    assert read_report(read("report"), RUN) == StepReport(8, 17, True)
    assert read_ask(read("ask"), RUN) == 40


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("moment", {"nodes": {"n1": "done selected"}}),
        ("moment", {"breakpoints": {"n1": "hollow"}}),
        ("moment", {"lines": {}}),
        ("report", {"playing": 1}),
        ("ask", {"step": -1}),
        ("moves", {"moves": [{"name": "jump", "count": 1, "start": None}]}),
    ],
)
def test_the_schema_refuses_what_is_not_agreed(name: str, change: dict[str, object]) -> None:
    message = read(name)
    assert isinstance(message, dict)
    with pytest.raises(ValidationError):
        checked(message | change, SHAPE[name])
