"""``loopscope gradients``: a model with the gradients of some of its tensors as further outputs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

import loopscope
from loopscope.errors import EngineError, InputError, in_one_line, neutral
from loopscope.explain import branches_of, walks_of
from loopscope.ir import REAL_FLOATS, Model, decode
from loopscope_app.command import progress
from loopscope_app.command.given_inputs import read_inputs
from loopscope_app.command.gradient_data import compared, gradient_data
from loopscope_app.command.output_files import refuse_unwritable
from loopscope_app.command.report import SCHEMA, as_text
from loopscope_app.command.run import FAILED, FINISHED, REFUSED, interruptible, outcome_of


def main(words: Sequence[str]) -> int:
    """The exit code: 0 done, 1 the gradient is not that of central differences or the run
    failed, 2 the model or a name is refused.
    """
    options = _options(words)
    try:
        return _made(options)
    except EngineError as error:
        if not options.json:
            raise
        print(
            json.dumps({"schema": SCHEMA, "state": "refused", "message": in_one_line(str(error))})
        )
        return REFUSED


def _made(options: argparse.Namespace) -> int:
    refuse_unwritable(options.output)
    model = progress.read(options.model)
    with progress.doing("building the gradient"):
        made = loopscope.gradients(model, of=options.of, with_respect_to=options.with_respect_to)
    if options.output:
        loopscope.write_model(made, options.output)
    inputs = read_inputs(options.inputs, model)
    run = _run(made, inputs) if options.inputs else None
    went = run is None or run.state == "finished"
    cut = list(made.notes[len(model.notes) :])
    ok, said, check = True, "", None
    if options.check and went:
        with progress.doing("comparing the gradient with central differences"):
            ok, said, check = compared(
                model, inputs or _drawn(model), options.of, options.with_respect_to
            )
    if options.json:
        data = gradient_data(made, len(model.outputs), run)
        written = {"written": options.output} if options.output else {}
        against = {} if check is None else {"check": check}
        notes = {"notes": cut} if cut else {}
        print(
            json.dumps({"schema": SCHEMA, **data, **notes, **written, **against}, allow_nan=False)
        )
    else:
        for line in _lines(made, len(model.outputs), cut, run, said, options.output):
            print(line)
    return FINISHED if went and ok else FAILED


def _run(made: Model, inputs: Mapping[str | int, object]) -> loopscope.Debugger:
    run = loopscope.Debugger(made, inputs)
    with interruptible(run.stop):
        return progress.run_whole(run, "running the gradient")


def _lines(
    made: Model,
    first: int,
    cut: Sequence[str],
    run: loopscope.Debugger | None,
    check: str,
    written: str,
) -> Iterator[str]:
    for one in made.outputs[first:]:
        yield f"{neutral(one.names[-1], len(one.names[-1]))}  {one.element_type}{one.shape}"
    yield from (neutral(line, len(line)) for line in cut)
    if written:
        yield f"{written} and {Path(written).with_suffix('.bin').name} hold the model with its gradients as OpenVINO IR 11"
    if run is not None:
        yield from as_text(outcome_of(run), made)
        yield from (neutral(line, len(line)) for line in _walked_back(run))
    if check:
        yield neutral(check, len(check))


def _walked_back(run: loopscope.Debugger) -> Iterator[str]:
    """How the adjoints fared in each loop and If that was walked back."""
    for walk in walks_of(run):
        yield walk.sentence
        yield from (f"  adjoint of `{one.name}`: {one.sentence}" for one in walk.adjoints)
        yield from (f"  gradient of `{one.name}`: {one.sentence}" for one in walk.contributions)
    for branch in branches_of(run):
        yield f"`{decode(branch.backward.rpartition('/')[2])}` walks `{decode(branch.forward.rpartition('/')[2])}` back:"
        yield f"  {branch.sentence}"


def _drawn(model: Model) -> dict[str | int, object]:
    """Floats between 0.2 and 0.8 for each input; ``InputError`` for one that nothing can be
    drawn for.
    """
    random = np.random.default_rng(0)
    drawn: dict[str | int, object] = {}
    for number, one in enumerate(model.inputs):
        if one.element_type not in REAL_FLOATS or not one.shape.is_static:
            raise InputError(
                f"nothing can be drawn for input {neutral(one.name)!r} ({one.element_type}{one.shape}): give --inputs in.npz"
            )
        drawn[number] = random.uniform(0.2, 0.8, one.shape.lengths)
    return drawn


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope gradients",
        description="Add outputs to a model: how the sum of some tensors changes with others. Names are tensor names, node names or "
        "addresses outside of bodies, with a comma between several.",
        allow_abbrev=False,
    )
    parser.add_argument("model", metavar="MODEL", help="any model that can be opened")
    parser.add_argument(
        "--of",
        required=True,
        type=_names,
        metavar="LOSS[,..]",
        help="what is differentiated; of several the sum",
    )
    parser.add_argument(
        "--with-respect-to",
        required=True,
        type=_names,
        metavar="X[,..]",
        help="inputs, constants, anything that is float",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT.xml",
        default="",
        help="write the model with its gradients as OpenVINO IR",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare with central differences in f64; exit with 1 when they differ",
    )
    parser.add_argument(
        "--inputs",
        metavar="IN.npz",
        default="",
        help="run it on these inputs, and check it there (default: drawn ones)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the gradients, norms over iterations, verdicts and check as JSON",
    )
    return parser.parse_args(words)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("expected a name, or several with commas between them")
    return names
