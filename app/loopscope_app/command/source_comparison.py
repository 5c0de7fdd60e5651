"""``loopscope compare --source``: a model beside the program that it was converted from, and
beside its own runtime.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import loopscope
from loopscope.errors import neutral
from loopscope.peers import Source, SourceReport, against_source, source_alone
from loopscope_app.command import progress
from loopscope_app.command.run import FAILED, FINISHED, REFUSED

_WIDEST = 60


def beside_source(
    source: Source,
    ran: tuple[loopscope.Debugger, Mapping[str | int, object]],
    options: argparse.Namespace,
) -> int:
    """Prints what came of it; the exit code: 0 the outputs agree with the source's, 1 one
    differs, 2 the run did not finish.
    """
    debugger, inputs = ran
    if debugger.state != "finished":
        return _alone(source, debugger, inputs, options)
    with progress.doing("running the source, and the model in its own runtime"):
        report = against_source(
            debugger, source, inputs, tolerance=options.tolerance, seconds=options.seconds
        )
    if options.json:
        told = {
            "agrees": report.agrees,
            "outputs_agree": report.outputs_agree,
            "sentence": report.sentence,
            **asdict(report),
        }
        print(json.dumps(told))
    else:
        for line in _lines(report):
            print(neutral(line, len(line)))
    return FINISHED if report.outputs_agree else FAILED


def _alone(
    source: Source,
    debugger: loopscope.Debugger,
    inputs: Mapping[str | int, object],
    options: argparse.Namespace,
) -> int:
    """Nothing is compared; the source is told all the same."""
    with progress.doing("running the source, and the model in its own runtime"):
        report = source_alone(debugger, source, inputs, seconds=options.seconds)
    if options.json:
        print(json.dumps({"agrees": None, "sentence": report.sentence, **asdict(report)}))
    else:
        for line in (report.sentence, *_columns(report.table())):
            print(neutral(line, len(line)))
    return REFUSED


def _columns(table: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
    widths = [min(max(len(row[column]) for row in table), _WIDEST) for column in range(3)]
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
                yield f"  {region.source}: {value.name} (beside {value.label}, by {value.how}) differs first at {value.first.address}"
            elif value.left_out:
                yield f"  {region.source}: {value.name} {'compared ' if value.compared else 'not compared: '}{value.left_out}"
    for region in report.regions:
        yield f"  {region.source} is beside {region.address} by {region.how}"
