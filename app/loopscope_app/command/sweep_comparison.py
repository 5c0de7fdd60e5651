"""``loopscope sweep --against``: which inputs another model, or another precision, treats
otherwise.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping

import loopscope
from loopscope.errors import in_one_line, neutral
from loopscope.sweeps import Change, Changes, Sweep, changes
from loopscope_app.command import progress
from loopscope_app.command.drift import rounding_said
from loopscope_app.command.run import interruptible

_SHOWN = 10
FINISHED, FAILED, STOPPED = 0, 1, 130


def main(begin: Callable[[str, Mapping[str, str]], Sweep], options: argparse.Namespace) -> int:
    """The exit code, as that of a single sweep. ``begin``: a sweep of the model at a path, with
    values rounded.
    """
    if options.out:
        raise loopscope.EngineError(
            "--against compares as it runs and keeps no rows: sweep each model with an --out of its own for those"
        )
    one, other = (
        begin(options.model, {}),
        begin(options.against or options.model, rounding_said(options.round)),
    )

    def stop() -> None:
        one.stop()
        other.stop()

    with interruptible(stop), progress.sweeping(one):
        found = changes(one, other)
    complete = found.samples == one.count
    print(
        _as_json(found, one, other, options, complete=complete)
        if options.json
        else "\n".join(_lines(found, one, complete=complete))
    )
    if not complete:
        return STOPPED
    return FAILED if one.summary.failed or other.summary.failed else FINISHED


def _as_json(
    found: Changes, one: Sweep, other: Sweep, options: argparse.Namespace, *, complete: bool
) -> str:
    told = {
        "model": options.model,
        "against": options.against or options.model,
        "round": options.round,
        "complete": complete,
        "changes": found.plain(),
        "summary": one.summary.plain(),
        "summary_against": other.summary.plain(),
    }
    return json.dumps(told)


def _lines(found: Changes, one: Sweep, *, complete: bool) -> Iterable[str]:
    yield from (plain(sentence) for sentence in found.sentences())
    yield from (plain(_said(change)) for change in found.listed[:_SHOWN])
    if len(found.listed) > _SHOWN:
        yield "... --json lists more of them"
    if not complete:
        yield f"stopped after {found.samples:,} of {one.count:,} inputs"


def _said(change: Change) -> str:
    return f"sample {change.sample}: {change.column} {change.one} -> {change.other}"


def plain(text: str) -> str:
    """Names in a model are anybody's."""
    line = in_one_line(text)
    return neutral(line, len(line))
