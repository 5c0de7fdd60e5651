"""What is said under the canvas of how a run ended."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from tests.app.components import sent

Visit = Callable[..., AppTest]


def page_text(app: AppTest) -> str:
    return " ".join(str(one.proto.body) for one in app.get("html"))


def test_a_loop_that_goes_in_circles_is_told_once_and_from_where_it_does(opened: Visit) -> None:
    """Growing by 7 % a year, 1000 is more than a 32-bit float can hold after 1,210 years;
    infinity stays what it is.
    """
    app = opened(model="sample:infinite_loop", set="no_guard")
    app.button("transport_run").click().run()
    deadline = time.monotonic() + 20
    while "can never end" not in page_text(app) and time.monotonic() < deadline:
        time.sleep(0.1)  # on a busy machine the run is still on its way
        app.run()
    text = page_text(app)
    found = re.findall(r"the carried state of iterations ([\d,]+) and ([\d,]+) is equal", text)
    assert found == [("1,210", "1,211")]
    assert "It stopped" not in text
    assert "limit reached" not in text
    assert ">never ends<" in text
    (head,) = sent(app, "canvas_graph_overlay")["headers"].values()
    assert re.fullmatch(r"iteration [\d,]+, never ends", head)
    app.button("verdict_chain").click().run()
    assert "<td>ended</td><td>not yet, and it never will</td>" in page_text(app)


def test_the_lesson_names_the_pattern_that_its_inputs_make(opened: Visit) -> None:
    app = opened(lesson="infinite")
    assert 'class="chip live">for loop<' in page_text(app)
    next(one for one in app.button if one.label == "No guard").click().run()
    assert 'class="chip live">infinite loop<' in page_text(app)
