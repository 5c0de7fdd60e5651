"""Result of a comparison with another runtime, as data and as sentences."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopscope.errors import elided
from loopscope.ir.readable import readable
from loopscope.peers.comparing import counted


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """A differing value."""

    address: str
    """Address, such as ``main/while_3[2]/body/Add_7``; for an output, its name."""
    step: int
    """Step of our run; -1 for an output."""
    here: str
    there: str


@dataclass(frozen=True, slots=True)
class Quanta:
    """Small integers that were rounded differently: they differ by one step, which does not count
    as a difference.
    """

    element_type: str
    """Type of the integers, such as ``int8``."""
    elements: int
    """Number of differing elements."""
    of: int
    """Total number of elements in the affected values."""
    values: int
    """Number of affected values."""
    first: ValueDifference


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """Result of a comparison with another runtime."""

    runtime: str
    """Name and version."""
    outputs: tuple[ValueDifference, ...]
    """Differing model outputs."""
    first: ValueDifference | None
    """First differing inner value; None if all agree."""
    values: int = 0
    """Number of compared inner values, counting each iteration."""
    places: int = 0
    """Number of graph addresses of the compared inner values."""
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """Number of addresses that were not compared, by reason."""
    refused: str = ""
    """Reason why the runtime did not return inner values; empty if it did."""
    outputs_left_out: dict[str, str] = field(default_factory=dict[str, str])
    """Model outputs that were not compared, with the reason."""
    quanta: Quanta | None = None
    """Differences by one quantisation step; None if there are none."""
    following: tuple[ValueDifference, ...] = ()
    """Outputs that differ by a quantisation step, or only as a consequence of one."""
    replaced: tuple[str, ...] = ()
    """A sentence for each loop or branch that the runtime replaced, if outputs differ and inner
    values agree.

    Outputs come from the unmodified model. A runtime does not replace a loop if its inner values
    are requested.
    """

    counts_differ: bool = False
    """True if the runtime ran a different iteration count in some loop."""

    cause: str = ""
    """Known cause of the differences in one or two sentences; empty if unknown.

    The cause was found by a test on this processor or by a request to the runtime.
    """

    @property
    def agrees(self) -> bool:
        """True if no compared inner value and no output differs."""
        return not self.outputs and self.first is None

    @property
    def outputs_agree(self) -> bool:
        """True if no compared output differs; inner values may differ."""
        return not self.outputs

    @property
    def sentence(self) -> str:
        """Summary in a few sentences; only long names are shortened, in the middle."""
        return " ".join(
            part for part in (self._verdict, self.cause, self.rounding, self._omissions) if part
        )

    @property
    def rounding(self) -> str:
        """One or two sentences about differences by one quantisation step; empty if there are
        none.
        """
        if self.quanta is None:
            return ""
        quanta = self.quanta
        where = (
            f"of {elided(readable(quanta.first.address))}"
            if quanta.values == 1
            else f"of {counted(quanta.values, 'value')}"
        )
        first = (
            "first" if quanta.values == 1 else f"first in {elided(readable(quanta.first.address))}"
        )
        differ = "differs" if quanta.elements == 1 else "differ"
        text = (
            f"{quanta.elements:,} of {counted(quanta.of, 'element')} {where} {differ} by one step, "
            f"{first}: {self._sides(quanta.first)}."
        )
        follow = "; ".join(
            f"{elided(end.address)!r} is {self._sides(end)}"
            for end in self.following
            if end is not quanta.first
        )
        return (
            f"{text} What follows from that is not called a difference: {follow}."
            if follow
            else text
        )

    def _sides(self, difference: ValueDifference) -> str:
        return f"{difference.there} in {self.runtime}, {difference.here} here"

    @property
    def _omissions(self) -> str:
        omitted = [f"{elided(name)!r} ({why})" for name, why in self.outputs_left_out.items()]
        return f"Not compared: {', '.join(omitted)}." if omitted else ""

    @property
    def _verdict(self) -> str:
        if self.first is not None:
            address = elided(readable(self.first.address))
            text = f"{address} is the first value that differs: {self._sides(self.first)}."
            agree = (
                "The outputs of the model agree"
                if not self.outputs_left_out
                else "The outputs that were compared agree"
            )
            return text if self.outputs else f"{text} {agree}."
        if not self.outputs:
            inside = ""
            if self.values:
                values, places = counted(self.values, "value"), counted(self.places, "place")
                inside = f", and so do {values} at {places} inside"
            which = "All outputs" if not self.outputs_left_out else "The outputs that were compared"
            within = f" within one quantum of {self.quanta.element_type}" if self.quanta else ""
            return f"{which} agree with {self.runtime}{within}{inside}."
        output = self.outputs[0]
        text = f"The output {elided(output.address)!r} differs: {self._sides(output)}."
        if self.refused:
            return f"{text} Where it begins cannot be said: {self.refused}."
        if self.replaced:
            alone = (
                f" Where it is asked for the values inside, {counted(self.values, 'value')} agree."
                if self.values
                else ""
            )
            return f"{text} {' '.join(self.replaced)}{alone}"
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
        return f"{text} {within} {agree}."
