"""Backward under AppTest: the gradient of what is open becomes a model of its own, on the same
inputs, with an address.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from loopscope.errors import EngineError
from loopscope.explain import walks_of
from loopscope.view import graph_view
from loopscope_app.actions import gradients
from loopscope_app.describe.gradients import Backward, sources, targets, usual_sources
from loopscope_app.links.codec import written
from loopscope_app.links.current_link import current_link
from loopscope_app.parts.run_views.gradients_view import chart_of
from loopscope_app.state.background_run import Differentiating, Running
from loopscope_app.state.open_model import Opened, open_sample, with_gradient
from loopscope_app.state.user_session import UserSession
from tests.app.components import sent
from tests.app.screens.test_debugger import page_text, press

Visit = Callable[..., AppTest]
GATED = json.dumps([["loss"], ["gate_bias"]])


def session_of(app: AppTest) -> UserSession:
    session: UserSession = app.session_state["loopscope"]
    return session


def walk_back(app: AppTest, *by: str) -> AppTest:
    if session_of(app).view != "gradients":
        app.segmented_control("view_bar").set_value("gradients").run()
    generation = session_of(app).run.generation
    if by:
        app.multiselect(f"backward_by_{generation}").set_value(list(by))
    app.button("backward_go").click().run()
    assert not app.exception
    return app


def test_what_can_be_walked_back() -> None:
    model = open_sample("for_loop").model
    assert list(usual_sources(model)) == [
        name
        for name, words in sources(model).items()
        if "·" in words and not name.startswith("main/")
    ]
    assert targets(model)
    assert not targets(open_sample("collatz").model)


def test_the_gradient_opens_on_the_same_inputs_and_has_run(opened: Visit) -> None:
    app = walk_back(opened(model="sample:gated_memory", set="silence_of_5"), "gate_bias")
    session = session_of(app)
    assert session.model.opened is not None
    assert session.model.opened.backward == Backward(("loss",), ("gate_bias",))
    assert session.model.input_set == "silence_of_5"
    assert session.run.debugger is not None
    assert session.run.debugger.state == "finished"
    assert [one.names[-1] for one in session.model.opened.model.outputs][-1].startswith(
        "gradient of loss with respect to gate_bias"
    )
    drawn = {
        one.address
        for one in graph_view(session.model.opened.model, session.canvas.folding).clusters
    }
    assert {"main/for_each_sound", "main/backward%2Ffor_each_sound%2FLoop"} <= drawn
    text = page_text(app)
    assert "How loss changes with gate_bias" in text
    assert "<b>The gradient flows: 0.26 at iteration 5, 0.25 at iteration 0</b>" in text


def test_an_address_opens_it_again(opened: Visit) -> None:
    app = opened(model="sample:gated_memory", backward=GATED, set="gate_open", step="100")
    session = session_of(app)
    assert session.model.opened is not None
    assert session.model.opened.title == "Gradients of A gate lets the gradient through"
    link = current_link(session)
    assert link is not None
    assert json.loads(written(link)["backward"]) == json.loads(GATED)


@pytest.mark.parametrize(
    ("backward", "said"),
    [
        ('[["lost"],["gate_bias"]]', "there is no tensor"),
        ('{"of": 3}', "a gradient in a link is two lists of names"),
        ('[["loss"],["main/for_each_sound/body/memory"]]', "is in a body"),
    ],
)
def test_a_gradient_that_cannot_be_is_a_sentence(opened: Visit, backward: str, said: str) -> None:
    assert said in opened(model="sample:gated_memory", backward=backward).error[0].value


def test_inputs_that_were_edited_come_along(opened: Visit) -> None:
    app = opened(model="sample:gated_memory", set="silence_of_5")
    session = session_of(app)
    edited = {**session.model.inputs, "gate_bias": np.asarray(2, np.float32)}
    session.model.inputs, session.model.input_set = edited, ""
    walk_back(app, "weight")
    assert session.model.inputs["gate_bias"] == np.float32(2)


def test_nothing_to_differentiate_by_is_asked_for(opened: Visit) -> None:
    app = opened(model="sample:gated_memory", set="silence_of_5", view="gradients")
    generation = session_of(app).run.generation
    app.multiselect(f"backward_by_{generation}").set_value([])
    app.button("backward_go").click().run()
    assert "choose at least one input or constant" in app.info[0].value


def test_models_of_whole_numbers_have_no_view_of_gradients(opened: Visit) -> None:
    app = opened(model="sample:collatz", view="gradients")
    assert "Gradients" not in app.segmented_control("view_bar").options
    assert app.segmented_control("view_bar").value == "debug"


def test_a_gradient_leads_back_to_its_model_on_the_same_inputs(opened: Visit) -> None:
    app = walk_back(opened(model="sample:gated_memory", set="gate_open"), "gate_bias")
    assert "backward_go" not in [button.key for button in app.button]
    app.button("gradient_back").click().run()
    assert not app.exception
    session = session_of(app)
    assert backward_of(app) is None
    assert (session.view, session.model.input_set) == ("gradients", "gate_open")
    assert "backward_go" in [button.key for button in app.button]


def test_the_headline_is_the_verdict_in_significant_digits(opened: Visit) -> None:
    app = opened(
        model="sample:vanishing_gradient", set="silence_of_30", view="gradients", step="9999"
    )
    assert (
        "<b>The gradient vanishes: 1 at iteration 30, 1.6e-10 at iteration 0</b>; "
        "it halves per iteration." in page_text(app)
    )


def test_a_value_set_by_hand_shows_the_norms_without_it_as_dashes(opened: Visit) -> None:
    clipped = "main/backward%2Ffor_each_sound%2FLoop[14]/body/adjoint_of_memory"
    app = opened(
        model="sample:exploding_gradient",
        set="grows_by_half",
        whatif=json.dumps({clipped: [1.0]}),
        view="gradients",
    )
    run = session_of(app).run
    assert run.debugger is not None
    assert run.original is not None
    run.debugger.run()
    run.original.run()
    app.run()
    lane = sent(app, "adjoints")["lanes"][0]
    assert lane["line"] != lane["second_line"]
    assert "dashed: without them" in page_text(app)


def test_the_strip_has_a_place_for_every_iteration_and_one_for_the_end(opened: Visit) -> None:
    app = press(opened(model="sample:vanishing_gradient", set="silence_of_30"), "run")
    debugger = session_of(app).run.debugger
    assert debugger is not None
    (walk,) = walks_of(debugger)
    chart = chart_of(walk)
    assert [lane.name for lane in chart.lanes] == [
        "gradient of memory",
        "contribution to recurrent",
        "contribution to weight",
    ]
    assert [lane.verdict for lane in chart.lanes] == ["vanishes", "", ""]
    assert (chart.extent, len(chart.lanes[0].blocks), len(chart.lanes[1].blocks)) == (32, 32, 31)
    assert chart.lanes[0].line is not None
    steps = np.diff([level for level in chart.lanes[0].line if level is not None])
    assert steps[5:] == pytest.approx(
        np.full(len(steps) - 5, np.log10(2) / np.log10(1 / 1.625e-10)), rel=0.05
    )
    assert chart.lanes[0].blocks[-1][5] == "at the end: 1"


def test_a_branch_that_did_not_run_is_told(opened: Visit) -> None:
    app = press(opened(model="sample:branch_not_taken", set="warm"), "run")
    told = "The gradient does not flow: only the then branch ran, and <code>cold_weight</code> is used in else."
    assert told in page_text(app)


def test_an_adjoint_that_is_clipped_by_hand_stays_clipped_on_its_way(opened: Visit) -> None:
    """Clip it here: the adjoint of what iteration 15 hands on, where the loop explodes."""
    clipped = "main/backward%2Ffor_each_sound%2FLoop[14]/body/adjoint_of_memory"
    app = opened(
        model="sample:exploding_gradient",
        set="grows_by_half",
        whatif=json.dumps({clipped: [1.0]}),
        step="9999",
    )
    debugger = session_of(app).run.debugger
    assert debugger is not None
    debugger.run()
    (walk,) = walks_of(debugger)
    assert walk.adjoints[0].norms[16] == 1
    assert walk.adjoints[0].norms[15] == pytest.approx(1.5)
    assert walk.adjoints[0].norms[0] == pytest.approx(1.5**16, rel=1e-5)


def backward_of(app: AppTest) -> Backward | None:
    """What the model that is open is the gradient of."""
    opened = session_of(app).model.opened
    assert opened is not None
    return opened.backward


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Gradients are not made before this is set."""
    go_on = threading.Event()

    def waits(opened: Opened, backward: Backward, going: Callable[[], bool]) -> Opened:
        go_on.wait(30)
        return with_gradient(opened, backward, going)

    monkeypatch.setattr(gradients, "_PATIENCE", 0.05)
    monkeypatch.setattr(gradients, "with_gradient", waits)
    yield go_on
    go_on.set()


def settle(app: AppTest) -> None:
    """Until nothing is made or run in the background; on a busy machine the run of a new
    gradient outlasts the page's patience.
    """
    while (running := session_of(app).run.running) is not None:
        assert running.done(30)
        app.run()
        assert not app.exception


def test_a_gradient_that_takes_long_is_made_while_the_page_answers(
    opened: Visit, slow: threading.Event
) -> None:
    app = walk_back(opened(model="sample:gated_memory", set="silence_of_5"), "weight")
    session = session_of(app)
    running = session.run.running
    assert isinstance(running, Differentiating)
    assert "Building the gradient" in page_text(app)
    assert backward_of(app) is None
    slow.set()
    settle(app)
    assert backward_of(app) == Backward(("loss",), ("weight",))
    assert session.model.input_set == "silence_of_5"
    assert session.run.debugger is not None
    assert walks_of(session.run.debugger)


def test_a_gradient_that_takes_long_can_be_stopped(opened: Visit, slow: threading.Event) -> None:
    app = walk_back(opened(model="sample:gated_memory", set="silence_of_5"), "weight")
    app.button("progress_stop").click().run()
    assert session_of(app).run.running is None
    assert backward_of(app) is None
    assert "The gradient was stopped" in app.info[0].value
    slow.set()
    app.run()
    assert backward_of(app) is None


def test_an_address_shows_the_picture_while_its_gradient_is_made(
    opened: Visit, slow: threading.Event
) -> None:
    app = opened(model="sample:gated_memory", backward=GATED, set="gate_open", step="100")
    session = session_of(app)
    running = session.run.running
    assert isinstance(running, Differentiating)
    assert "Building the gradient" in page_text(app)
    assert session.model.opened is not None
    assert session.model.opened.title == "A gate lets the gradient through"
    app.run()
    assert session_of(app).run.running is running  # the address is not followed once more
    slow.set()
    settle(app)
    assert backward_of(app) == Backward(("loss",), ("gate_bias",))
    assert session.model.input_set == "gate_open"
    assert session.run.debugger is not None
    assert session.run.debugger.cursor.step == 100


def test_the_gradient_of_an_address_can_be_stopped(opened: Visit, slow: threading.Event) -> None:
    app = opened(model="sample:gated_memory", backward=GATED, set="gate_open")
    running = session_of(app).run.running
    assert isinstance(running, Differentiating)
    app.button("progress_stop").click().run()
    assert "The gradient was stopped" in app.info[0].value
    assert backward_of(app) is None
    slow.set()
    Running.done(running, 30)
    assert running.error is None
    assert running.made is None


def test_a_gradient_that_nobody_waits_for_ends_at_its_next_operation() -> None:
    sample = open_sample("gated_memory")
    asked: list[int] = []

    def going() -> bool:
        asked.append(0)
        return len(asked) < 10

    with pytest.raises(EngineError, match="the graph under construction is no longer needed"):
        with_gradient(sample, Backward(("loss",), ("gate_bias",)), going)
    assert len(asked) == 10
