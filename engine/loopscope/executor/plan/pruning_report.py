"""Report of a plan's pruned, folded and shared operations, which do not run."""

from __future__ import annotations

from dataclasses import dataclass

from loopscope.executor.plan.computed_once import FoldedKernel
from loopscope.executor.plan.plan import Plan
from loopscope.executor.plan.pruning import needed, part_of


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Static addresses of operations that a plan does not run."""

    removed: tuple[str, ...]
    """Operations that do not run, because no requested value needs them."""
    folded: tuple[str, ...]
    """Operations on constants only, whose results are stored."""
    computed_once: tuple[tuple[str, str], ...]
    """Pairs of an operation and the earlier operation that computes the same value."""

    def sentences(self, limit: int = 3) -> tuple[str, ...]:
        """Return one sentence for each kind that occurs. Up to ``limit`` operations are named; more
        are counted.
        """
        removed = f"removed as not needed: {_some(self.removed, limit)}" if self.removed else ""
        count = len(self.folded)
        named = f" ({', '.join(self.folded)})" if count <= limit else ""
        folded = (
            f"folded: {count:,} operation{'s' * (count != 1)} on constants{named}" if count else ""
        )
        pairs = tuple(f"{address} with {equal}" for address, equal in self.computed_once)
        return tuple(
            filter(
                None, (removed, folded, f"computed once: {_some(pairs, limit)}" if pairs else "")
            )
        )


def _some(names: tuple[str, ...], limit: int) -> str:
    return ", ".join(names) if len(names) <= limit else f"{len(names):,} operations"


def left_out_for_outputs(plan: Plan) -> LeftOut:
    """Return what a run for the model's outputs leaves out. A Debugger, which shows all values,
    does not prune.
    """
    if not plan.optimise.prune:
        return left_out(plan)
    outputs = [(plan.main, slot) for slot in plan.main.results.values()]
    return left_out(part_of(plan, needed(plan, outputs, assigns=True)))


def left_out(plan: Plan) -> LeftOut:
    folded: list[str] = []
    shared: list[tuple[str, str]] = []
    for program in plan.programs:
        for instruction in program.instructions:
            address = f"{program.address}/{instruction.label}"
            if instruction.same_as:
                first = program.instructions[program.producer[instruction.same_as[0]]]
                shared.append((address, f"{program.address}/{first.label}"))
            elif isinstance(instruction.call, FoldedKernel):
                folded.append(address)
    return LeftOut(plan.removed, tuple(folded), tuple(shared))
