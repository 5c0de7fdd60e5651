"""Two sweeps compared: what a rounding or another model counts otherwise, whatever the chunks of
either are.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.errors import InputError
from loopscope.sweeps import Change, changes
from loopscope_app.cli import main


def halving(least: float, name: str = "halves") -> loopscope.Model:
    """Halves x until it is at most ``least``, and takes a branch by its sign."""
    graph = builder.Graph()
    x = graph.parameter("x", "f32", [])
    last = builder.while_loop(lambda v: v > least, lambda v: v * np.float32(0.5), [x], name=name)[0]
    return graph.model(
        {"last": builder.cond(last > 0, lambda: last + 1, lambda: last, name=f"{name}_sign")}
    )


@pytest.mark.parametrize("lanes", [True, False])
def test_another_model_changes_the_counts_that_a_run_of_each_would_have(lanes: bool) -> None:
    inputs = {"x": np.linspace(-1, 64, 200).astype(np.float32)}
    one = loopscope.sweep(halving(1.0), inputs, workers=1)
    other = loopscope.sweep(halving(2.0), inputs, workers=1, lanes=lanes)
    found = changes(one, other)
    rows = [
        list(loopscope.sweep(model, inputs, workers=1)) for model in (halving(1.0), halving(2.0))
    ]
    name = "iterations main/halves"
    changed = [number for number in range(200) if rows[0][number][name] != rows[1][number][name]]
    assert found.samples == 200
    assert found.columns[name].changed == len(changed) > 100
    assert [one.sample for one in found.listed if one.column == name] == changed
    assert "then main/halves_sign" not in found.columns
    assert next(iter(found.sentences())).startswith(f"{found.changed:,} of 200 inputs change")


def test_loops_that_are_called_otherwise_belong_together_in_their_order() -> None:
    inputs = {"x": np.array([8, 16], np.float32)}
    found = changes(
        loopscope.sweep(halving(1.0), inputs), loopscope.sweep(halving(1.0, "other"), inputs)
    )
    assert found.pairs[0] == ("iterations main/halves", "iterations main/other")
    assert (found.changed, found.alone) == (0, ())


def test_a_rounding_changes_a_branch() -> None:
    graph = builder.Graph()
    x = graph.parameter("x", "f32", [])
    model = graph.model(
        {
            "y": builder.cond(
                x * np.float32(1) > np.float32(0.5), lambda: x + 1, lambda: x, name="bar"
            )
        }
    )
    inputs = {"x": np.array([0.4, 0.5004, 0.6], np.float32)}
    found = changes(
        loopscope.sweep(model, inputs), loopscope.sweep(model, inputs, rounding={"*": "bf16"})
    )
    assert found.listed == [Change(1, "then main/bar", 1, 0), Change(1, "else main/bar", 0, 1)]


def test_sweeps_of_other_samples_are_not_compared() -> None:
    with pytest.raises(InputError, match="2 and 3 samples"):
        changes(loopscope.sweep(halving(1.0), "x=1,2"), loopscope.sweep(halving(1.0), "x=1,2,3"))


def test_the_command_says_what_changes(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "sweep",
        "sample_models/early_exit/model.xml",
        "--inputs",
        "random:200 enough=0.5..1",
        "--round",
        "*=f8e4m3",
    ]
    assert main(words) == 0
    assert "change a count, an ending or a branch" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (
        told["changes"]["changed"]
        == told["changes"]["columns"]["then main/early_exit"]["changed"]
        > 0
    )
    assert main([*words, "--out", "rows.parquet"]) == 2
