"""``loopscope gradients``: add gradients of some tensors to a model as outputs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import loopscope
from loopscope.errors import EngineError, InputError, neutral
from loopscope.explain import (
    AdjointHistory,
    BranchWalkedBack,
    Contribution,
    WalkedBack,
    branches_of,
    walks_of,
)
from loopscope.ir import REAL_FLOATS, Model, Signature, decode
from loopscope_app.command import progress
from loopscope_app.command.answer_data import strict, value_data, values
from loopscope_app.command.command_line import (
    FAILED,
    FINISHED,
    SCHEMA,
    add_json,
    add_model,
    add_open,
    command_parser,
    refusal_fields,
    refuse_as_json,
    refuse_unwritable,
)
from loopscope_app.command.given_inputs import read_inputs
from loopscope_app.command.report import as_json, as_text
from loopscope_app.command.run import interruptible, outcome_of


def main(words: Sequence[str]) -> int:
    """Build the gradient and return the exit code.

    0: done. 1: the gradient differs from that of central differences, or the run failed. 2: the
    model or a name is bad.
    """
    options = _options(words)
    try:
        return _build(options)
    except EngineError as error:
        return refuse_as_json(options, error, refusal_fields(error))


def _build(options: argparse.Namespace) -> int:
    refuse_unwritable(options.output)
    model = progress.read_operations(options.model, options.open)
    with progress.doing("building the gradient"):
        gradient_model = loopscope.gradients(
            model, of=options.of, with_respect_to=options.with_respect_to
        )
    if options.output:
        loopscope.write_model(gradient_model, options.output)
    inputs = read_inputs(options.inputs, model)
    run = _run(gradient_model, inputs) if options.inputs else None
    finished = run is None or run.state == "finished"
    notes_added = list(gradient_model.notes[len(model.notes) :])
    is_right, check_sentence, check = True, "", None
    if options.check and finished:
        with progress.doing("comparing the gradient with central differences"):
            is_right, check_sentence, check = compared(
                model, inputs or _random_inputs(model), options.of, options.with_respect_to
            )
    if options.json:
        data = gradient_data(gradient_model, len(model.outputs), run)
        output = {"written": options.output} if options.output else {}
        check_field = {} if check is None else {"check": check}
        notes_field = {"notes": notes_added} if notes_added else {}
        print(
            json.dumps(
                {"schema": SCHEMA, **data, **notes_field, **output, **check_field}, allow_nan=False
            )
        )
    else:
        for line in _lines(
            gradient_model, len(model.outputs), notes_added, run, check_sentence, options.output
        ):
            print(line)
    return FINISHED if finished and is_right else FAILED


def _run(model: Model, inputs: Mapping[str | int, object]) -> loopscope.Debugger:
    run = loopscope.Debugger(model, inputs)
    with interruptible(run.stop):
        return progress.run_whole(run, "running the gradient")


def _lines(
    model: Model,
    first: int,
    notes: Sequence[str],
    run: loopscope.Debugger | None,
    check: str,
    written: str,
) -> Iterator[str]:
    for signature in model.outputs[first:]:
        name = signature.names[-1]
        yield f"{neutral(name, len(name))}  {signature.element_type}{signature.shape}"
    yield from (neutral(line, len(line)) for line in notes)
    if written:
        weights = Path(written).with_suffix(".bin").name
        yield f"{written} and {weights} contain the model with its gradients as OpenVINO IR 11"
    if run is not None:
        yield from as_text(outcome_of(run), model)
        yield from (neutral(line, len(line)) for line in _walked_back(run))
    if check:
        yield neutral(check, len(check))


def _walked_back(run: loopscope.Debugger) -> Iterator[str]:
    """Yield how the gradients changed in each loop and If that ran backward."""
    for walk in walks_of(run):
        yield walk.sentence
        for adjoint in walk.adjoints:
            yield f"  gradient of `{adjoint.name}`: {adjoint.sentence}"
        for contribution in walk.contributions:
            yield f"  contribution to `{contribution.name}`: {contribution.sentence}"
    for branch in branches_of(run):
        forward, backward = (
            decode(address.rpartition("/")[2]) for address in (branch.forward, branch.backward)
        )
        yield f"`{backward}` walks `{forward}` back:"
        yield f"  {branch.sentence}"


def _random_inputs(model: Model) -> dict[str | int, object]:
    """Return random floats between 0.2 and 0.8 for each input.

    Raise ``InputError`` for an input that is not a float tensor with a known shape.
    """
    random = np.random.default_rng(0)
    values: dict[str | int, object] = {}
    for number, signature in enumerate(model.inputs):
        if signature.element_type not in REAL_FLOATS or not signature.shape.is_static:
            raise InputError(
                f"input {neutral(signature.name)!r} ({signature.element_type}{signature.shape}) "
                "cannot be generated: expected --inputs in.npz"
            )
        values[number] = random.uniform(0.2, 0.8, signature.shape.lengths)
    return values


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "gradients",
        "Add outputs to a model: the gradients of the sum of some tensors with respect to others. "
        "Names are tensor names, node names or addresses outside of bodies, separated by commas.",
    )
    add_model(parser, help="any model that can be opened")
    add_open(parser)
    parser.add_argument(
        "--of",
        required=True,
        type=_names,
        metavar="LOSS[,..]",
        help="tensors to differentiate; their sum if there are several",
    )
    parser.add_argument(
        "--with-respect-to",
        required=True,
        type=_names,
        metavar="X[,..]",
        help="float inputs, constants or other float tensors",
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
        help="compare with central differences in f64; exit with 1 if they differ",
    )
    parser.add_argument(
        "--inputs",
        metavar="IN.npz",
        default="",
        help="run the gradients on these inputs, and check them there (default: random inputs)",
    )
    add_json(parser, "print the gradients, norms over iterations, verdicts and check as JSON")
    return parser.parse_args(words)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("expected a name, or several with commas between them")
    return names


Data = dict[str, Any]


def gradient_data(model: Model, first: int, run: loopscope.Debugger | None) -> Data:
    """Return the answer for a model whose outputs from ``first`` on are gradients.

    ``run`` is a run of that model, or None if it did not run.
    """
    finished = run is not None and run.state == "finished"
    outputs: Sequence[Any] = (
        run.result.outputs[first:]
        if run is not None and finished
        else [None] * (len(model.outputs) - first)
    )
    answer: Data = {
        "gradients": [
            _gradient(item, value)
            for item, value in zip(model.outputs[first:], outputs, strict=True)
        ]
    }
    if run is None:
        return {"state": "made", **answer}
    outcome = outcome_of(run)
    return {
        "state": outcome.state,
        **answer,
        "loops": [_walk(item) for item in walks_of(run)],
        "branches": [_branch(item) for item in branches_of(run)],
        "run": json.loads("".join(as_json(outcome, model))),
    }


def compared(
    model: Model,
    inputs: Mapping[str | int, object],
    of: Sequence[str],
    with_respect_to: Sequence[str],
) -> tuple[bool, str, Data]:
    """Return whether the gradient equals that of central differences, a sentence, and the JSON
    data.
    """
    result = loopscope.check_gradient(model, inputs, of, with_respect_to)
    wrong = [
        {
            "name": element.name,
            "place": list(element.place),
            "gradient": strict(element.gradient),
            "by_differences": strict(element.by_differences),
        }
        for element in result.wrong
    ]
    return (
        result.ok,
        str(result),
        {
            "ok": result.ok,
            "compared": result.compared,
            "largest": strict(result.largest),
            "wrong": wrong,
        },
    )


def _gradient(signature: Signature, value: Any) -> Data:
    data: Data = {
        "name": signature.names[-1],
        "element_type": str(signature.element_type),
        "shape": str(signature.shape),
    }
    if value is None:
        return data
    norm = float(np.linalg.norm(values(np.asarray(value)).astype(np.float64)))
    return {**data, "norm": strict(norm), "value": value_data(value)}


def _walk(walk: WalkedBack) -> Data:
    return {
        "forward": walk.forward,
        "backward": walk.backward,
        "iterations": walk.count,
        "walked": walk.walked,
        "sentence": walk.sentence,
        "adjoints": [_adjoint(history) for history in walk.adjoints],
        "contributions": [_contribution(part) for part in walk.contributions],
    }


def _adjoint(history: AdjointHistory) -> Data:
    return {
        "name": history.name,
        "address": history.address,
        "iterations": history.places.tolist(),
        "norms": strict(history.norms.tolist()),
        "verdict": history.fate.kind,
        "factor": None if history.fate.factor is None else strict(history.fate.factor),
        "sentence": history.sentence,
    }


def _contribution(contribution: Contribution) -> Data:
    return {
        "name": contribution.name,
        "iterations": contribution.iterations.tolist(),
        "norms": strict(contribution.norms.tolist()),
        "shares": strict(contribution.shares.tolist()),
        "sentence": contribution.sentence,
    }


def _branch(branch: BranchWalkedBack) -> Data:
    return {"forward": branch.forward, "backward": branch.backward, "sentence": branch.sentence}
