"""What came of a comparison with another runtime, as data and in sentences."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopscope.errors import elided
from loopscope.ir.readable import readable
from loopscope.peers.comparing import counted


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """One value that differs."""

    address: str
    """Such as ``main/while_3[2]/body/Add_7``; the name of an output of the model."""
    step: int
    """Of our run; -1 for an output."""
    here: str
    there: str


@dataclass(frozen=True, slots=True)
class Quanta:
    """Small integers that were rounded the other way: they differ by one step, which is not
    called a difference.
    """

    element_type: str
    """Of the integers, such as ``int8``."""
    elements: int
    """How many differ."""
    of: int
    """Of so many, in the values in which one differs."""
    values: int
    """In how many values."""
    first: ValueDifference


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """What came out of a comparison."""

    runtime: str
    """Name and version."""
    outputs: tuple[ValueDifference, ...]
    """The outputs of the model that differ."""
    first: ValueDifference | None
    """The first value inside that differs; None where all agree."""
    values: int = 0
    """Values inside that were compared, each iteration counted."""
    places: int = 0
    """At so many places of the graph."""
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """Places that were not compared, by the reason."""
    refused: str = ""
    """Why the runtime did not give the values inside; empty where it did."""
    outputs_left_out: dict[str, str] = field(default_factory=dict[str, str])
    """Outputs of the model that were not compared, with the reason."""
    quanta: Quanta | None = None
    """What differs by one quantum; None where nothing does."""
    following: tuple[ValueDifference, ...] = ()
    """Outputs that differ by a quantum, or only by what follows from one."""
    replaced: tuple[str, ...] = ()
    """Where outputs differ and all inside agrees: what the runtime runs in place of each loop or
    branch that they come from, a sentence each. The outputs are those of the model as it is; being
    asked for values inside keeps a runtime from replacing what they are in.
    """

    counts_differ: bool = False
    """Whether a loop runs another number of times there."""

    cause: str = ""
    """A cause that is known, this processor's or one that the runtime was asked about, in one or
    two sentences; empty where none is.
    """

    @property
    def agrees(self) -> bool:
        """Whether nothing that was compared differs, inside or at the end."""
        return not self.outputs and self.first is None

    @property
    def outputs_agree(self) -> bool:
        """Whether no output that was compared differs; values inside may."""
        return not self.outputs

    @property
    def sentence(self) -> str:
        """What to know, in a few sentences, never cut: what is long is a name, and is shortened
        in its middle.
        """
        return " ".join(
            part for part in (self._verdict, self.cause, self.rounding, self._omissions) if part
        )

    @property
    def rounding(self) -> str:
        """What differs by one quantum, in one or two sentences; empty where nothing does."""
        if self.quanta is None:
            return ""
        one = self.quanta
        where = (
            f"of {elided(readable(one.first.address))}"
            if one.values == 1
            else f"of {counted(one.values, 'value')}"
        )
        first = "first" if one.values == 1 else f"first in {elided(readable(one.first.address))}"
        differ = "differs" if one.elements == 1 else "differ"
        told = f"{one.elements:,} of {counted(one.of, 'element')} {where} {differ} by one step, {first}: {self._sides(one.first)}."
        follow = "; ".join(
            f"{elided(end.address)!r} is {self._sides(end)}"
            for end in self.following
            if end is not one.first
        )
        return (
            f"{told} What follows from that is not called a difference: {follow}."
            if follow
            else told
        )

    def _sides(self, one: ValueDifference) -> str:
        return f"{one.there} in {self.runtime}, {one.here} here"

    @property
    def _omissions(self) -> str:
        told = [f"{elided(name)!r} ({why})" for name, why in self.outputs_left_out.items()]
        return f"Not compared: {', '.join(told)}." if told else ""

    @property
    def _verdict(self) -> str:
        if self.first is not None:
            told = f"{elided(readable(self.first.address))} is the first value that differs: {self._sides(self.first)}."
            agree = (
                "The outputs of the model agree"
                if not self.outputs_left_out
                else "The outputs that were compared agree"
            )
            return told if self.outputs else f"{told} {agree}."
        if not self.outputs:
            inside = (
                f", and so do {counted(self.values, 'value')} at {counted(self.places, 'place')} inside"
                if self.values
                else ""
            )
            which = "All outputs" if not self.outputs_left_out else "The outputs that were compared"
            within = f" within one quantum of {self.quanta.element_type}" if self.quanta else ""
            return f"{which} agree with {self.runtime}{within}{inside}."
        one = self.outputs[0]
        told = f"The output {elided(one.address)!r} differs: {self._sides(one)}."
        if self.refused:
            return f"{told} Where it begins cannot be said: {self.refused}."
        if self.replaced:
            alone = (
                f" Where it is asked for the values inside, {counted(self.values, 'value')} agree."
                if self.values
                else ""
            )
            return f"{told} {' '.join(self.replaced)}{alone}"
        agree = (
            f"what could be compared inside agrees ({counted(self.values, 'value')})"
            if self.values
            else "no value inside could be compared"
        )
        within = (
            "Where it is asked for the values inside,"
            if self.cause
            else "Where it begins cannot be said:"
        )
        return f"{told} {within} {agree}."
