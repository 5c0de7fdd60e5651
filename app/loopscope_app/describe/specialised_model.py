"""A model specialised to what ran, with its preview, and numbers of Ifs, loops and operations."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import loopscope
from loopscope.errors import InputError
from loopscope.explain import taken_paths
from loopscope.ir import IF, Model, graphs
from loopscope_app.describe.node_index import places


@dataclass(frozen=True, slots=True, eq=False)
class SpecialisedModel:
    """The preview of a specialisation to one If or loop of a run."""

    address: str
    """Address of the If or loop in the original."""
    original: Model
    result: loopscope.Specialised

    @property
    def sentences(self) -> Iterator[str]:
        """Sentences about the changes, what remains, and the conditions of validity."""
        yield from self.result.changes
        yield from self.result.remaining
        before, after = (
            control_flow_counts(model).words for model in (self.original, self.result.model)
        )
        yield f"{before} became {after}"
        if self.result.validity:
            yield self.result.validity

    @property
    def ending(self) -> str:
        """Ending of the file: an ONNX model, or an archive with OpenVINO's two files."""
        return ".onnx" if self.original.dialect == "onnx" else ".zip"

    def document(self, stem: str) -> bytes:
        """Return the file. ``WriteError`` if the format cannot express the model."""
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / f"{stem}{'.onnx' if self.ending == '.onnx' else '.xml'}"
            loopscope.write_model(self.result.model, target)
            files = sorted(Path(folder).iterdir())
            if len(files) == 1:
                return target.read_bytes()
            archive = io.BytesIO()
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
                for file in files:
                    packed.write(file, file.name)
            return archive.getvalue()


def specialised_to_run(
    model: Model, debugger: loopscope.Debugger, address: str
) -> SpecialisedModel:
    """Return the model with the branch or the count that an If or loop had in a run.

    ``InputError`` if it did not run, or not always in the same way.
    """
    taken = taken_paths(debugger)
    is_branch = places(model)[address].node.type == IF
    branches = {address: taken.branches[address]} if address in taken.branches else {}
    counts = {address: taken.counts[address]} if address in taken.counts else {}
    if not branches and not counts:
        varied = (
            ("took both branches" if is_branch else "had several iteration counts")
            if address in taken.varying
            else "did not run to its end"
        )
        raise InputError(f"{address} {varied}: expected a run in which it always does the same")
    paths = loopscope.TakenPaths(1, branches, counts)
    return SpecialisedModel(address, model, loopscope.specialise(model, taken=paths))


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
