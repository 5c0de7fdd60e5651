"""``loopscope specialise``: write a model for fixed inputs, without the Ifs that they decide."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import loopscope
from loopscope.comparison import SameOutputs, same_outputs
from loopscope.errors import EngineError, InputError, neutral, shorten
from loopscope.explain import taken_paths
from loopscope.ir import Model
from loopscope.peers import RuntimeLoads, runtimes_load
from loopscope.sweeps import one_sample, table_paths
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    FAILED,
    FINISHED,
    SCHEMA,
    add_json,
    add_model,
    command_parser,
    refusal_fields,
    refuse_as_json,
    refuse_opened,
    refuse_unwritable,
)
from loopscope_app.command.given_inputs import inputs_in_words, read_inputs
from loopscope_app.command.run import interruptible
from loopscope_app.describe.specialised_model import control_flow_counts

_RANDOM_SETS = 3
"""Number of sets of random inputs on which the result is compared with the original."""


def main(words: Sequence[str]) -> int:
    """Specialise a model and return the exit code.

    0: done. 1: an output differs, or a runtime loads the original and not the result. 2: the model,
    an input or a file is bad.
    """
    options = _options(words)
    try:
        return _specialise(options)
    except EngineError as error:
        return refuse_as_json(options, error, refusal_fields(error))


def _specialise(options: argparse.Namespace) -> int:
    refuse_unwritable(options.output)
    model = progress.read(options.model)
    if options.output:
        refuse_opened(options.output, options.model)
    values = _values(model, options.set)
    shapes = dict(_shape(text) for text in options.shape)
    run_inputs = _run_inputs(options, model, values)
    taken = _taken(options, model, values, run_inputs)
    with progress.doing("specialising the model"):
        result = loopscope.specialise(model, values, shapes, taken=taken, unroll=options.unroll)
    if options.output:
        loopscope.write_model(result.model, options.output)
    with progress.doing("comparing the outputs"):
        comparison = _compare(model, result, values, run_inputs)
    loaded = _load(options.output, model)
    if options.json:
        print(json.dumps(_data(options, model, result, comparison, loaded), allow_nan=False))
    else:
        for line in _lines(options, model, result, comparison, loaded):
            print(neutral(line, len(line)))
    return FAILED if comparison.difference or any(map(_is_worse, loaded)) else FINISHED


def _values(model: Model, words: Sequence[str]) -> dict[str, Any]:
    """Return the fixed values by input name. ``InputError`` for a list or range of values."""
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or any(mark in text for mark in (",", "..", "(")):
            raise InputError(
                f"--set {shorten(word, 60)}: expected an input and one number, such as "
                f"{shorten(name, 60)}=16000"
            )
    drawn = one_sample(model, words)
    return {model.inputs[position].name: value for position, value in drawn.items()}


def _shape(text: str) -> tuple[str, list[int]]:
    """Return the input and the lengths of ``input=1,576``; an empty text is a scalar."""
    name, equals, lengths = text.rpartition("=")
    words = [word.strip() for word in lengths.strip("[] ").split(",") if word.strip()]
    if not equals or not all(word.isdecimal() and len(word) < 19 for word in words):
        raise InputError(
            f"--shape {shorten(text, 60)}: expected an input and its lengths, such as input=1,576"
        )
    return name, [int(word) for word in words]


def _run_inputs(
    options: argparse.Namespace, model: Model, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the inputs of ``--as-run`` by name; empty without the option."""
    if not options.as_run:
        return {}
    inputs = dict(read_inputs(options.as_run, model))
    named = {
        model.inputs[key].name if isinstance(key, int) else _name(model, key): value
        for key, value in inputs.items()
    }
    return {**named, **values}


def _name(model: Model, key: str) -> str:
    signatures = model.inputs_called.get(key, ())
    return signatures[0].name if signatures else key


def _taken(
    options: argparse.Namespace,
    model: Model,
    values: Mapping[str, Any],
    run_inputs: Mapping[str, Any],
) -> loopscope.TakenPaths | None:
    if options.as_sweep:
        return table_paths(Path(options.as_sweep), values)
    if not options.as_run:
        return None
    debugger = loopscope.Debugger(model, run_inputs)
    with interruptible(debugger.stop):
        progress.run_whole(debugger, "running the model")
    if debugger.state != "finished":
        raise InputError(f"--as-run {options.as_run}: the run does not finish ({debugger.state})")
    return taken_paths(debugger)


def _compare(
    model: Model,
    result: loopscope.Specialised,
    values: Mapping[str, Any],
    run_inputs: Mapping[str, Any],
) -> SameOutputs:
    """Run both models on the inputs of the run and on random inputs."""
    sets = [run_inputs] if run_inputs else []
    for seed in range(_RANDOM_SETS):
        try:
            drawn, _ = inputs_in_words(f"random seed={seed}", result.model)
        except EngineError:
            break
        names = [signature.name for signature in result.model.inputs]
        random = {names[key] if isinstance(key, int) else key: drawn[key] for key in drawn}
        sets.append({**random, **values})
    return same_outputs(model, result.model, sets, result.assumed)


def _is_worse(loads: RuntimeLoads) -> bool:
    """Return True for a runtime that loads the original and not the result."""
    return bool(loads.reason) and not loads.original_fails


def _load(output: str, model: Model) -> list[RuntimeLoads]:
    if not output:
        return []
    with progress.doing("loading the result in the installed runtimes"):
        return list(runtimes_load(Path(output), Path(model.file) if model.file else None))


def _lines(
    options: argparse.Namespace,
    model: Model,
    result: loopscope.Specialised,
    comparison: SameOutputs,
    loaded: Sequence[RuntimeLoads],
) -> Iterator[str]:
    yield from result.changes
    yield from result.remaining
    before, after = control_flow_counts(model), control_flow_counts(result.model)
    yield f"{before.words} became {after.words}"
    if result.validity:
        yield result.validity
    yield comparison.sentence
    yield from (each.sentence for each in loaded)
    if options.output:
        yield f"{options.output} contains the result"


def _data(
    options: argparse.Namespace,
    model: Model,
    result: loopscope.Specialised,
    comparison: SameOutputs,
    loaded: Sequence[RuntimeLoads],
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "before": control_flow_counts(model).plain,
        "after": control_flow_counts(result.model).plain,
        "changes": list(result.changes),
        "remaining": list(result.remaining),
        "conditions": list(result.conditions),
        "compared": {"runs": comparison.runs, "difference": comparison.difference},
        "runtimes": [asdict(each) for each in loaded],
        **({"written": options.output} if options.output else {}),
    }


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "specialise",
        "Write a model for fixed inputs: constant values are computed, an If becomes its branch, "
        "and unused parts are removed. The outputs of the result are compared with those of the "
        "original, and the result is loaded in the installed runtimes.",
    )
    add_model(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="INPUT=VALUE",
        help="make an input constant, such as sr=16000 (repeatable)",
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="INPUT=LENGTHS",
        help="fix the shape of an input, such as input=1,576 (repeatable)",
    )
    paths = parser.add_mutually_exclusive_group()
    paths.add_argument(
        "--as-run",
        metavar="IN.npz",
        default="",
        help="take the branches and counts of a run on these inputs (also: values, or random)",
    )
    paths.add_argument(
        "--as-sweep",
        metavar="RUNS.parquet",
        default="",
        help="take the branches and counts that are the same in all runs of a sweep",
    )
    parser.add_argument(
        "--unroll",
        nargs="?",
        type=_limit,
        const=True,
        default=False,
        metavar="N",
        help="copy the body of loops whose count is known, up to N iterations (without N: up to "
        "64; without the option, only loops of no iterations are removed)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        default="",
        help="OUT.onnx for a model from ONNX, OUT.xml for others; without it only a preview",
    )
    add_json(parser, "print changes, conditions and the comparison as JSON")
    return parser.parse_args(words)


def _limit(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError("expected a number of iterations, 1 or more")
    return int(text)
