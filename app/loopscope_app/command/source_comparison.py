"""``loopscope compare --source``: compare a model with the program that it was converted from."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import loopscope
from loopscope.peers import Source, SourceReport, against_source, source_alone
from loopscope_app.command import progress
from loopscope_app.command.command_line import FAILED, FINISHED, REFUSED, print_lines

_MAX_WIDTH = 60


def beside_source(
    source: Source,
    run: tuple[loopscope.Debugger, Mapping[str | int, object]],
    options: argparse.Namespace,
) -> int:
    """Print the comparison and return the exit code.

    0: the outputs agree with those of the source. 1: an output differs. 2: the run did not finish.
    """
    debugger, inputs = run
    if debugger.state != "finished":
        return _report_source_only(source, debugger, inputs, options)
    with progress.doing("running the source, and the model in its own runtime"):
        report = against_source(
            debugger, source, inputs, tolerance=options.tolerance, seconds=options.seconds
        )
    if options.json:
        answer = {
            "agrees": report.agrees,
            "outputs_agree": report.outputs_agree,
            "sentence": report.sentence,
            **asdict(report),
        }
        print(json.dumps(answer))
    else:
        print_lines(_lines(report))
    return FINISHED if report.outputs_agree else FAILED


def _report_source_only(
    source: Source,
    debugger: loopscope.Debugger,
    inputs: Mapping[str | int, object],
    options: argparse.Namespace,
) -> int:
    """Report only the source, because a run that did not finish cannot be compared."""
    with progress.doing("running the source, and the model in its own runtime"):
        report = source_alone(debugger, source, inputs, seconds=options.seconds)
    if options.json:
        print(json.dumps({"agrees": None, "sentence": report.sentence, **asdict(report)}))
    else:
        print_lines((report.sentence, *_columns(report.table())))
    return REFUSED


def _columns(table: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
    widths = [min(max(len(row[column]) for row in table), _MAX_WIDTH) for column in range(3)]
    for row in table if len(table) > 1 else ():
        yield (
            "  "
            + "  ".join(
                [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]
            ).rstrip()
        )


def _lines(report: SourceReport) -> Iterator[str]:
    yield report.sentence
    yield from _columns(report.table())
    for region in report.regions:
        for value in region.values:
            if value.first is not None:
                match = f"beside {value.label}, by {value.how}"
                place = value.first.address
                yield f"  {region.source}: {value.name} ({match}) differs first at {place}"
            elif value.left_out:
                kind = "compared" if value.compared else "not compared:"
                yield f"  {region.source}: {value.name} {kind} {value.left_out}"
    for region in report.regions:
        yield f"  {region.source} is beside {region.address} by {region.how}"
