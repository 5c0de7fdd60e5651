"""What if on the way back: what is set in a forward loop is set where it is computed again, told
as one, and taken back as one.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from loopscope.explain import walks_of
from loopscope_app.state.user_session import UserSession
from tests.app.screens.test_debugger import page_text

Visit = Callable[..., AppTest]
FORWARD, BACK = "main/for_each_sound", "main/backward%2Ffor_each_sound%2FLoop"
GATE = f"{FORWARD}[12]/body/forget_gate"
NEWTON, NEWTON_BACK = "main/while_not_close", "main/backward%2Fwhile_not_close%2FLoop"


def session_of(app: AppTest) -> UserSession:
    session: UserSession = app.session_state["loopscope"]
    return session


def chips(app: AppTest) -> list[str]:
    return [
        one.label.replace("\\", "") for one in app.button if str(one.key).startswith("what_if_undo")
    ]


def given(app: AppTest, address: str, value: str) -> AppTest:
    """The page after a value was set in the editor beside it."""
    generation = session_of(app).run.generation
    app.session_state[f"what_if_at_{generation}"] = True
    app.run()
    form = [
        one
        for one in (*app.text_input, *app.button_group)
        if one.key == f"what_if_{address}_{generation}"
    ]
    form[0].set_value(value)
    app.button("what_if_run").click().run()
    assert not app.exception
    return app


@pytest.mark.parametrize(
    "step",
    ["9999", f"{FORWARD}[12]/body/kept"],
    ids=["after the run", "before anything is walked back"],
)
def test_a_value_of_the_forward_loop_is_set_where_it_is_computed_again(
    opened: Visit, step: str
) -> None:
    """What if the forget gate were 1: the way back computes the gate anew from what was carried,
    and has to be told as well.
    """
    app = given(
        opened(model="sample:gated_memory", set="gate_half_open", step=step, node=GATE), GATE, "1"
    )
    session = session_of(app)
    assert list(session.run.changes) == [GATE, f"{BACK}[18]/body/forget_gate"]
    assert chips(app) == ["forget_gate at iteration 12 = 1, on the way back too"]
    assert "the gradient of memory arrives as" in page_text(app)
    debugger = session.run.debugger
    assert debugger is not None
    debugger.run()
    (walk,) = walks_of(debugger)
    norms = walk.adjoints[0].norms
    assert norms[12] == pytest.approx(norms[13])
    assert norms[11] == pytest.approx(norms[12] / 2)
    app.button("what_if_undo_0").click().run()
    assert not app.exception
    assert not session_of(app).run.changes


def test_a_loop_that_ends_earlier_is_walked_back_with_what_was_set_in_its_place(
    opened: Visit,
) -> None:
    """The first value is computed again in the last iteration of the way back, whichever that
    is.
    """
    first, last = f"{NEWTON}[0]/body/divide", f"{NEWTON}[1]/body/keep_going"
    gradient = json.dumps([["root"], ["number"]])
    app = opened(
        model="sample:newton_square_root", set="nine", backward=gradient, step="9999", node=first
    )
    original, before = session_of(given(app, first, "2")).run.changes
    assert original == first
    app = given(opened(**address_of(app, gradient, first), node=last), last, "false")
    session = session_of(app)
    assert list(session.run.changes) == [first, f"{NEWTON_BACK}[1]/body/divide", last]
    assert before != f"{NEWTON_BACK}[1]/body/divide"
    assert chips(app) == [
        "divide at iteration 0 = 2, on the way back too",
        "keep_going at iteration 1 = false",
    ]
    app.button("what_if_undo_1").click().run()
    assert list(session_of(app).run.changes) == [first, before]


def address_of(app: AppTest, gradient: str, first: str) -> dict[str, str]:
    """The page's own address with what was set."""
    changes = {
        one: np.asarray(value).tolist() for one, value in session_of(app).run.changes.items()
    }
    assert first in changes
    return {
        "model": "sample:newton_square_root",
        "set": "nine",
        "backward": gradient,
        "whatif": json.dumps(changes),
        "step": "9999",
    }


def test_what_is_set_on_the_way_back_alone_says_so(opened: Visit) -> None:
    clipped = f"{BACK}[14]/body/adjoint_of_memory"
    app = opened(model="sample:exploding_gradient", set="grows_by_half", step="9999", node=clipped)
    app = given(app, clipped, "1")
    assert chips(app) == ["adjoint_of_memory at iteration 14 of the way back = [1] 1"]
    assert "the gradient of memory flows; without the change it explodes" in page_text(app)


def test_a_pair_counts_as_one_of_the_values_that_can_be_set(opened: Visit) -> None:
    changes = {f"{FORWARD}[{at}]/body/forget_gate": 1 for at in range(8)}
    pairs = {
        one: 1
        for at in range(8)
        for one in (f"{FORWARD}[{at}]/body/forget_gate", f"{BACK}[{30 - at}]/body/forget_gate")
    }
    app = opened(
        model="sample:gated_memory", set="gate_half_open", whatif=json.dumps(pairs), step="9999"
    )
    assert len(chips(app)) == len(changes)
    assert not app.error


def test_a_value_of_a_branch_is_set_where_the_branch_is_walked_back(opened: Visit) -> None:
    hidden, gradient = "main/early_exit/else/hidden", json.dumps([["scores"], ["features"]])
    app = opened(
        model="sample:early_exit",
        set="borderline_case",
        backward=gradient,
        step="9999",
        node=hidden,
    )
    app = edited(app, hidden)
    assert list(session_of(app).run.changes) == [
        hidden,
        "main/backward%2Fearly_exit%2FIf/else/hidden",
    ]
    assert [one.endswith(", on the way back too") for one in chips(app)] == [True]
    app.button("what_if_undo_0").click().run()
    assert not app.exception
    assert not session_of(app).run.changes


def edited(app: AppTest, address: str) -> AppTest:
    """The page after the first element of a row was set to 5."""
    generation = session_of(app).run.generation
    app.session_state[f"what_if_{address}_{generation}"] = {
        "edited_rows": {0: {"0": 5}},
        "added_rows": [],
        "deleted_rows": [],
    }
    app.session_state[f"what_if_at_{generation}"] = True
    app.run()
    app.button("what_if_run").click().run()
    assert not app.exception
    return app
