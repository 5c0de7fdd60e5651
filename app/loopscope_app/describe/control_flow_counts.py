"""Numbers of Ifs, loops and operations of a model."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from loopscope.ir import IF, Model, graphs


@dataclass(frozen=True, slots=True)
class ControlFlowCounts:
    """Numbers over all graphs of a model."""

    ifs: int
    loops: int
    operations: int
    """Number of nodes without inputs, outputs and constants."""

    @property
    def words(self) -> str:
        return ", ".join(
            f"{number:,} {noun}{'' if number == 1 else 's'}"
            for number, noun in (
                (self.ifs, "If"),
                (self.loops, "loop"),
                (self.operations, "operation"),
            )
        )

    @property
    def plain(self) -> dict[str, int]:
        """The numbers by name."""
        return asdict(self)


def control_flow_counts(model: Model) -> ControlFlowCounts:
    """Return the numbers of a model; a body counts once."""
    nodes = [node for place in graphs(model) for node in place.graph.nodes]
    operations = [
        node
        for node in nodes
        if node.type not in ("Parameter", "Result", "Const") and node.constant is None
    ]
    return ControlFlowCounts(
        sum(node.type == IF and bool(node.bodies) for node in nodes),
        sum(node.is_loop for node in nodes),
        len(operations),
    )
