"""``loopscope sweep``: run a model once for each of many inputs, without a browser.

``--against`` lists inputs whose control flow differs in another model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import loopscope
from loopscope.errors import InputError, MissingInput, in_one_line, neutral
from loopscope.sweeps import Change, Changes, Samples, Sweep, changes, completed, samples_of
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    FAILED,
    FINISHED,
    STOPPED,
    add_json,
    add_model,
    add_open,
    command_parser,
    whole_number,
)
from loopscope_app.command.drift import parse_rounding
from loopscope_app.command.given_inputs import read_inputs
from loopscope_app.command.run import interruptible

_PRINTED_ROWS = 10


def main(words: Sequence[str]) -> int:
    """Sweep a model and return the exit code.

    0: all runs finished. 1: some failed. 2: the model or the inputs are bad. 130: Ctrl+C stopped
    the sweep.
    """
    options = _options(words)
    if options.resume and not options.out:
        raise loopscope.EngineError(
            "--resume continues with the rows in the file of --out: expected --out FILE"
        )
    if options.scheduler_tls and not options.scheduler:
        raise loopscope.EngineError(
            "--scheduler-tls secures the connections to a cluster: expected --scheduler ADDRESS"
        )
    if options.against or options.round:
        return _compare_sweeps(lambda model, rounding: _sweep(options, model, rounding), options)
    sweep = _sweep(options, options.model, {})
    with interruptible(sweep.stop):
        _as_json(sweep, options) if options.json else _as_text(sweep, options)
    if not sweep.is_complete:
        return STOPPED
    return FAILED if sweep.summary.failed else FINISHED


def _sweep(options: argparse.Namespace, model: str, rounding: Mapping[str, str]) -> Sweep:
    parsed = progress.read_operations(model, options.open)
    samples = samples_of(parsed, options.inputs, options.batch)
    try:
        return _sweep_samples(options, parsed, samples, rounding)
    except MissingInput as problem:
        raise InputError(
            f"{problem}; --others INPUTS gives the same value in all samples, "
            "such as --others random"
        ) from None


def _sweep_samples(
    options: argparse.Namespace,
    model: loopscope.Model,
    samples: Samples,
    rounding: Mapping[str, str],
) -> Sweep:
    return loopscope.sweep(
        model,
        completed(model, samples, read_inputs(options.others, model))
        if options.others
        else samples,
        columns=options.column,
        limit=options.limit,
        workers=options.workers,
        scheduler=options.scheduler,
        scheduler_tls=options.scheduler_tls,
        out=options.out or None,
        resume=options.resume,
        limits=_limits(options),
        seed=options.seed,
        first_nan=not options.no_first_nan,
        margins=not options.no_margins,
        seconds=not options.no_seconds,
        rounding=rounding,
    )


def _as_text(sweep: Sweep, options: argparse.Namespace) -> None:
    first: list[dict[str, Any]] = []
    for batch in _chunks(sweep):
        first += batch.slice(0, max(0, _PRINTED_ROWS - len(first))).to_pylist()
    for row in () if options.out else first:
        fields = ", ".join(
            f"{name} {value}"
            for name, value in row.items()
            if value is not None and name not in ("sample", "seconds")
        )
        print(f"{row['sample']}: {_one_line(fields)}")
    if not options.out and sweep.summary.rows > len(first):
        more = sweep.summary.rows - len(first)
        print(f"... {more:,} more; --out runs.parquet stores all of them")
    for sentence in sweep.summary.sentences():
        print(_one_line(sentence))
    if not sweep.is_complete:
        advice = f"; --resume continues with {options.out}" if options.out else ""
        print(f"stopped after {sweep.summary.rows:,} of {sweep.count:,} runs{advice}")


def _as_json(sweep: Sweep, options: argparse.Namespace) -> None:
    """Print one object in bounded memory; its rows as they arrive, if they go to no file.

    Nothing is printed before the first rows. A later error ends the object with its message.
    """
    chunks = _chunks(sweep)
    first = next(chunks, None)
    print(
        f'{{"model": {json.dumps(options.model)}, "samples": {sweep.count}, '
        f'"columns": {json.dumps(sweep.columns)},'
    )
    print(f'"out": {json.dumps(options.out)},' if options.out else '"rows": [')
    between, failure = "", ""
    try:
        for batch in () if first is None else chain([first], chunks):
            for row in () if options.out else batch.to_pylist():
                print(f"{between}{json.dumps(row)}", end="")
                between = ",\n"
    except loopscope.EngineError as problem:
        failure = str(problem)
    message = f', "message": {json.dumps(in_one_line(failure))}' if failure else ""
    print("" if options.out else "],", end="" if options.out else "\n")
    print(
        f'"complete": {json.dumps(sweep.is_complete)}, '
        f'"summary": {json.dumps(sweep.summary.plain())}{message}}}'
    )
    if failure:
        raise loopscope.EngineError(failure)


def _chunks(sweep: Sweep) -> Iterator[Any]:
    with progress.sweeping(sweep):
        yield from sweep.batches()


_LISTED_CHANGES = 10


def _compare_sweeps(
    begin: Callable[[str, Mapping[str, str]], Sweep], options: argparse.Namespace
) -> int:
    """Compare two sweeps while they run, and return the exit code of a sweep.

    ``begin`` starts a sweep of a model. It takes the path of the model, and types to round to by
    address pattern.
    """
    if options.out:
        raise loopscope.EngineError(
            "--against compares the runs and stores no rows: to store rows, sweep each model with "
            "its own --out"
        )
    sweep = begin(options.model, {})
    other_sweep = begin(options.against or options.model, parse_rounding(options.round))

    def stop() -> None:
        sweep.stop()
        other_sweep.stop()

    with interruptible(stop), progress.sweeping(sweep):
        comparison = changes(sweep, other_sweep)
    complete = comparison.samples == sweep.count
    print(
        _comparison_as_json(comparison, sweep, other_sweep, options, complete=complete)
        if options.json
        else "\n".join(_comparison_lines(comparison, sweep, complete=complete))
    )
    if not complete:
        return STOPPED
    return FAILED if sweep.summary.failed or other_sweep.summary.failed else FINISHED


def _comparison_as_json(
    comparison: Changes,
    sweep: Sweep,
    other_sweep: Sweep,
    options: argparse.Namespace,
    *,
    complete: bool,
) -> str:
    answer = {
        "model": options.model,
        "against": options.against or options.model,
        "round": options.round,
        "complete": complete,
        "changes": comparison.plain(),
        "summary": sweep.summary.plain(),
        "summary_against": other_sweep.summary.plain(),
    }
    return json.dumps(answer)


def _comparison_lines(comparison: Changes, sweep: Sweep, *, complete: bool) -> Iterable[str]:
    yield from (_one_line(sentence) for sentence in comparison.sentences())
    yield from (_one_line(_change_line(change)) for change in comparison.listed[:_LISTED_CHANGES])
    if len(comparison.listed) > _LISTED_CHANGES:
        yield "... --json lists more of them"
    if not complete:
        yield f"stopped after {comparison.samples:,} of {sweep.count:,} inputs"


def _change_line(change: Change) -> str:
    return f"sample {change.sample}: {change.column} {change.one} -> {change.other}"


def _one_line(text: str) -> str:
    """Return a text as one line without control characters: names in a model may contain any."""
    line = in_one_line(text)
    return neutral(line, len(line))


def _limits(options: argparse.Namespace) -> loopscope.Limits:
    values = {
        name: getattr(options, name)
        for name in ("iterations", "run_seconds")
        if getattr(options, name) is not None
    }
    return loopscope.Limits(
        **{"seconds" if name == "run_seconds" else name: value for name, value in values.items()}
    )


_EPILOG = """WHERE is one of
  data.npz                          arrays with a leading sample axis, by input
  folder                            an .npz file for each sample
  data.parquet, data.csv            a column for each scalar input
  'number=1..500 x=0..1/11'         a grid: all combinations; also x=0,0.5,1
  'random:10000 seed=3 x=normal(0,1) n=1..9 image[3,8,8]=uniform(0,1)'

Exit code: 0 all runs finished, 1 some failed, 2 the model or the inputs are bad,
130 Ctrl+C stopped the sweep."""


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "sweep",
        "Run a model once for each of many inputs: one row of counts, endings, branches and\n"
        "outputs per input.",
        _EPILOG,
        preformatted=True,
    )
    add_model(parser)
    add_open(parser)
    parser.add_argument(
        "--inputs",
        required=True,
        metavar="WHERE",
        help="a file, a folder, a grid or random samples; see below",
    )
    parser.add_argument(
        "--batch",
        action="append",
        default=[],
        metavar="NAME",
        help="an input whose array has a sample axis; all other inputs are fixed",
    )
    parser.add_argument(
        "--others",
        default="",
        metavar="INPUTS",
        help="the inputs that WHERE omits, equal in all samples: an .npz file, values such as "
        "x[3]=1, or random seed=3",
    )
    parser.add_argument(
        "--out", default="", metavar="RUNS.parquet", help="write the rows to this file"
    )
    parser.add_argument(
        "--limit", type=whole_number(0), metavar="N", help="run only the first N samples"
    )
    parser.add_argument(
        "--workers",
        type=whole_number(1),
        metavar="N",
        help="number of processes (default: one per core if the runs take long)",
    )
    parser.add_argument(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="run on the Dask cluster of this scheduler, such as tls://10.0.0.1:8786 "
        "(requires the extra `cluster`)",
    )
    parser.add_argument(
        "--scheduler-tls",
        nargs=3,
        metavar=("CA", "CERT", "KEY"),
        help="PEM files that secure the connections to --scheduler "
        "(default: Dask's own configuration)",
    )
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="EXPR",
        help="add a column with the value of a formula, such as 'max(abs(main/loop/body/Add))'",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue a stopped sweep: keep the rows in --out and run the remaining samples",
    )
    parser.add_argument(
        "--against",
        default="",
        metavar="MODEL2",
        help="compare with MODEL2: list inputs whose iteration counts, endings or branches differ",
    )
    parser.add_argument(
        "--round",
        action="append",
        default=[],
        metavar="PATTERN=TYPE",
        help="compare with a model whose values are rounded, such as '*=bf16': MODEL2 if "
        "--against names it, else MODEL itself",
    )
    add_json(parser, "print the summary as JSON, and the rows if there is no --out")
    parser.add_argument(
        "--seed",
        type=whole_number(0),
        default=0,
        metavar="N",
        help="seed of random operations (default: 0)",
    )
    parser.add_argument(
        "--no-first-nan",
        action="store_true",
        help="do not search for the first NaN or infinity (faster)",
    )
    parser.add_argument(
        "--no-margins",
        action="store_true",
        help="do not compute how narrowly loop conditions were decided (faster)",
    )
    parser.add_argument(
        "--no-seconds",
        action="store_true",
        help="omit the column of times, so that two sweeps write the same bytes",
    )
    parser.add_argument(
        "--iterations",
        type=whole_number(1),
        metavar="N",
        help="iteration limit of one run, all loops together",
    )
    parser.add_argument(
        "--run-seconds", type=float, metavar="S", help="time limit of one run in seconds"
    )
    return parser.parse_args(words)
