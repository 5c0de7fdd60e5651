"""The verdict on gradients over the iterations of a loop, as a headline and as sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from loopscope.explain import BranchWalkedBack, WalkedBack
from loopscope.ir import iteration_words, significant

_SEVERITY: Mapping[str, int] = {
    "is not a number": 0,
    "explodes": 1,
    "vanishes": 2,
    "is cut off": 3,
    "does not flow": 4,
    "flows": 5,
}
"""Order of verdicts, the worst first."""
_MOST_SENTENCES = 8


def most_severe(walk: WalkedBack) -> int | None:
    """Return the index of the adjoint with the worst verdict; None without adjoints."""
    kinds = [_SEVERITY[adjoint.fate.kind] for adjoint in walk.adjoints]
    return kinds.index(min(kinds)) if kinds else None


def headline(walk: WalkedBack) -> str:
    """Return the worst verdict as a sentence, with names in backticks."""
    number = most_severe(walk)
    if number is None:
        return ""
    adjoint = walk.adjoints[number]
    subject = "The gradient" if len(walk.adjoints) == 1 else f"The gradient of `{adjoint.name}`"
    fate = adjoint.fate
    if fate.kind not in ("vanishes", "explodes", "flows") or not math.isfinite(fate.last):
        return f"**{subject} {adjoint.sentence}.**"
    ends = ((fate.start, fate.begins), (fate.last, fate.last_place))
    way = ", ".join(
        f"{significant(norm, 2)} at {iteration_words(min(place, walk.count - 1))}"
        for norm, place in ends
    )
    pace = adjoint.sentence.partition("; ")[2]
    return f"**{subject} {fate.kind}: {way}**{f'; {pace}' if pace else ''}."


def branch_headline(branches: Sequence[BranchWalkedBack]) -> str:
    """Return the verdict on Ifs, for a gradient without loops; a missing flow comes first."""
    ordered = sorted(branches, key=lambda branch: "does not flow" not in branch.sentence)
    return f"**The gradient {ordered[0].sentence}.**" if ordered else ""


def sentences(walk: WalkedBack) -> list[str]:
    """Return the verdicts on the other adjoints, and the contributions of iterations."""
    worst = most_severe(walk)
    words = [
        f"Gradient of `{adjoint.name}` **{adjoint.sentence}**."
        for number, adjoint in enumerate(walk.adjoints)
        if number != worst
    ]
    words += [f"Contribution to `{entry.name}`: {entry.sentence}." for entry in walk.contributions]
    more = [f"{len(words) - _MOST_SENTENCES:,} more."] if len(words) > _MOST_SENTENCES else []
    return [*words[:_MOST_SENTENCES], *more]
