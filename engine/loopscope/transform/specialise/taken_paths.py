"""The branches and iteration counts that runs took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TakenPaths:
    """Branches and counts that were equal in all executions of some runs, by address."""

    runs: int = 0
    branches: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """True for the then branch, by the address of the If without iterations."""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Iteration count by the address of the loop without iterations."""
    varying: frozenset[str] = frozenset()
    """Addresses whose branch or count was not always the same."""

    def __or__(self, other: TakenPaths) -> TakenPaths:
        """Return what is true of the runs of both."""
        varying = {*self.varying, *other.varying}
        for left, right in ((self.branches, other.branches), (self.counts, other.counts)):
            varying |= {
                address for address, value in left.items() if right.get(address, value) != value
            }
        return TakenPaths(
            self.runs + other.runs,
            {
                address: value
                for address, value in {**self.branches, **other.branches}.items()
                if address not in varying
            },
            {
                address: value
                for address, value in {**self.counts, **other.counts}.items()
                if address not in varying
            },
            frozenset(varying),
        )

    def agrees(self, run: TakenPaths) -> bool:
        """Return True if a run took these paths, as far as it reached them."""
        return (
            all(
                run.branches.get(address, value) == value
                for address, value in self.branches.items()
            )
            and all(
                run.counts.get(address, value) == value for address, value in self.counts.items()
            )
            and run.varying.isdisjoint({*self.branches, *self.counts})
        )


NO_PATHS = TakenPaths()
