"""What a model goes through, from its bytes to everything that a user would see of it, stage by
stage: nothing but ``EngineError``.
"""

from __future__ import annotations

import io
import itertools
import random
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import loopscope
from loopscope.checks.check import check
from loopscope.errors import EngineError
from loopscope.executor.plan.planner import plan_of
from loopscope.explain.code import listing, runnable_code
from loopscope.explain.executions import branch_history, taken_paths
from loopscope.explain.export import computed
from loopscope.explain.history import history
from loopscope.explain.icicle import icicle
from loopscope.explain.iteration_matrix import iteration_matrix, step_of_cell
from loopscope.explain.not_finite import first_not_finite
from loopscope.explain.pattern import pattern
from loopscope.explain.provenance import provenance
from loopscope.explain.verdict import verdict
from loopscope.ir.address import nodes
from loopscope.ir.model import Model
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.dialect import catalogue_for
from loopscope.read.file_limits import ReadLimits
from loopscope.view import unrolling
from loopscope.view.build import graph_view
from loopscope.view.canvas_data import structure
from loopscope.view.dot import dot_text
from loopscope.view.folding import default_folding
from loopscope.view.graph import GraphView, without_iterations
from loopscope.view.origins import highlight
from loopscope.view.overlay import overlay_at
from loopscope.view.overlay_data import Marks
from loopscope.view.preview import value_preview
from loopscope.view.tracks import tracks
from loopscope.write import write_model
from loopscope_app.describe.input_parsing import named, parse_scalar, parse_shape, read_arrays
from loopscope_app.describe.random_inputs import (
    Lengths,
    default_shape,
    lengths_by_trials,
    random_inputs,
)
from loopscope_app.describe.signatures import bindings, signatures
from loopscope_app.state.uploads import model_among
from tests.fuzz.typed import type_into

READ_LIMITS = ReadLimits(unpacked_bytes=2**26, conversion_seconds=6)
LIMITS = loopscope.Limits(iterations=2_000, seconds=1, memory_bytes=2**26)
_MOST_ELEMENTS = 1e6


@dataclass(eq=False)
class Walk:
    """One model on its way; what a stage makes, later ones take."""

    document: bytes
    weights: bytes
    inputs: Sequence[Mapping[str, Any]]
    """Sets that the sound model runs on."""
    dice: random.Random
    model: Model | None = None
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def read(self) -> Model:
        assert self.model is not None
        return self.model

    @cached_property
    def view(self) -> GraphView:
        return graph_view(self.read)

    @cached_property
    def debugger(self) -> loopscope.Debugger:
        """At the end of its run, or where that stopped."""
        debugger = loopscope.Debugger(self.read, self.given, limits=LIMITS)
        debugger.run()
        return debugger

    @cached_property
    def loops(self) -> list[str]:
        """Addresses of some loops that have begun."""
        records = itertools.islice(self.debugger.control_flow, 60)
        return [
            one.address for one in records if one.branch is None and one.iterations is not None
        ][:3]

    @cached_property
    def addresses(self) -> list[str]:
        return list(itertools.islice(computed(self.debugger), 200))


@dataclass(frozen=True, slots=True)
class Stage:
    """One of them."""

    name: str
    go: Callable[[Walk], None]
    share: float = 1.0
    """Of all models, how many go through it: what takes long is for a sample, which the dice
    choose.
    """


def go_through(
    document: bytes,
    weights: bytes,
    inputs: Sequence[Mapping[str, Any]],
    dice: random.Random,
    tell: Callable[[int], None] = lambda number: None,
    *,
    share: float = 1.0,
) -> None:
    """All stages, as often as they are due (``share`` times their own); what is raised is no
    ``EngineError``. ``tell`` hears the number of each before it begins.
    """
    walk = Walk(document, weights, inputs, dice)
    for number, stage in enumerate(STAGES):
        if stage.share < 1 and dice.random() > stage.share * share:
            continue
        tell(number)
        try:
            stage.go(walk)
        except EngineError as error:
            str(error)
        if walk.model is None:
            return


def _read(walk: Walk) -> None:
    walk.model = loopscope.read_model(walk.document, walk.weights, limits=READ_LIMITS)
    dice = walk.dice
    walk.given = (
        dice.choice(walk.inputs)
        if walk.inputs and dice.random() < 0.8
        else made_up(walk.model, dice)
    )


def _check(walk: Walk) -> None:
    str(check(walk.read, CATALOGUE).summary())


def _draw(walk: Walk) -> None:
    dot_text(walk.view, standalone=walk.dice.random() < 0.5)


def _payload(walk: Walk) -> None:
    structure(walk.view)


def _run(walk: Walk) -> None:
    result = loopscope.run(walk.read, walk.given, limits=LIMITS, seed=0)
    for record in result.control_flow[:100]:
        str(record)
    for value in result.outputs if result.finished else ():
        value_preview(value)


def _steps(walk: Walk) -> None:
    debugger = loopscope.Debugger(walk.read, walk.given, limits=LIMITS)
    moves = (
        debugger.step,
        debugger.step_over,
        debugger.step_into,
        debugger.step_back,
        debugger.step_out,
        debugger.next_iteration,
    )
    try:
        for _ in range(8):
            walk.dice.choice(moves)()
    finally:
        overlay_at(debugger, walk.view).as_data()


def _overlay(walk: Walk) -> None:
    overlay_at(walk.debugger, walk.view).as_data()
    overlay_at(
        walk.debugger,
        walk.view,
        Marks(selected=walk.dice.choice([*walk.addresses, "main", "x"]), breakpoints=("main/*",)),
    ).as_data()
    tracks(walk.debugger)
    icicle(walk.debugger)


def _code(walk: Walk) -> None:
    plan = plan_of(walk.read)
    for program in plan.programs[:4]:
        listing(plan, program.address)
    for line in runnable_code(plan).lines[:1]:
        str(line)


def _explain(walk: Walk) -> None:
    for address in walk.loops:
        for explain in (verdict, history):
            with suppress(EngineError):
                explain(walk.debugger, address)
        str(pattern(walk.debugger, without_iterations(address)))
    for address in walk.dice.sample(walk.addresses, min(3, len(walk.addresses))):
        with suppress(EngineError):
            history(walk.debugger, address)
    for record in itertools.islice(walk.debugger.control_flow, 40):
        if record.branch is not None:
            branch_history(walk.debugger, without_iterations(record.address))
    first_not_finite(walk.debugger, 0.2)


def _matrix(walk: Walk) -> None:
    for address in walk.loops:
        found = iteration_matrix(walk.debugger, address, 12, 12)
        for row in found.rows[:2]:
            with suppress(EngineError):
                step_of_cell(
                    walk.debugger,
                    found,
                    row,
                    walk.dice.choice((0, 0, found.total - 1, found.total)),
                )


def _origin(walk: Walk) -> None:
    for address in walk.addresses[-2:] + walk.dice.sample(
        walk.addresses, min(2, len(walk.addresses))
    ):
        with suppress(EngineError):
            highlight(walk.view, provenance(walk.debugger, address, 60))
        with suppress(EngineError):
            provenance(
                walk.debugger,
                address,
                20,
                part=walk.dice.choice(((0,), (slice(0, 1),), (-1, 0), (2**40,))),
            )


def _unroll(walk: Walk) -> None:
    folding = default_folding(walk.read)
    for address in map(without_iterations, walk.loops):
        folding = unrolling.unroll(walk.read, folding, address, walk.debugger, 3)
        folding = unrolling.shift(folding, address, walk.dice.choice((-1, 1, 10**9)))
    if walk.loops:
        view = graph_view(walk.read, folding)
        dot_text(view)
        structure(view)
        overlay_at(walk.debugger, view).as_data()


def _write(walk: Walk) -> None:
    """What is written can be read again, whatever it was made of, and what nothing was wrong
    with is as good as before.
    """
    sound = check(walk.read, CATALOGUE).ok
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "m.xml"
        write_model(walk.read, target)
        again = loopscope.read_model(target)
        report = check(again, CATALOGUE)
    assert not sound or report.ok, (
        f"there was no error, and in what was written anew there is: {report}"
    )


def _write_onnx(walk: Walk) -> None:
    """What had no error has none after it is written and read again."""
    sound = check(walk.read, catalogue_for(walk.read.dialect)).ok
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "m.onnx"
        write_model(walk.read, target)
        again = loopscope.read_model(target, limits=READ_LIMITS)
    report = check(again, catalogue_for("onnx"))
    assert not sound or report.ok, (
        f"there was no error, and in what was written as ONNX there is: {report}"
    )


def _specialise(walk: Walk) -> None:
    """To the inputs of the run, or to the paths that it took."""
    values = {name: value for name, value in walk.given.items() if walk.dice.random() < 0.3}
    taken = taken_paths(walk.debugger) if walk.dice.random() < 0.5 else None
    loopscope.specialise(walk.read, values, taken=taken, unroll=walk.dice.choice((False, 3)))


def _cut(walk: Walk) -> None:
    """A part of a model without errors is written and read without errors."""
    if not check(walk.read, catalogue_for(walk.read.dialect)).ok:
        return
    address, _ = walk.dice.choice([*nodes(walk.read)])
    part = loopscope.cut(walk.read, address, around=walk.dice.randrange(3))
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / ("m.onnx" if part.dialect == "onnx" else "m.xml")
        write_model(part, target)
        again = loopscope.read_model(target, limits=READ_LIMITS)
    report = check(again, catalogue_for(again.dialect))
    assert report.ok, f"the model has no error, and its part {address} has: {report}"


def _inputs(walk: Walk) -> None:
    seed = walk.dice.randrange(9)
    given = random_inputs(walk.read, seed, lengths_by_trials(walk.read, seed))
    bindings(walk.read, given)
    stored = io.BytesIO()
    arrays: dict[str, Any] = {
        f"i{number}": value
        for number, value in enumerate(given.values())
        if isinstance(value, np.ndarray)
    }
    np.savez(stored, **arrays)
    packed = bytearray(stored.getvalue())
    if packed and walk.dice.random() < 0.5:
        packed[walk.dice.randrange(len(packed))] ^= 1 << walk.dice.randrange(8)
    with suppress(EngineError):
        named(walk.read, read_arrays("inputs.npz", bytes(packed)))
    for one in list(signatures(walk.read).values())[:3]:
        for read in (parse_scalar, parse_shape):
            with suppress(EngineError):
                read(walk.dice.choice(("1", "-1", "3, 2", "1e999", "9" * 30, "", "nan")), one)


def _upload(walk: Walk) -> None:
    """The same bytes as somebody's upload, in an archive that is damaged now and then."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr("model.onnx" if walk.document[:1] == b"\x08" else "model.xml", walk.document)
        files.writestr("model.bin", walk.weights)
    data = bytearray(packed.getvalue())
    if walk.dice.random() < 0.7:
        data[walk.dice.randrange(len(data))] ^= 1 << walk.dice.randrange(8)
    _, document, weights = model_among([("m.zip", bytes(data))])
    loopscope.read_model(document, weights=weights, limits=READ_LIMITS)


def _typed(walk: Walk) -> None:
    type_into(walk.debugger, walk.dice)


STAGES: tuple[Stage, ...] = (
    Stage("read", _read),
    Stage("check", _check),
    Stage("draw", _draw),
    Stage("payload", _payload),
    Stage("run", _run),
    Stage("steps", _steps, 0.3),
    Stage("overlay", _overlay, 0.3),
    Stage("code", _code, 0.5),
    Stage("explain", _explain, 0.3),
    Stage("matrix", _matrix, 0.3),
    Stage("origin", _origin, 0.3),
    Stage("unroll", _unroll, 0.2),
    Stage("write onnx", _write_onnx, 0.3),
    Stage("specialise", _specialise, 0.2),
    Stage("cut", _cut, 0.2),
    Stage("write", _write, 0.3),
    Stage("inputs", _inputs, 0.05),
    Stage("upload", _upload, 0.1),
    Stage("typed", _typed, 0.1),
)
"""In this order; the first gives the model."""


def made_up(model: Model, dice: random.Random) -> dict[str, Any]:
    """Small inputs of the declared types, shapes and forms."""
    made: dict[str, Any] = {}
    for one in model.inputs:
        lengths = [
            min(length, 40)
            for length in default_shape(one.shape, Lengths(dice.randrange(3), dice.randrange(3)))
        ]
        if len(lengths) > 12 or one.element_type is None or one.element_type.dtype.names:
            continue
        if one.element_type.dtype == object:
            value = np.full(
                lengths if np.prod(lengths) < 1000 else (1,), dice.choice(("", "a", "7")), object
            )
        else:
            value = np.full(
                lengths if np.prod(lengths) < _MOST_ELEMENTS else (1,),
                dice.choice((0, 1, 1, 2, 7)),
                one.element_type.dtype,
            )
        nothing = one.form.startswith("optional") and dice.random() < 0.5
        made[one.name] = (
            None
            if nothing
            else (value,) * dice.choice((0, 1, 2))
            if "sequence" in one.form
            else value
        )
    return made
