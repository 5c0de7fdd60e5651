"""Where the way back computes again what loops and branches gave: the same values there, and a
value that is set in all these places.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.explain import computed_again, copies_of

BACK = "main/backward%2Fouter%2FLoop"


def nested() -> loopscope.Model:
    """A branch and a loop in a loop, and a branch behind it."""
    graph = builder.Graph("nested")
    x = graph.parameter("x", "f64", [])

    def scaled_and_squared(value: Tensor) -> Tensor:
        scaled = ops.multiply(value, np.float64(1.5), name="scaled")
        return scaled * scaled

    def inner(number: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        inside = ops.multiply(value, np.float64(1.1), name="inside")
        return number + 1, ops.tanh(inside) * inside

    def outer(number: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        chosen = builder.cond(
            value < 8.0, lambda: scaled_and_squared(value), lambda: value * 0.5, name="choose"
        )
        _, last = builder.while_loop(
            lambda at, _: at < 2, inner, [np.int64(0), chosen], name="inner"
        )
        return number + 1, last

    _, last = builder.while_loop(lambda at, _: at < 3, outer, [np.int64(0), x], name="outer")

    def doubled_and_squared() -> Tensor:
        doubled = ops.multiply(last, np.float64(2), name="doubled")
        return doubled * doubled

    return graph.model(
        {"y": builder.cond(last > 0.0, doubled_and_squared, lambda: last, name="final")}
    )


def run(changes: Mapping[str, object] | None = None) -> loopscope.Debugger:
    made = loopscope.Debugger(
        loopscope.gradients(nested(), "y", "x"), [np.float64(1)], changes=changes or {}
    )
    made.run()
    return made


PLACES = {
    "main/outer[1]/body/choose/then/scaled": (
        f"{BACK}[1]/body/choose/then/scaled",
        f"{BACK}[1]/body/backward%2Fchoose%2FIf/then/scaled",
    ),
    "main/outer[0]/body/inner[1]/body/inside": (
        f"{BACK}[2]/body/inner[1]/body/inside",
        f"{BACK}[2]/body/backward%2Finner%2FLoop[0]/body/inside",
    ),
    "main/final/then/doubled": ("main/backward%2Ffinal%2FIf/then/doubled",),
    "main/outer[2]/body/choose/then/scaled": (),
    "main/outer[9]/body/choose/then/scaled": (),
    "main/nowhere[1]/body/scaled": (),
    "main/final": (),
}


@pytest.mark.parametrize("address", PLACES)
def test_where_a_value_is_computed_again(address: str) -> None:
    debugger = run()
    found = computed_again(debugger, address)
    assert found == PLACES[address]
    for place in found:
        np.testing.assert_array_equal(debugger.value(place), debugger.value(address))


def test_without_iterations() -> None:
    plan = run().plan
    assert copies_of(plan, "main/outer[1]/body/choose/then/scaled") == copies_of(
        plan, "main/outer/body/choose/then/scaled"
    )
    assert copies_of(plan, "main/outer/body/choose/then/scaled") == (
        f"{BACK}/body/choose/then/scaled",
        f"{BACK}/body/backward%2Fchoose%2FIf/then/scaled",
    )


@pytest.mark.parametrize("address", [address for address, places in PLACES.items() if places])
def test_a_value_set_in_all_places_gives_the_derivative_at_that_value(address: str) -> None:
    """A change adds a constant, so that derivatives are those of central differences of a run
    that adds it.
    """
    was = float(run().value(address))
    shift = 0.25

    def target(step: float) -> float:
        graph = loopscope.gradients(nested(), "y", "x")
        straight = loopscope.Debugger(graph, [np.float64(1 + step)])
        straight.run()
        moved = loopscope.Debugger(
            graph,
            [np.float64(1 + step)],
            changes={address: np.float64(straight.value(address) + shift)},
        )
        moved.run()
        return float(moved.value("main/final"))

    by_differences = (target(1e-5) - target(-1e-5)) / 2e-5
    everywhere = dict.fromkeys((address, *computed_again(run(), address)), np.float64(was + shift))
    there_only = {address: np.float64(was + shift)}
    found, wrong = (float(run(changes).result.outputs[1]) for changes in (everywhere, there_only))
    assert found == pytest.approx(by_differences, rel=1e-6)
    assert wrong != pytest.approx(by_differences, rel=1e-3)
