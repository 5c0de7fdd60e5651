"""What a plan leaves out of a run, in data: pruned, folded and computed once."""

from __future__ import annotations

from dataclasses import dataclass

from loopscope.executor.plan.constant_folding import FoldedKernel
from loopscope.executor.plan.plan import Plan
from loopscope.executor.plan.pruning import needed, part_of


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Static addresses of operations."""

    removed: tuple[str, ...]
    """They do not run, because nothing that is asked for needs them."""
    folded: tuple[str, ...]
    """They compute of constants alone: what they give is kept."""
    computed_once: tuple[tuple[str, str], ...]
    """Each with the operation that computes the very same for it."""

    def sentences(self, most: int = 3) -> tuple[str, ...]:
        """One for each that there is; it names the operations where they are not more than
        ``most``, else it counts them.
        """
        removed = f"removed as not needed: {_some(self.removed, most)}" if self.removed else ""
        count = len(self.folded)
        named = f" ({', '.join(self.folded)})" if count <= most else ""
        folded = (
            f"folded: {count:,} operation{'s' * (count != 1)} on constants{named}" if count else ""
        )
        pairs = tuple(f"{one} with {other}" for one, other in self.computed_once)
        return tuple(
            filter(None, (removed, folded, f"computed once: {_some(pairs, most)}" if pairs else ""))
        )


def _some(names: tuple[str, ...], most: int) -> str:
    return ", ".join(names) if len(names) <= most else f"{len(names):,} operations"


def left_out_for_outputs(plan: Plan) -> LeftOut:
    """What a run of a whole plan for the model's outputs leaves out; a Debugger, which shows
    everything, prunes nothing.
    """
    if not plan.optimise.prune:
        return left_out(plan)
    wanted = [(plan.main, slot) for slot in plan.main.results.values()]
    return left_out(part_of(plan, needed(plan, wanted, assigns=True)))


def left_out(plan: Plan) -> LeftOut:
    folded: list[str] = []
    once: list[tuple[str, str]] = []
    for program in plan.programs:
        for instruction in program.instructions:
            address = f"{program.address}/{instruction.label}"
            if instruction.same_as:
                first = program.instructions[program.producer[instruction.same_as[0]]]
                once.append((address, f"{program.address}/{first.label}"))
            elif isinstance(instruction.call, FoldedKernel):
                folded.append(address)
    return LeftOut(plan.removed, tuple(folded), tuple(once))
