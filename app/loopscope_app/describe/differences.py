"""Differences between two runs as lines of a table, and the verdict on them as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import loopscope
from loopscope.comparison import Divergence, Drift, MatchedSlots, Spot, spot_of
from loopscope.errors import EngineError, elided
from loopscope.explain import RunDifference
from loopscope.ir import Address, Model, readable, readable_steps, significant
from loopscope.view import value_preview
from loopscope_app.describe.both_runs import Drifted
from loopscope_app.describe.loop_execution import place_in_loop
from loopscope_app.describe.node_index import places

MOST_LINES = 200
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """The first difference of one value, loop, branch or output."""

    name: str
    iteration: str
    """Iteration of the innermost loop; empty outside loops."""
    left: str
    """Value or decision of the run here."""
    right: str
    """Value or decision of the other run."""
    address: str
    """Address in the run here, with iterations; empty for an output."""
    step: int
    """Step of the run here after which the difference exists."""
    spot: Spot | None = None
    """Value and row of the difference; None for loops, branches and outputs."""
    hint: str = ""
    """Tooltip: the readable address with the relative difference, or a sentence."""

    @property
    def inside(self) -> str:
        """Address of the difference; for an iteration count, the body in the last iteration that
        both runs executed.
        """
        if not self.name.endswith("(iterations)"):
            return self.address
        counts = [
            int(text.replace(",", "")) for text in (self.left, self.right) if text[:1].isdigit()
        ]
        return f"{self.address}[{max(min(counts, default=1) - 1, 0)}]/body"

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Cells of a table: value, iteration, here, there."""
        return self.name, self.iteration, self.left, self.right


def lines_of(drifted: Drifted, *, inputs: frozenset[str] = frozenset()) -> list[DifferenceLine]:
    """Return the first difference of each value, loop and branch in the order of the run here.

    ``inputs`` names the inputs that differ. Their Parameters in the main graph are left out, and
    values of the same name come first in a step.
    """
    drift = drifted.drift
    pairs = [
        pair
        for pair in drift.pairs
        if pair.first is not None and not _is_repeated(pair) and not (inputs and _is_input(pair))
    ]
    pairs.sort(key=lambda pair: _order(pair, inputs))
    lines = [_value_line(drifted, pair) for pair in pairs[:MOST_LINES]]
    lines += [parting_line(parting) for parting in drift.partings]
    lines.sort(key=lambda line: line.step)
    return [*lines, *_output_lines(drifted)]


def _is_input(pair: MatchedSlots) -> bool:
    return pair.program.parent is None and not pair.position


def _is_repeated(pair: MatchedSlots) -> bool:
    """Return True if a value is listed under another name.

    A Parameter of a branch repeats a value around it; an output of a loop or If, a value in it.
    """
    if not pair.position:
        return pair.program.parent is not None and pair.program.loop is None
    return pair.program.instructions[pair.position - 1].region is not None


def _order(pair: MatchedSlots, inputs: frozenset[str]) -> tuple[int, bool]:
    assert pair.first is not None
    return pair.first.step, _name(pair.one) not in inputs


def _value_line(drifted: Drifted, pair: MatchedSlots) -> DifferenceLine:
    assert pair.first is not None
    moment, spot = pair.first, spot_of(drifted.drift, pair, pair.first)
    left, right = both_texts(drifted, spot, moment.address)
    return DifferenceLine(
        _name(pair.one),
        "" if moment.iteration is None else f"{moment.iteration:,}",
        left,
        right,
        moment.address,
        moment.step,
        spot,
        f"{readable(moment.address)}: {significant(moment.relative, 2)} of the largest magnitude",
    )


def both_texts(drifted: Drifted, spot: Spot, address: str) -> tuple[str, str]:
    """Return both values as short texts: a number, or the element that differs most."""
    try:
        left, right = drifted.run.value(address), drifted.there(spot)
    except EngineError:
        return "?", "?"
    return _texts(np.asarray(left), np.asarray(right))


def _texts(left: np.ndarray, right: np.ndarray) -> tuple[str, str]:
    """Return the elements of two tensors that differ most, with their position.

    >>> _texts(np.asarray(3), np.asarray(17))
    ('3', '17')
    >>> _texts(np.array([1.0, 2.0]), np.array([1.0, 2.5]))
    ('2 at [1]', '2.5')
    """
    if left.shape != right.shape or left.dtype.kind not in "biuf" or right.dtype.kind not in "biuf":
        return value_preview(left), value_preview(right)
    if left.size == 1:
        return significant(left.reshape(-1)[0]), significant(right.reshape(-1)[0])
    with np.errstate(all="ignore"):
        apart = np.abs(left.astype(np.float64) - right.astype(np.float64))
    apart[np.isnan(left.astype(np.float64)) != np.isnan(right.astype(np.float64))] = np.inf
    place = np.unravel_index(int(np.nanargmax(np.nan_to_num(apart, nan=-1.0))), left.shape)
    position = f" at {[int(index) for index in place]}"
    return significant(left[place]) + position, significant(right[place])


def parting_line(parting: Divergence | RunDifference) -> DifferenceLine:
    """Return the line of a loop with another iteration count, or of an If with another branch."""
    nested, name = place_in_loop(parting.address), _name(parting.address)
    if parting.kind == "iterations":
        left, right = (_without_noun(text) for text in (parting.one, parting.other))
        name, iteration = f"{name} (iterations)", ""
    else:
        left, right = (_branch(text) for text in (parting.one, parting.other))
        name = f"{name} (branch)" if parting.kind == "branch" else name
        iteration = f"{nested.iteration:,}" if nested is not None else ""
    return DifferenceLine(
        name, iteration, left, right, parting.address, parting.step, None, parting.sentence
    )


def _without_noun(text: str) -> str:
    """Return an iteration count without its noun.

    >>> _without_noun("12 iterations"), _without_noun("1 iteration")
    ('12', '1')
    """
    return text.removesuffix("s").removesuffix(" iteration")


def _branch(text: str) -> str:
    """Return the name of a branch.

    >>> _branch("the then branch"), _branch("else")
    ('then', 'else')
    """
    return text.removeprefix("the ").removesuffix(" branch")


def _name(address: str) -> str:
    return elided(readable_steps(Address.parse(address).static)[-1], _LONGEST_NAME)


def _output_lines(drifted: Drifted) -> Iterator[DifferenceLine]:
    """Yield the outputs that differ by more than the tolerance, for two runs of one model."""
    run, other = drifted.run, drifted.other
    if other is None or len(run.model.outputs) != len(other.model.outputs):
        return
    yield from output_lines(run, other, drifted.drift.tolerance)


def output_lines(
    run: loopscope.Debugger, other: loopscope.Debugger, tolerance: float
) -> Iterator[DifferenceLine]:
    """Yield the outputs that differ by more than the tolerance; none before both runs finish."""
    if run.state != "finished" or other.state != "finished":
        return
    outputs = zip(run.model.outputs, run.result.outputs, other.result.outputs, strict=False)
    for signature, left, right in outputs:
        if not same_value(left, right, tolerance):
            name = elided(next(iter(signature.names), signature.name), _LONGEST_NAME)
            texts = (
                _texts(left, right)
                if isinstance(left, np.ndarray) and isinstance(right, np.ndarray)
                else (value_preview(left), value_preview(right))
            )
            yield DifferenceLine(f"{name} (output)", "", *texts, "", run.steps)


def same_value(left: object, right: object, tolerance: float = 0.0) -> bool:
    """Return True if two outputs are equal within the tolerance. NaN equals NaN."""
    if not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
        return value_preview(left) == value_preview(right)
    if left.shape != right.shape:
        return False
    if left.dtype.kind in "fc" and right.dtype.kind in "fc":
        largest = max(float(np.nanmax(np.abs(side), initial=0.0)) for side in (left, right))
        return bool(np.allclose(left, right, rtol=0.0, atol=tolerance * largest, equal_nan=True))
    return bool(np.array_equal(left, right))


def headline(model: Model, lines: Sequence[DifferenceLine], drift: Drift | None = None) -> str:
    """Return the verdict: the first difference, iteration counts, and the first branch.

    Names are in backticks, and what matters most is between double asterisks.
    """
    first = next((line for line in lines if line.address), None)
    if first is None:
        return ""
    counts = [line for line in lines if line.name.endswith("(iterations)")]
    branch = [line for line in lines if line.name.endswith("(branch)")]
    parts: list[str] = []
    if not counts or counts[0] is not first:
        place = f"**First difference: {_place(model, first)}**"
        parts.append(f"{place}, {first.left} here, {first.right} there.")
    if counts:
        begin, loop = ("", "The loop") if parts else ("**First difference:** ", "the loop")
        if _loop_count(model) != 1:
            loop = f"`{readable(counts[0].address)}`"
        left, right = (_times(text) for text in (counts[0].left, counts[0].right))
        runs = f"{begin}{loop} runs {left} here and {right} there"
        parts.append(f"{runs}{_branch_words(branch, first)}.")
    elif branch and branch[0] is not first:
        parts.append(f"The first branch that differs is {_branch_place(branch[0])}.")
    if drift is not None and drift.tolerance and drift.first is not None:
        if drift.first.growth is not None:
            parts.append(f"The error {drift.first.growth.words}.")
        if np.isfinite(drift.outputs):
            parts.append(f"The outputs are at most {significant(drift.outputs, 2)} apart.")
    narrowly = next((parting.narrowly for parting in drift.partings), "") if drift else ""
    return " ".join(filter(None, (*parts, narrowly)))


def _times(count: str) -> str:
    """Return a count as words, with the number between double asterisks.

    >>> _times("1"), _times("1,200"), _times("more than 8")
    ('**1** time', '**1,200** times', '**more than 8** times')
    """
    return f"**{count}** time{'' if count == '1' else 's'}"


def _branch_words(branches: Sequence[DifferenceLine], first: DifferenceLine) -> str:
    if not branches or branches[0] is first:
        return ""
    return f"; the first branch that differs is {_branch_place(branches[0])}"


def _branch_place(line: DifferenceLine) -> str:
    name = f"`{line.name.removesuffix(' (branch)')}`"
    return f"{name} in iteration {line.iteration}" if line.iteration else name


def _place(model: Model, line: DifferenceLine) -> str:
    """Return a place as words; the loop of a model with one loop needs no name."""
    steps = readable_steps(line.address)
    if _loop_count(model) == 1 and len(steps) > 1 and line.iteration:
        return f"iteration {line.iteration} › {steps[-1]}"
    return elided(readable(line.address), 160)


def _loop_count(model: Model) -> int:
    return sum(place.node.is_loop for place in places(model).values())
