"""Many runs in words: titles of columns, and findings, each with a sample that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from loopscope.errors import EngineError, counted
from loopscope.ir import readable, readable_steps, significant
from loopscope.sweeps import RowLayout, Separation, SweepSummary, places_where
from loopscope_app.describe.wording import times

_MOST_LISTED = 3
"""Number of branches that get a sentence of their own."""


@dataclass(frozen=True, slots=True)
class SweepFinding:
    """A finding."""

    title: str
    text: str
    sample: int | None = None
    """Sample that shows it."""
    bad: bool = False


def findings(summary: SweepSummary) -> Iterator[SweepFinding]:
    """Yield findings: longest executions, branches never taken, the first NaN, the first
    failure.
    """
    for address, loop in summary.loops.items():
        name = readable(address)
        if loop.most is None:
            yield SweepFinding(name, "never ran in any of these")
            continue
        average = f"{loop.total / loop.runs:,.1f} iterations a run"
        if loop.least == loop.most:
            yield SweepFinding(name, f"{times(loop.most)} each time")
        else:
            inputs_text = _inputs_text(loop.most_inputs)
            yield SweepFinding(
                f"{name}: the longest",
                f"{times(loop.most)}{inputs_text}; {average}, the shortest {loop.least:,}",
                loop.most_sample,
            )
    if summary.rows > summary.failed:
        yield from _unreached(summary)
    if summary.first_nan is not None:
        sample, address = summary.first_nan
        yield SweepFinding(
            "the first NaN or infinity",
            f"{readable(address)}; {_runs(summary.with_nan)} with one",
            sample,
            bad=True,
        )
    if summary.first_failed is not None:
        sample, error = summary.first_failed
        yield SweepFinding(
            "the first that failed",
            f"{_readable_error(error)}; {_runs(summary.failed)} failed",
            sample,
            bad=True,
        )


def headline(summary: SweepSummary) -> str:
    """Return the verdict on the loop with the most iterations, with names in backticks.

    Return an empty text if no loop ran.
    """
    ran = [(address, loop) for address, loop in summary.loops.items() if loop.most is not None]
    if not ran:
        return ""
    address, loop = max(ran, key=lambda entry: entry[1].most or 0)
    name = "The loop" if len(summary.loops) == 1 else f"`{readable(address)}`"
    if loop.least == loop.most:
        return f"**{name} runs {loop.most:,} times in each run.**"
    average = significant(loop.total / loop.runs, 3)
    longest = _inputs_text(loop.most_inputs).removeprefix(", ")
    where = f" for {longest}" if longest else ""
    return (
        f"**{name} runs {loop.least:,} to {loop.most:,} times**, {average} on average; "
        f"{loop.most:,}{where}."
    )


def separation_words(separation: Separation) -> str:
    """Return what separates the runs above a threshold, as sentences.

    >>> separation_words(Separation("iterations main/loop", 50.0, 500, 52, ()))
    '52 of 500 runs are above 50; no input separates them from the others.'
    >>> separation_words(Separation("then main/if", 0.0, 500, 0, ()))
    'No run is above 0 in then main/if.'
    """
    bound, runs, more = significant(separation.bound), separation.runs, separation.more
    if not separation.column.startswith("iterations "):
        bound = f"{bound} in {separation.column}"
    if not more:
        return f"No run is above {bound}."
    if more == runs:
        return f"All {runs:,} runs are above {bound}."
    begin = f"{more:,} of {_runs(runs)} {'is' if more == 1 else 'are'} above {bound}"
    if not separation.rules:
        return f"{begin}; no input separates them from the others."
    conditions = " or ".join(" and ".join(rule.conditions) for rule in separation.rules)
    matching = sum(rule.runs for rule in separation.rules)
    right = sum(rule.more for rule in separation.rules)
    share = "all" if right == matching > 1 else f"{right:,} of"
    rule_words = (
        f"{conditions}: {share} {_runs(matching)} are above {significant(separation.bound)}."
    )
    if 2 * right > more:
        return f"{begin}. Most of them where {rule_words}"
    return f"{begin}. No single rule separates them. {rule_words}"


def _unreached(summary: SweepSummary) -> Iterator[SweepFinding]:
    """Yield branches that no run took, and Ifs that no run reached; many of them in one
    sentence.
    """
    for title, names in (
        ("never taken", summary.other_never_taken),
        ("never reached", summary.never_ran),
    ):
        words = [said(name) if title == "never taken" else readable(name) for name in names]
        yield from (SweepFinding(title, word) for word in words[:_MOST_LISTED])
        if len(words) > _MOST_LISTED:
            more, noun = len(words) - _MOST_LISTED, "branches" if title == "never taken" else "Ifs"
            yield SweepFinding(title, f"{more:,} more {noun}")


def _readable_error(error: str) -> str:
    """Return the error of a run with its address readable.

    >>> _readable_error("main/a%2Floop[2]/body/x: Add-1 failed: 2 and 3")
    'a › loop · iteration 2 › x: Add-1 failed: 2 and 3'
    >>> _readable_error("input 'x' takes i64")
    "input 'x' takes i64"
    """
    place, colon, rest = error.partition(": ")
    return f"{readable(place)}{colon}{rest}" if place.startswith("main/") else error


def _inputs_text(inputs: Mapping[str, Any]) -> str:
    """Return inputs as text.

    >>> _inputs_text({"n": 27, "x": 0.3421095907688141})
    ', n = 27, x = 0.34211'
    """
    texts = (
        f"{name} = {significant(value, 5) if isinstance(value, int | float) else value}"
        for name, value in inputs.items()
    )
    return f", {', '.join(texts)}" if inputs else ""


def _runs(count: int) -> str:
    return counted(count, "run")


def progress(done: int, count: int, seconds: float) -> str:
    """Return the progress of a sweep.

    >>> progress(500, 2000, 2.0), progress(0, 9, 1.0)
    ('500 of 2,000 runs · 250 a second · 6 s left', '0 of 9 runs')
    """
    rate = done / seconds if seconds > 0 else 0.0
    left = f" · {rate:,.0f} a second · {(count - done) / rate:,.0f} s left" if rate >= 1 else ""
    return f"{done:,} of {_runs(count)}{left}"


def outcome(rows: int, available: int, cut: str, seconds: float) -> str:
    """Return the result of a finished sweep.

    >>> outcome(500, 500, "", 0.23), outcome(20, 500, "it was stopped", 3)
    ('500 runs in 0.2 s', '20 of 500 runs in 3.0 s: it was stopped')
    """
    part = f" of {available:,}" if rows < available else ""
    reason = f": {cut}" if cut else f": the first {rows:,} are run here" if rows < available else ""
    return f"{rows:,}{part} run{'' if available == 1 else 's'} in {seconds:,.1f} s{reason}"


def counts(layout: RowLayout) -> list[str]:
    """Return the columns of counts, iterations first.

    For a loop with several executions per run, the longest execution counts.
    """
    names = [loop.counts[-1] for loop in layout.loops]
    for branch in layout.branches:
        names += [f"then {branch.address}", f"else {branch.address}"]
    return names


def drawable(layout: RowLayout, rows: pa.Table) -> list[str]:
    """Return the numeric columns for an axis: varying inputs, other columns, constant inputs."""
    inputs = [column.name for column in layout.inputs if column.kind != "string"]
    others = [
        name
        for name in rows.column_names
        if name not in inputs and not pa.types.is_string(rows.schema.field(name).type)
    ]
    varying = [
        name for name in inputs if len(set(pc.min_max(rows.column(name)).as_py().values())) > 1
    ]
    return [*varying, *others, *(name for name in inputs if name not in varying)]


def said(name: str) -> str:
    """Return the title of a column, with readable addresses.

    >>> said("iterations main/while_not_one"), said("then main/loop/body/a%2Fif"), said("number")
    ('iterations while_not_one', 'then loop › a › if', 'number')
    """
    kind, separator, place = name.partition(" main/")
    return f"{kind} {readable(f'main/{place}')}" if separator else name


def problem(rows: pa.Table, condition: str) -> str:
    """Return the error of a condition, or an empty text."""
    try:
        places_where(rows, condition)
    except EngineError as error:
        return str(error)
    return ""


def in_words(text: str, rows: pa.Table) -> str:
    """Return a sentence of the engine with the titles of columns."""
    for name in sorted(
        (name for name in rows.column_names if " main/" in name), key=len, reverse=True
    ):
        text = text.replace(name, said(name))
    return text


def short_names(addresses: Sequence[str], longest: int) -> dict[str, str]:
    """Return a unique short name for each address: its shortest unique end, with the middle cut out
    if that is long.

    >>> short_names(["main/a%2Floop/body/if", "main/b%2Floop/body/if"], 40)
    {'main/a%2Floop/body/if': 'a › loop › if', 'main/b%2Floop/body/if': 'b › loop › if'}
    >>> list(short_names(["main/a_long_name_of_one", "main/a_long_name_of_two"], 12).values())
    ['a_lon…of_one', 'a_lon…of_two']
    """
    steps = {address: readable_steps(address) for address in addresses}
    ends = {
        address: _unique_end(
            words_of_place, [other for candidate, other in steps.items() if candidate != address]
        )
        for address, words_of_place in steps.items()
    }
    half = longest // 2
    cut = {
        address: words if len(words) <= longest else f"{words[: half - 1]}…{words[-half:]}"
        for address, words in ends.items()
    }
    return cut if len(set(cut.values())) == len(cut) else ends


def _unique_end(words: Sequence[str], others: Sequence[Sequence[str]]) -> str:
    counts = range(1, len(words) + 1)
    shortest = next(
        (count for count in counts if all(other[-count:] != words[-count:] for other in others)),
        len(words),
    )
    return " › ".join(words[-shortest:])
