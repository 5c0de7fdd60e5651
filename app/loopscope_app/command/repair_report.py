"""``loopscope check --fix``: repair faults that change results silently, and compare."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import loopscope
from loopscope.errors import EngineError, InputError
from loopscope.ir import Model, readable
from loopscope.peers import (
    RepairComparison,
    against_source,
    compare_repair,
    source_of,
)
from loopscope.transform import REPAIRABLE, Repair, repair
from loopscope_app.command import progress
from loopscope_app.command.command_line import (
    FAILED,
    FINISHED,
    SCHEMA,
    print_lines,
    refuse_unwritable,
)
from loopscope_app.command.given_inputs import read_inputs

_GENERATED = "random seed=0"


def write_repaired(options: argparse.Namespace, model: Model) -> int:
    """Repair the model, compare, write it, and return the exit code.

    0: it is written, or there is nothing to repair. 1: it is written, and the runtime still
    differs. Raise ``EngineError`` if it cannot be written.
    """
    refuse_unwritable(options.fix)
    _refuse_opened(options.fix, model)
    repaired, repairs = repair(model, options.only or REPAIRABLE)
    if all(each.refused for each in repairs):
        _print(options, repairs, None, [], written=False)
        return FINISHED
    if not options.json:
        print_lines(_preview(repairs))
    inputs = read_inputs(options.inputs or _GENERATED, model)
    comparison, problem = _compared(model, repaired, inputs)
    sentences = [problem] if problem else []
    if options.source:
        sentences += _beside_source(options.source, model, repaired, inputs)
    loopscope.write_model(repaired, options.fix)
    _print(options, repairs, comparison, sentences, written=True)
    return FINISHED if comparison is None or comparison.agrees else FAILED


def _refuse_opened(path: str, model: Model) -> None:
    target = Path(path)
    if model.file and target.exists() and target.samefile(model.file):
        raise EngineError(f"{path} is the opened model: --fix expects another file")


def _compared(
    model: Model, repaired: Model, inputs: Mapping[str | int, object]
) -> tuple[RepairComparison | None, str]:
    """Return the comparison, or the reason why there is none."""
    try:
        with progress.doing("running the model before and after the repair"):
            return compare_repair(model, repaired, inputs), ""
    except InputError:
        raise
    except EngineError as error:
        return None, f"Not compared with the runtime: {error}"


def _beside_source(
    program: str, model: Model, repaired: Model, inputs: Mapping[str | int, object]
) -> list[str]:
    """Return what the program computes beside the model before and after the repair."""
    source = source_of(program)
    sentences = []
    for word, each in (("Before", model), ("After", repaired)):
        with progress.doing(f"running the source beside the model {word.lower()} the repair"):
            run = progress.run_whole(loopscope.Debugger(each, inputs))
            report = against_source(run, source, inputs)
        sentences.append(f"{word}: {report.sentence}")
    return sentences


def _preview(repairs: Sequence[Repair]) -> Iterator[str]:
    for each in repairs:
        place = readable(each.address)
        if each.refused:
            yield f"{each.code} {place}: not repaired: {each.refused}"
        else:
            yield f"{each.code} {place}: {each.change}"
            yield f"  reason: {each.reason}"


def _print(
    options: argparse.Namespace,
    repairs: Sequence[Repair],
    comparison: RepairComparison | None,
    sentences: Sequence[str],
    *,
    written: bool,
) -> None:
    if options.json:
        data = {
            "schema": SCHEMA,
            "repairs": [asdict(each) for each in repairs],
            "comparison": None if comparison is None else asdict(comparison),
            "sentences": [*([comparison.sentence] if comparison else []), *sentences],
            "written": options.fix if written else "",
        }
        print(json.dumps(data))
        return
    if not written:
        codes = " or ".join(options.only or REPAIRABLE)
        print_lines([*_preview(repairs), f"There is no {codes} to repair: nothing is written."])
        return
    print_lines([*([comparison.sentence] if comparison else []), *sentences])
    print_lines([f"{options.fix} is written. The opened model is unchanged."])
