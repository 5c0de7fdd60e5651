"""What came of a comparison with a source program, as data and in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loopscope.errors import elided
from loopscope.ir.readable import readable
from loopscope.peers.comparing import counted
from loopscope.peers.source.report_columns import Apart, OutputAcross, RegionAcross


@dataclass(frozen=True, slots=True)
class RuntimeColumn:
    """What the file's runtime does, beside each loop and branch that was matched, in their
    order.
    """

    called: str
    why: str
    """Why it is not known; empty where it is."""
    counts: tuple[tuple[int, ...] | None, ...] = ()
    """Of each loop; None where they are not known."""
    instead: tuple[str, ...] = ()
    """What runs in place of each, in words; empty where it is kept."""
    sentence: str = ""
    """What came of the comparison of the runtime with our run."""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """A source program, our run of the file, and the file's runtime."""

    source: str
    framework: str
    """Name and version."""
    outputs: tuple[OutputAcross, ...]
    regions: tuple[RegionAcross, ...]
    """Loops and branches that both have, outer ones first."""
    only_source: tuple[str, ...]
    only_file: tuple[str, ...]
    """Addresses."""
    runtime: RuntimeColumn
    remarks: tuple[str, ...] = ()
    """Why a loop of the file may run more often than the source's."""
    unwatched: str = ""
    """Why the loops and branches of the source were not watched; empty where they were."""

    @property
    def outputs_agree(self) -> bool:
        """Whether no output that was compared differs."""
        return not any(one.differs for one in self.outputs)

    @property
    def agrees(self) -> bool:
        """Whether nothing that was compared differs, inside or at the end."""
        return self.outputs_agree and not self._found

    @property
    def sentence(self) -> str:
        """The verdict in a few sentences; the first one is what differs first in the run."""
        parts = [
            self._verdict,
            *self.remarks,
            self._end,
            self._unmatched,
            self._omissions,
            self._runtime,
        ]
        return " ".join(part for part in parts if part)

    @property
    def _found(self) -> list[tuple[Apart, str]]:
        """All that differs inside, the earliest first, each with its sentence."""
        counts = [
            (one.first, self._parted(one.first)) for one in self.regions if one.first is not None
        ]
        values = [
            (value.first, self._value(value.first))
            for one in self.regions
            for value in one.values
            if value.first is not None
        ]
        return sorted([*counts, *values], key=lambda one: one[0].step)

    @property
    def _called(self) -> str:
        return self.framework.partition(" ")[0]

    def _parted(self, first: Apart) -> str:
        return f"{self._called}: {first.there}; the file: {first.here} ({elided(readable(first.address))})."

    def _value(self, first: Apart) -> str:
        where = elided(readable(first.address))
        return f"{where} is the first value that differs: {first.there} in {self.framework}, {first.here} in the file."

    @property
    def _verdict(self) -> str:
        found = self._found
        if found:
            loops = [
                self._parted(one.first)
                for one in self.regions
                if one.kind != "cond" and one.first is not None
            ]
            return " ".join(dict.fromkeys((found[0][1], *loops[:1])))
        if not self.outputs_agree:
            return ""
        compared = [one for one in self.outputs if not one.left_out]
        which = (
            "All outputs"
            if len(compared) == len(self.outputs)
            else "The outputs that were compared"
        )
        return f"{which} agree with {self.framework}{self._inside}."

    @property
    def _inside(self) -> str:
        loops = sum(one.kind != "cond" for one in self.regions)
        branches = len(self.regions) - loops
        values = [value for one in self.regions for value in one.values if value.compared]
        iterations = sum(
            max((value.compared for value in one.values), default=0) for one in self.regions
        )
        told = [
            f"the iterations of {counted(loops, 'loop')}" if loops else "",
            f"what {counted(branches, 'If')} {'takes' if branches == 1 else 'take'}"
            if branches
            else "",
            f"{counted(len(values), 'value')} of loops in {counted(iterations, 'iteration')}"
            if values
            else "",
        ]
        return f", and so do {_joined([one for one in told if one])}" if any(told) else ""

    @property
    def _end(self) -> str:
        different = [one for one in self.outputs if one.differs]
        if not different:
            return "The outputs agree." if self._found else ""
        one = different[0]
        more = (
            f" {counted(len(different) - 1, 'more output')} {'differs' if len(different) == 2 else 'differ'}."
            if different[1:]
            else ""
        )
        return f"The output {elided(one.name)!r} differs: {one.there} in {self.framework}, {one.here} in the file.{more}"

    @property
    def _unmatched(self) -> str:
        told = [
            f"{_listed(names)} {'is' if len(names) == 1 else 'are'} only in {where}"
            for names, where in (
                (self.only_source, "the source"),
                (tuple(map(readable, self.only_file)), "the file"),
            )
            if names and (where == "the source" or not self.unwatched)
        ]
        return f"{'; '.join(told)}." if told else ""

    @property
    def _omissions(self) -> str:
        outputs = [
            f"the output {elided(one.name or one.source)!r} ({one.left_out})"
            for one in self.outputs
            if one.left_out
        ]
        told = f"Not compared: {', '.join(outputs)}." if outputs else ""
        return " ".join(part for part in (told, self.unwatched) if part)

    @property
    def _runtime(self) -> str:
        if self.runtime.why:
            return (
                f"{self.runtime.called} is not beside them: {self.runtime.why.removesuffix('.')}."
            )
        unknown = sum(
            count is None and not instead
            for count, instead in zip(self.runtime.counts, self.runtime.instead, strict=True)
        )
        told = f"Beside Loopscope: {self.runtime.sentence}" if self.runtime.sentence else ""
        return f"{told} {self._unknown(unknown)}" if unknown else told

    def _unknown(self, count: int) -> str:
        what = f"What {elided(self.runtime.called)} did in {counted(count, 'loop or branch', 'loops or branches')} is not known"
        return f"{what}: it gives no values of what did not run here, and no counts of loops inside branches."

    def table(self) -> tuple[tuple[str, str, str, str], ...]:
        """Three columns with a row for each loop, branch and output, and a first row of what
        they are.
        """
        columns = len(self.regions) * (None,) if self.runtime.why else self.runtime.counts
        instead = len(self.regions) * ("",) if self.runtime.why else self.runtime.instead
        head = ("", self.framework, "Loopscope", self.runtime.called)
        rows = [
            self._row(one, count, words)
            for one, count, words in zip(self.regions, columns, instead, strict=True)
        ]
        return (
            head,
            *rows,
            *(
                (f"output {one.name}", one.there, one.here, one.runtime)
                for one in self.outputs
                if one.differs
            ),
        )

    def _row(
        self, region: RegionAcross, count: tuple[int, ...] | None, instead: str
    ) -> tuple[str, str, str, str]:
        told = ran if region.kind != "cond" else took
        there = told(count) if count is not None else instead or "not known"
        return (
            f"{region.source} = {readable(region.address)}",
            told(region.there),
            told(region.here),
            there,
        )


def ran(counts: Sequence[int]) -> str:
    """How often a loop ran, over all its executions.

    >>> ran((3,)), ran((2, 2, 5)), ran((4, 4)), ran(())
    ('3 iterations', '2, 2, 5 iterations', '4 iterations, 2 times', 'never ran')
    """
    if not counts:
        return "never ran"
    if len(set(counts)) == 1:
        return counted(counts[0], "iteration") + (
            f", {len(counts):,} times" if len(counts) > 1 else ""
        )
    return f"{', '.join(_some([f'{one:,}' for one in counts]))} iterations"


def took(branches: Sequence[int]) -> str:
    """Which branches an If took, over all its executions.

    >>> took((1,)), took((1, 1, 0)), took(())
    ('then', 'then 2 times, else', 'never ran')
    """
    if not branches:
        return "never ran"
    runs: list[tuple[str, int]] = []
    for one in branches:
        name = "then" if one else "else"
        if runs and runs[-1][0] == name:
            runs[-1] = name, runs[-1][1] + 1
        else:
            runs.append((name, 1))
    return ", ".join(
        _some([name if times == 1 else f"{name} {times:,} times" for name, times in runs])
    )


_MOST_SHOWN = 8


def _some(words: list[str]) -> Iterator[str]:
    yield from words[:_MOST_SHOWN]
    if len(words) > _MOST_SHOWN:
        yield "..."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(_some([elided(one) for one in names]))


def _joined(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
