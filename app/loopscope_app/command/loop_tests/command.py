"""``loopscope test``: verify expectations about loops and branches, for continuous integration."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import loopscope
from loopscope.errors import EngineError, InputError
from loopscope.ir import is_trace
from loopscope.replaced_file import replaced_file
from loopscope.run_file import is_run_file
from loopscope_app.command import progress
from loopscope_app.command.address_question import saved_run
from loopscope_app.command.command_line import (
    FAILED,
    FINISHED,
    REFUSED,
    SCHEMA,
    add_json,
    add_seconds,
    command_parser,
    print_lines,
    refuse_unwritable,
)
from loopscope_app.command.given_inputs import add_inputs, are_words, read_inputs
from loopscope_app.command.junit import write_junit
from loopscope_app.command.loop_tests.file import NAME, LoopTest, read_tests, written
from loopscope_app.command.loop_tests.many_runs import SweepVerifier, is_data_set
from loopscope_app.command.loop_tests.one_run import RunVerifier
from loopscope_app.command.loop_tests.results import (
    ExpectationResult,
    LoopTestResult,
    as_data,
    junit_suites,
    lines,
)
from loopscope_app.page import page_of

_CODES = {"passed": FINISHED, "failed": FAILED, "error": REFUSED}


def main(words: Sequence[str]) -> int:
    """Verify the tests of files and return the exit code.

    0: all hold. 1: an expectation fails. 2: a file, a model or inputs are bad.
    """
    options = _options(words)
    if options.write:
        return _write(options)
    refuse_unwritable(options.junit)
    tests = [test for path in options.files or [NAME] for test in read_tests(path)]
    results = [result_of(test, options.seconds) for test in tests]
    if options.junit:
        write_junit(options.junit, junit_suites(results))
    pages = _write_pages(results, options.pages) if options.pages else []
    if options.json:
        print(json.dumps({"schema": SCHEMA, "tests": as_data(results), "pages": pages}))
    else:
        print_lines((*lines(results), *(f"page: {page}" for page in pages)))
    return max(_CODES[result.state] for result in results)


def result_of(test: LoopTest, seconds: float) -> LoopTestResult:
    """Run one test. ``seconds`` limits each run of its model."""
    begun = time.monotonic()
    try:
        with progress.doing(f"testing {test.name}"):
            verifier = verifier_of(test, seconds)
            outcomes = tuple(verifier.outcome(expected) for expected in test.expectations)
    except (EngineError, OSError) as error:
        outcomes = tuple(
            ExpectationResult(expected.words, "error", str(error)) for expected in test.expectations
        )
    return LoopTestResult(test.name, outcomes, time.monotonic() - begun)


def verifier_of(test: LoopTest, seconds: float) -> RunVerifier | SweepVerifier:
    """Run the model of a test on its inputs, once or for each sample.

    Raise ``EngineError`` for a bad model or input. A run that failed is verified as far as it went.
    """
    path = test.path(test.model)
    is_file = test.inputs and not are_words(test.inputs) and not test.inputs.startswith("random:")
    source = test.path(test.inputs) if is_file else test.inputs
    if is_run_file(path):
        run, _ = saved_run(path, source)
        return RunVerifier(run, {}, source, test.path, seconds)
    model = loopscope.read_model(path)
    if is_data_set(test.inputs) or (is_file and Path(source).is_dir()):
        return SweepVerifier(model, source, test.path, seconds)
    inputs = {} if is_trace(model) else read_inputs(source, model)
    run = loopscope.Debugger(model, inputs, limits=loopscope.Limits(seconds=seconds))
    run.run()
    return RunVerifier(run, inputs, source, test.path, seconds)


def _write_pages(results: Sequence[LoopTestResult], folder: str) -> list[str]:
    """Write a page for each failure that has a run; return the paths."""
    paths: list[str] = []
    for number, result in enumerate(results, 1):
        for position, outcome in enumerate(result.outcomes, 1):
            if outcome.run is None:
                continue
            Path(folder).mkdir(parents=True, exist_ok=True)
            name = re.sub(r"[^A-Za-z0-9]+", "-", result.name).strip("-")[:40]
            path = Path(folder) / f"{number:02}-{position:02}-{name or 'test'}.html"
            page = page_of(
                outcome.run, title=result.name, note=f"{outcome.expectation}\n{outcome.reason}"
            )
            with replaced_file(path) as file:
                file.write(page.encode())
            paths.append(str(path))
    return paths


def _write(options: argparse.Namespace) -> int:
    """Write a file that expects what one run of a model does."""
    if len(options.files) != 1:
        raise InputError("--write makes tests from one model: expected one MODEL")
    target = Path(options.output or NAME)
    refuse_unwritable(str(target))
    if target.exists():
        raise InputError(f"{target}: it exists, remove it or choose another file with -o")
    path = options.files[0]
    model = progress.read(path)
    debugger = progress.run_whole(loopscope.Debugger(model, read_inputs(options.inputs, model)))
    is_path = options.inputs and not are_words(options.inputs)
    text = written(
        debugger,
        _relative(path, target.parent),
        _relative(options.inputs, target.parent) if is_path else options.inputs,
    )
    with replaced_file(target) as file:
        file.write(text.encode())
    print_lines(_written_lines(target, text))
    return FINISHED


def _written_lines(target: Path, text: str) -> Iterator[str]:
    yield f"{target}: review these expectations, then run `loopscope test {target}`"
    yield from text.splitlines()[2:]


def _relative(path: str, folder: Path) -> str:
    """Return a path relative to the folder of the tests, where that is possible."""
    try:
        return Path(path).resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        return str(Path(path).resolve())


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = command_parser(
        "test",
        "Verify what loops and branches of models do: iteration counts, endings, branches, drift "
        "against a runtime or another model, problems. Tests are tables in a TOML file.",
        "Exit code: 0 all expectations hold, 1 an expectation fails, 2 a file, a model or inputs "
        "are bad.",
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help=f"a file of tests, or a folder with {NAME} (default: {NAME}); with --write a model",
    )
    parser.add_argument("--junit", default="", metavar="FILE.xml", help="write a JUnit report")
    parser.add_argument(
        "--pages",
        default="",
        metavar="FOLDER",
        help="write an HTML page for each failure, opened at its place",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="run the model FILE once and write a file that expects what it did",
    )
    parser.add_argument(
        "-o", "--output", default="", metavar="FILE.toml", help=f"file of --write (default: {NAME})"
    )
    add_inputs(parser, " (with --write)")
    add_seconds(parser, "time limit of each run in seconds")
    add_json(parser)
    options = parser.parse_args(words)
    if not options.write and (options.inputs or options.output):
        option = "--inputs" if options.inputs else "--output"
        parser.error(f"{option} belongs to --write: a file of tests names its own inputs")
    if options.write and (options.junit or options.pages):
        parser.error("--junit and --pages report on tests and cannot be combined with --write")
    return options
