"""``loopscope sweep``: runs a model once for each of many inputs, without a browser."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import loopscope
from loopscope.errors import InputError, MissingInput, in_one_line
from loopscope.sweeps import Samples, Sweep, completed, samples_of
from loopscope_app.command import progress, sweep_comparison
from loopscope_app.command.given_inputs import read_inputs
from loopscope_app.command.run import interruptible
from loopscope_app.command.sweep_comparison import plain

FINISHED, FAILED, STOPPED = 0, 1, 130
_SHOWN = 10


def main(words: Sequence[str]) -> int:
    """The exit code: 0 all runs finished, 1 some failed, 2 the model or the inputs are bad, 130
    Ctrl+C stopped it.
    """
    options = _options(words)
    if options.resume and not options.out:
        raise loopscope.EngineError(
            "--resume goes on with the rows in the file of --out, and none is given"
        )
    if options.scheduler_tls and not options.scheduler:
        raise loopscope.EngineError(
            "--scheduler-tls secures the connections to a cluster: name its address with --scheduler"
        )
    if options.against or options.round:
        return sweep_comparison.main(
            lambda model, rounding: _sweep(options, model, rounding), options
        )
    sweep = _sweep(options, options.model, {})
    with interruptible(sweep.stop):
        _as_json(sweep, options) if options.json else _as_text(sweep, options)
    if not sweep.is_complete:
        return STOPPED
    return FAILED if sweep.summary.failed else FINISHED


def _sweep(options: argparse.Namespace, model: str, rounding: Mapping[str, str]) -> Sweep:
    read = progress.read(model)
    samples = samples_of(read, options.inputs, options.batch)
    try:
        return _of_samples(options, read, samples, rounding)
    except MissingInput as problem:
        raise InputError(
            f"{problem}; --others INPUTS gives the same value in all samples, such as --others random"
        ) from None


def _of_samples(
    options: argparse.Namespace,
    read: loopscope.Model,
    samples: Samples,
    rounding: Mapping[str, str],
) -> Sweep:
    return loopscope.sweep(
        read,
        completed(read, samples, read_inputs(options.others, read)) if options.others else samples,
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
        first += batch.slice(0, max(0, _SHOWN - len(first))).to_pylist()
    for row in () if options.out else first:
        said = ", ".join(
            f"{name} {value}"
            for name, value in row.items()
            if value is not None and name not in ("sample", "seconds")
        )
        print(f"{row['sample']}: {plain(said)}")
    if not options.out and sweep.summary.rows > len(first):
        print(f"... {sweep.summary.rows - len(first):,} more; --out runs.parquet keeps all of them")
    for sentence in sweep.summary.sentences():
        print(plain(sentence))
    if not sweep.is_complete:
        onwards = f"; --resume goes on with {options.out}" if options.out else ""
        print(f"stopped after {sweep.summary.rows:,} of {sweep.count:,} runs{onwards}")


def _as_json(sweep: Sweep, options: argparse.Namespace) -> None:
    """One object; its rows only where they go to no file, printed as they come, in bounded memory.

    Nothing is printed before the first rows are there; what goes wrong after them ends the object
    with its sentence.
    """
    chunks = _chunks(sweep)
    first = next(chunks, None)
    print(
        f'{{"model": {json.dumps(options.model)}, "samples": {sweep.count}, "columns": {json.dumps(sweep.columns)},'
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
        f'"complete": {json.dumps(sweep.is_complete)}, "summary": {json.dumps(sweep.summary.plain())}{message}}}'
    )
    if failure:
        raise loopscope.EngineError(failure)


def _chunks(sweep: Sweep) -> Iterator[Any]:
    with progress.sweeping(sweep):
        yield from sweep.batches()


def _limits(options: argparse.Namespace) -> loopscope.Limits:
    given = {
        name: getattr(options, name)
        for name in ("iterations", "run_seconds")
        if getattr(options, name) is not None
    }
    return loopscope.Limits(
        **{"seconds" if name == "run_seconds" else name: value for name, value in given.items()}
    )


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="loopscope sweep",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run a model once for each of many inputs: a row of counts, endings, branches and outputs for each.",
        epilog="WHERE is one of\n"
        "  data.npz                          arrays with a leading sample axis, by input\n"
        "  folder                            an .npz file for each sample\n"
        "  data.parquet, data.csv            a column for each scalar input\n"
        "  'number=1..500 x=0..1/11'         a grid: all combinations; also x=0,0.5,1\n"
        "  'random:10000 seed=3 x=normal(0,1) n=1..9 image[3,8,8]=uniform(0,1)'\n\n"
        "The exit code is 0 when all runs finished, 1 when some failed, 2 when the model or the inputs are bad,\n"
        "130 when Ctrl+C stopped it.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="an OpenVINO .xml, an .onnx file, or a model that OpenVINO converts",
    )
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
        help="an input whose array has a sample axis; others are fixed",
    )
    parser.add_argument(
        "--others",
        default="",
        metavar="INPUTS",
        help="the inputs that WHERE leaves out, the same in all samples: an .npz file, values in words (x[3]=1), or random seed=3",
    )
    parser.add_argument("--out", default="", metavar="RUNS.parquet", help="where the rows go")
    parser.add_argument("--limit", type=_natural, metavar="N", help="only the first N samples")
    parser.add_argument(
        "--workers",
        type=_positive,
        metavar="N",
        help="processes (default: one for each core, once the runs turn out to take long)",
    )
    parser.add_argument(
        "--scheduler",
        default="",
        metavar="ADDRESS",
        help="run on the Dask cluster of this scheduler, such as tls://10.0.0.1:8786 (needs the extra `cluster`)",
    )
    parser.add_argument(
        "--scheduler-tls",
        nargs=3,
        metavar=("CA", "CERT", "KEY"),
        help="PEM files that secure the connections to --scheduler (default: as Dask's own configuration says)",
    )
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="EXPR",
        help="one more column, such as 'max(abs(main/loop/body/Add))'",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the rows that a stopped sweep has left in --out",
    )
    parser.add_argument(
        "--against",
        default="",
        metavar="MODEL2",
        help="which inputs change a count, ending or branch in another model",
    )
    parser.add_argument(
        "--round",
        action="append",
        default=[],
        metavar="PATTERN=TYPE",
        help="the same against a model with values rounded, such as '*=bf16': MODEL2, or MODEL itself",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the summary as JSON, and the rows where there is no --out",
    )
    parser.add_argument(
        "--seed", type=_natural, default=0, metavar="N", help="of random operations (default: 0)"
    )
    parser.add_argument(
        "--no-first-nan",
        action="store_true",
        help="do not look for the first NaN or infinity, which takes time",
    )
    parser.add_argument(
        "--no-margins",
        action="store_true",
        help="do not tell how narrowly loops ended, which takes time",
    )
    parser.add_argument(
        "--no-seconds",
        action="store_true",
        help="no column of times: two sweeps give the same bytes",
    )
    parser.add_argument(
        "--iterations",
        type=_positive,
        metavar="N",
        help="the most iterations of one run, all loops together",
    )
    parser.add_argument(
        "--run-seconds", type=float, metavar="S", help="the longest that one run may take"
    )
    return parser.parse_args(words)


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)
