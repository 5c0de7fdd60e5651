"""Verification of expectations on many runs of one model: bounds over a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import loopscope
from loopscope.errors import EngineError, InputError, counted, shorten
from loopscope.ir import full_address
from loopscope.sweeps import Sweep, changes, samples_of
from loopscope_app.command.loop_tests.expectations import (
    Expectation,
    ExpectedBranches,
    ExpectedCheck,
    ExpectedControlFlow,
    ExpectedDrift,
    ExpectedEnding,
    ExpectedFinite,
    ExpectedIterations,
)
from loopscope_app.command.loop_tests.one_run import RunVerifier, taken_share
from loopscope_app.command.loop_tests.results import ExpectationResult

_MAX_SAMPLES = 100_000
"""Largest number of runs of one test, whose rows are held in memory."""
_RANGES = ("..", ",", "(")


def is_data_set(inputs: str) -> bool:
    """Return True for inputs that describe many runs.

    >>> [is_data_set(text) for text in ("random:9 seed=3", "n=1..5", "n=1", "in.npz", "runs/")]
    [True, True, False, False, True]
    """
    words = inputs.split()
    if not words:
        return False
    if words[0].startswith("random:") or inputs.endswith(("/", ".parquet", ".csv")):
        return True
    return all("=" in word for word in words) and any(mark in inputs for mark in _RANGES)


class SweepVerifier:
    """Verification of expectations on the rows of a sweep."""

    def __init__(
        self,
        model: loopscope.Model,
        inputs: str,
        path: Callable[[str], str],
        seconds: float,
    ) -> None:
        self._model, self._inputs, self._path = model, inputs, path
        self._seconds = seconds
        sweep = self._sweep(model)
        if sweep.count > _MAX_SAMPLES:
            raise InputError(
                f"{shorten(inputs, 100)}: the data set has {sweep.count:,} samples, "
                f"expected at most {_MAX_SAMPLES:,}"
            )
        self._rows = list(sweep)
        if not self._rows:
            raise InputError(f"{shorten(inputs, 100)}: the data set has no sample")
        self._columns = frozenset(sweep.columns)

    def outcome(self, expectation: Expectation) -> ExpectationResult:
        """Return whether all runs meet an expectation; an error if it cannot be verified."""
        try:
            match expectation:
                case ExpectedIterations():
                    return self._iterations(expectation)
                case ExpectedEnding():
                    return self._ended(expectation)
                case ExpectedBranches():
                    return self._branch(expectation)
                case ExpectedFinite():
                    return self._each(expectation, "first NaN", lambda place: place is None)
                case ExpectedControlFlow():
                    return self._same_control_flow(expectation)
                case ExpectedCheck():
                    return self._single(0).outcome(expectation)
                case ExpectedDrift():
                    raise InputError("a drift is verified on one run, not on a data set")
        except (EngineError, OSError) as error:
            return ExpectationResult(expectation.words, "error", str(error))

    def _sweep(self, model: loopscope.Model) -> Sweep:
        limits = loopscope.Limits(seconds=self._seconds)
        return loopscope.sweep(
            model, self._inputs, limits=limits, margins=False, seconds=False, workers=1
        )

    def _iterations(self, expectation: ExpectedIterations) -> ExpectationResult:
        name = f"iterations {full_address(self._model, expectation.address)}"
        names = [name] if name in self._columns else [f"{name} min", f"{name} max"]
        self._expect(names[0], expectation.address, "a loop")
        for row in self._rows:
            counts = [row[column] for column in names if row[column] is not None]
            wrong = next((count for count in counts if not expectation.bound.holds(count)), None)
            if wrong is not None or not counts:
                text = row["error"] or "it did not run" if wrong is None else f"{wrong:,}"
                return self._failed(expectation, row, text)
        counts = [row[column] for row in self._rows for column in names]
        text = f"{min(counts):,} to {max(counts):,} in {counted(len(self._rows), 'run')}"
        return ExpectationResult(expectation.words, "passed", text)

    def _ended(self, expectation: ExpectedEnding) -> ExpectationResult:
        column = f"ended {full_address(self._model, expectation.address)}"
        self._expect(column, expectation.address, "a loop")
        return self._each(
            expectation,
            column,
            lambda endings: (
                endings is not None and set(endings.split(", ")) <= set(expectation.endings)
            ),
        )

    def _branch(self, expectation: ExpectedBranches) -> ExpectationResult:
        address = full_address(self._model, expectation.address)
        self._expect(f"then {address}", expectation.address, "an If")
        if expectation.tape:
            raise InputError(
                f"branches of {shorten(expectation.address, 100)}: a tape is verified on one run, "
                "expected a bound such as 'then >= 20%' for a data set"
            )
        if expectation.bound is None:
            other = "else" if expectation.branch == "then" else "then"
            return self._each(expectation, f"{other} {address}", lambda count: not count)
        totals = {
            branch: sum(row[f"{branch} {address}"] or 0 for row in self._rows)
            for branch in ("then", "else")
        }
        number, text = taken_share(totals[expectation.branch], sum(totals.values()), expectation)
        if expectation.bound.holds(number):
            return ExpectationResult(expectation.words, "passed", text)
        return ExpectationResult(expectation.words, "failed", text, address)

    def _same_control_flow(self, expectation: ExpectedControlFlow) -> ExpectationResult:
        other = loopscope.read_model(self._path(expectation.other))
        result = changes(self._sweep(self._model), self._sweep(other))
        sentences = list(result.sentences())
        if not result.changed and not result.alone:
            return ExpectationResult(expectation.words, "passed", sentences[0])
        sample = result.listed[0].sample if result.listed else None
        return ExpectationResult(expectation.words, "failed", "; ".join(sentences), sample=sample)

    def _each(
        self, expectation: Expectation, column: str, holds: Callable[[Any], bool]
    ) -> ExpectationResult:
        for row in self._rows:
            if row["error"] or not holds(row.get(column)):
                return self._failed(expectation, row, row["error"] or str(row.get(column)))
        return ExpectationResult(expectation.words, "passed", counted(len(self._rows), "run"))

    def _failed(
        self, expectation: Expectation, row: Mapping[str, Any], text: str
    ) -> ExpectationResult:
        """Return the failure of one sample, explained by running it again."""
        sample = int(row["sample"])
        again = self._single(sample).outcome(expectation)
        reason = again.reason if again.state == "failed" else text
        return ExpectationResult(
            expectation.words,
            "failed",
            f"sample {sample:,}: {reason}",
            again.address,
            sample,
            again.run,
        )

    def _single(self, sample: int) -> RunVerifier:
        """Return a verifier of one sample alone."""
        batch = samples_of(self._model, self._inputs).batch(sample, sample + 1)
        inputs: dict[str | int, object] = {}
        inputs.update(batch.inputs(0).items())
        run = loopscope.Debugger(
            self._model, inputs, limits=loopscope.Limits(seconds=self._seconds)
        )
        run.run()
        return RunVerifier(run, inputs, "", self._path, self._seconds)

    def _expect(self, column: str, name: str, kind: str) -> None:
        """Raise ``InputError`` if an address does not name a loop, or an If."""
        if column not in self._columns:
            raise InputError(
                f"{shorten(name, 100)}: it is not the address of {kind}, "
                f"expected one of {_listed(self._columns, column)}"
            )


def _listed(columns: Sequence[str] | frozenset[str], column: str) -> str:
    """Return the addresses that have a column of the same kind."""
    kind = column.partition(" ")[0]
    addresses = sorted(_addresses(columns, kind))
    return shorten(", ".join(addresses), 200) or "none, because the model has none"


def _addresses(columns: Sequence[str] | frozenset[str], kind: str) -> Iterator[str]:
    for column in columns:
        first, _, rest = column.partition(" ")
        if first == kind and not rest.endswith((" min", " max")):
            yield rest.removesuffix(" sum")
