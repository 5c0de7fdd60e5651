"""Result of a comparison with a source program, as data and as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loopscope.errors import elided
from loopscope.ir.readable import readable
from loopscope.peers.comparing import counted
from loopscope.peers.source.report_columns import Apart, OutputAcross, RegionAcross


@dataclass(frozen=True, slots=True)
class RuntimeColumn:
    """Results of the file's runtime for each matched loop and branch, in order."""

    called: str
    why: str
    """Reason why they are unknown; empty if they are known."""
    counts: tuple[tuple[int, ...] | None, ...] = ()
    """Counts of each loop; None if unknown."""
    instead: tuple[str, ...] = ()
    """Description of each replacing operation; empty if the region is kept."""
    sentence: str = ""
    """Result of comparing the runtime with our run."""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """Comparison of a source program, our run of the file, and the file's runtime."""

    source: str
    framework: str
    """Name and version."""
    outputs: tuple[OutputAcross, ...]
    regions: tuple[RegionAcross, ...]
    """Matched loops and branches, outer first."""
    only_source: tuple[str, ...]
    only_file: tuple[str, ...]
    """Addresses of unmatched regions of the file."""
    runtime: RuntimeColumn
    remarks: tuple[str, ...] = ()
    """Reasons why a loop of the file may run more iterations than the source's."""
    unwatched: str = ""
    """Reason why loops and branches of the source were not recorded; empty if they were."""

    @property
    def outputs_agree(self) -> bool:
        """True if no compared output differs."""
        return not any(output.differs for output in self.outputs)

    @property
    def agrees(self) -> bool:
        """True if no compared inner value and no output differs."""
        return self.outputs_agree and not self._differences

    @property
    def sentence(self) -> str:
        """Verdict in a few sentences, starting with the first difference of the run."""
        parts = [
            self._verdict,
            *self.remarks,
            self._output_sentence,
            self._unmatched,
            self._omissions,
            self._runtime,
        ]
        return " ".join(part for part in parts if part)

    @property
    def _differences(self) -> list[tuple[Apart, str]]:
        """Inner differences with their sentences, in execution order."""
        counts = [
            (region.first, self._count_difference(region.first))
            for region in self.regions
            if region.first is not None
        ]
        values = [
            (value.first, self._value_difference(value.first))
            for region in self.regions
            for value in region.values
            if value.first is not None
        ]
        return sorted([*counts, *values], key=lambda entry: entry[0].step)

    @property
    def _framework_name(self) -> str:
        return self.framework.partition(" ")[0]

    def _count_difference(self, first: Apart) -> str:
        address = elided(readable(first.address))
        return f"{self._framework_name}: {first.there}; the file: {first.here} ({address})."

    def _value_difference(self, first: Apart) -> str:
        where = elided(readable(first.address))
        sides = f"{first.there} in {self.framework}, {first.here} in the file"
        return f"{where} is the first value that differs: {sides}."

    @property
    def _verdict(self) -> str:
        differences = self._differences
        if differences:
            loops = [
                self._count_difference(region.first)
                for region in self.regions
                if region.kind != "cond" and region.first is not None
            ]
            return " ".join(dict.fromkeys((differences[0][1], *loops[:1])))
        if not self.outputs_agree:
            return ""
        compared = [output for output in self.outputs if not output.left_out]
        which = (
            "All outputs"
            if len(compared) == len(self.outputs)
            else "The outputs that were compared"
        )
        return f"{which} agree with {self.framework}{self._inside}."

    @property
    def _inside(self) -> str:
        loops = sum(region.kind != "cond" for region in self.regions)
        branches = len(self.regions) - loops
        values = [value for region in self.regions for value in region.values if value.compared]
        iterations = sum(
            max((value.compared for value in region.values), default=0) for region in self.regions
        )
        parts = [
            f"the iterations of {counted(loops, 'loop')}" if loops else "",
            f"what {counted(branches, 'If')} {'takes' if branches == 1 else 'take'}"
            if branches
            else "",
            f"{counted(len(values), 'value')} of loops in {counted(iterations, 'iteration')}"
            if values
            else "",
        ]
        return f", and so do {_joined([part for part in parts if part])}" if any(parts) else ""

    @property
    def _output_sentence(self) -> str:
        different = [output for output in self.outputs if output.differs]
        if not different:
            return "The outputs agree." if self._differences else ""
        first = different[0]
        more = ""
        if different[1:]:
            verb = "differs" if len(different) == 2 else "differ"
            more = f" {counted(len(different) - 1, 'more output')} {verb}."
        sides = f"{first.there} in {self.framework}, {first.here} in the file"
        return f"The output {elided(first.name)!r} differs: {sides}.{more}"

    @property
    def _unmatched(self) -> str:
        parts = [
            f"{_listed(names)} {'is' if len(names) == 1 else 'are'} only in {where}"
            for names, where in (
                (self.only_source, "the source"),
                (tuple(map(readable, self.only_file)), "the file"),
            )
            if names and (where == "the source" or not self.unwatched)
        ]
        return f"{'; '.join(parts)}." if parts else ""

    @property
    def _omissions(self) -> str:
        outputs = [
            f"the output {elided(output.name or output.source)!r} ({output.left_out})"
            for output in self.outputs
            if output.left_out
        ]
        text = f"Not compared: {', '.join(outputs)}." if outputs else ""
        return " ".join(part for part in (text, self.unwatched) if part)

    @property
    def _runtime(self) -> str:
        if self.runtime.why:
            return (
                f"{self.runtime.called} is not beside them: {self.runtime.why.removesuffix('.')}."
            )
        unknown = sum(
            count is None and not replacement
            for count, replacement in zip(self.runtime.counts, self.runtime.instead, strict=True)
        )
        text = f"Beside Loopscope: {self.runtime.sentence}" if self.runtime.sentence else ""
        return f"{text} {self._unknown_counts(unknown)}" if unknown else text

    def _unknown_counts(self, count: int) -> str:
        regions = counted(count, "loop or branch", "loops or branches")
        return (
            f"What {elided(self.runtime.called)} did in {regions} is not known: "
            f"it gives no values of what did not run here, "
            f"and no counts of loops inside branches."
        )

    def table(self) -> tuple[tuple[str, str, str, str], ...]:
        """Return three columns with a header and one row per loop, branch and output."""
        columns = len(self.regions) * (None,) if self.runtime.why else self.runtime.counts
        replacements = len(self.regions) * ("",) if self.runtime.why else self.runtime.instead
        head = ("", self.framework, "Loopscope", self.runtime.called)
        rows = [
            self._row(region, count, words)
            for region, count, words in zip(self.regions, columns, replacements, strict=True)
        ]
        return (
            head,
            *rows,
            *(
                (f"output {output.name}", output.there, output.here, output.runtime)
                for output in self.outputs
                if output.differs
            ),
        )

    def _row(
        self, region: RegionAcross, count: tuple[int, ...] | None, replacement: str
    ) -> tuple[str, str, str, str]:
        words = ran if region.kind != "cond" else took
        runtime_words = words(count) if count is not None else replacement or "not known"
        return (
            f"{region.source} = {readable(region.address)}",
            words(region.there),
            words(region.here),
            runtime_words,
        )


def ran(counts: Sequence[int]) -> str:
    """Return the iteration counts of a loop over all its executions, as text.

    >>> ran((3,)), ran((2, 2, 5)), ran((4, 4)), ran(())
    ('3 iterations', '2, 2, 5 iterations', '4 iterations, 2 times', 'never ran')
    """
    if not counts:
        return "never ran"
    if len(set(counts)) == 1:
        return counted(counts[0], "iteration") + (
            f", {len(counts):,} times" if len(counts) > 1 else ""
        )
    return f"{', '.join(_first_words([f'{count:,}' for count in counts]))} iterations"


def took(branches: Sequence[int]) -> str:
    """Return the branches of an If over all its executions, as text.

    >>> took((1,)), took((1, 1, 0)), took(())
    ('then', 'then 2 times, else', 'never ran')
    """
    if not branches:
        return "never ran"
    runs: list[tuple[str, int]] = []
    for is_then in branches:
        name = "then" if is_then else "else"
        if runs and runs[-1][0] == name:
            runs[-1] = name, runs[-1][1] + 1
        else:
            runs.append((name, 1))
    return ", ".join(
        _first_words([name if times == 1 else f"{name} {times:,} times" for name, times in runs])
    )


_MAX_SHOWN = 8


def _first_words(words: list[str]) -> Iterator[str]:
    yield from words[:_MAX_SHOWN]
    if len(words) > _MAX_SHOWN:
        yield "..."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(_first_words([elided(name) for name in names]))


def _joined(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
