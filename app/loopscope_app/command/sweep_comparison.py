"""``loopscope sweep --against``: list inputs whose control flow differs in another model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping

import loopscope
from loopscope.errors import in_one_line, neutral
from loopscope.sweeps import Change, Changes, Sweep, changes
from loopscope_app.command import progress
from loopscope_app.command.command_line import FAILED, FINISHED, STOPPED
from loopscope_app.command.drift import parse_rounding
from loopscope_app.command.run import interruptible

_LISTED_CHANGES = 10


def main(begin: Callable[[str, Mapping[str, str]], Sweep], options: argparse.Namespace) -> int:
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
        _as_json(comparison, sweep, other_sweep, options, complete=complete)
        if options.json
        else "\n".join(_lines(comparison, sweep, complete=complete))
    )
    if not complete:
        return STOPPED
    return FAILED if sweep.summary.failed or other_sweep.summary.failed else FINISHED


def _as_json(
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


def _lines(comparison: Changes, sweep: Sweep, *, complete: bool) -> Iterable[str]:
    yield from (plain(sentence) for sentence in comparison.sentences())
    yield from (plain(_change_line(change)) for change in comparison.listed[:_LISTED_CHANGES])
    if len(comparison.listed) > _LISTED_CHANGES:
        yield "... --json lists more of them"
    if not complete:
        yield f"stopped after {comparison.samples:,} of {sweep.count:,} inputs"


def _change_line(change: Change) -> str:
    return f"sample {change.sample}: {change.column} {change.one} -> {change.other}"


def plain(text: str) -> str:
    """Return a text as one line without control characters: names in a model may contain any."""
    line = in_one_line(text)
    return neutral(line, len(line))
