"""Messages that Python sends to the canvas, each made anew from a real run; files in
``protocol/`` hold them for JavaScript's tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np

import loopscope
from loopscope.explain.provenance import provenance
from loopscope.view.build import graph_view
from loopscope.view.canvas_data import playback_batch, structure
from loopscope.view.folding import Folding, Unrolled, default_folding
from loopscope.view.graph import GraphView
from loopscope.view.overlay import overlay_at
from loopscope.view.overlay_data import Marks
from loopscope.view.tracks import tracks
from loopscope_app.canvas.component import CanvasRun, message_target, moment

FOLDER = Path(__file__).parent / "protocol"
_SAMPLES = Path(__file__).parents[2] / "sample_models"
_LOOP = "main/while_not_one"
_NAME = "run 1"


@cache
def _opened() -> tuple[loopscope.Debugger, GraphView]:
    """The run of a loop with a branch, at its second iteration."""
    model = loopscope.read_model(_SAMPLES / "collatz" / "model.xml")
    debugger = loopscope.Debugger(model, {"number": np.int64(3)})
    debugger.run()
    debugger.seek(f"{_LOOP}[1]/body/keep_going")
    return debugger, graph_view(model, Folding())


def view() -> GraphView:
    """The picture that the fixtures are of."""
    return _opened()[1]


def of_sample(name: str) -> Iterator[tuple[Mapping[str, object], str]]:
    """What is sent of a sample in its first steps, with the names of the shapes."""
    folder = _SAMPLES / name
    model = loopscope.read_model(folder / "model.xml")
    with np.load(min((folder / "inputs").glob("*.npz")), allow_pickle=False) as arrays:
        debugger = loopscope.Debugger(model, {key: arrays[key] for key in arrays.files})
    for _ in range(40):
        debugger.step()
    for folding in (Folding(), default_folding(model)):
        view = graph_view(model, folding)
        yield structure(view), "Structure"
        yield (
            moment(
                view,
                overlay_at(debugger, view),
                key="canvas",
                focus="",
                traced="",
                acted=0,
                run=None,
            ),
            "Moment",
        )
        yield (
            {
                **playback_batch(debugger, view, 0, seconds=60),
                **message_target(view, "canvas"),
                "run": _NAME,
            },
            "Stretch",
        )


def _structure() -> Mapping[str, object]:
    return structure(_opened()[1])


def _unrolled() -> Mapping[str, object]:
    """A picture with a row of copies."""
    return structure(graph_view(_opened()[0].model, Folding(unrolled=(Unrolled(_LOOP, 1, 3, 7),))))


def _moment() -> Mapping[str, object]:
    """With everything that a person can mark."""
    debugger, view = _opened()
    overlay = overlay_at(
        debugger,
        view,
        Marks(
            selected="main/number",
            breakpoints=[f"{_LOOP}[*]/body/if_even"],
            switched_off=[f"{_LOOP}/body/equal"],
            verdicts={_LOOP: "7 iterations, condition"},
            origins=provenance(debugger, f"{_LOOP}[1]/body/equal"),
            times={f"{_LOOP}/body/equal": 2.0, f"{_LOOP}/body/if_even": 1.0},
        ),
    )
    return moment(
        view,
        overlay,
        key="canvas",
        focus=f"{_LOOP}/body/equal",
        traced="equal",
        acted=4,
        run=_run(),
    )


def _run() -> CanvasRun:
    debugger, _ = _opened()
    return CanvasRun(
        _NAME,
        step=debugger.cursor.step,
        steps=debugger.steps,
        over=True,
        tracks=tracks(debugger),
        prefetch=lambda: None,
        on_ask=lambda step: None,
        on_step=lambda report: None,
        on_moves=lambda moves: None,
        reported=2,
        moved=3,
        plays=0,
    )


def _stretch() -> Mapping[str, object]:
    debugger, view = _opened()
    sent = playback_batch(debugger, view, debugger.cursor.step, max_steps=12, seconds=60)
    return {**sent, "end": debugger.steps, **message_target(view, "canvas"), "run": _NAME}


MADE: Mapping[str, Callable[[], Mapping[str, object]]] = {
    "structure": _structure,
    "unrolled": _unrolled,
    "moment": _moment,
    "stretch": _stretch,
}


def as_sent(message: Mapping[str, object]) -> object:
    """What arrives in the browser."""
    return json.loads(json.dumps(message))


def read(name: str) -> object:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def write() -> None:
    for name, make in MADE.items():
        (FOLDER / f"{name}.json").write_text(
            json.dumps(make(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
