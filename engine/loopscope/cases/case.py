"""A case: a model with inputs and expected outputs; and the folder that stores it.

The folder has the model, its inputs, the expected outputs, a script and a description. The case
may be a part of a model, with the values that a run recorded.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np

from loopscope import peers
from loopscope.cases.runner_script import Goal, script
from loopscope.debug.run import Run
from loopscope.errors import (
    AddressError,
    EngineError,
    ValueUnavailable,
    WriteError,
    elided,
    neutral,
    shorten,
)
from loopscope.ir.address import Address, Segment, graphs
from loopscope.ir.element_type import type_name
from loopscope.ir.model import Model, Signature
from loopscope.ir.readable import readable
from loopscope.ops import stored
from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.declare import Role
from loopscope.ops.dialect import catalogue_for
from loopscope.peers.other_runtimes import PACKAGES
from loopscope.replaced_file import replaced_file
from loopscope.transform.cut import addresses, part_of, with_iterations
from loopscope.transform.extract import with_values
from loopscope.version import VERSION
from loopscope.write import write_model


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A model with a value for each input, and the expected outputs."""

    model: Model
    inputs: Mapping[str, Any]
    """Value of each input, by name, in order."""
    expected: Mapping[str, Any]
    """Expected value of each output, by name, in order. An output that was not computed is
    absent.
    """
    place: str = ""
    """Address that the case was cut out at, with iterations; empty for a whole model."""
    missing: str = ""
    """Reason why outputs are absent; empty if none is."""


def recorded_case(
    run: Run,
    address: str = "",
    *,
    iteration: int | None = None,
    around: int = 0,
    start: str = "",
    end: str = "",
    catalogue: Catalogue = CATALOGUE,
) -> Case:
    """Return a part of the model of a run, as ``loopscope.cut`` does, with its recorded values.

    ``iteration`` is that of the innermost loop around the part. An address may name iterations
    too. Iterations that nothing names are those at the cursor, at the end of a run the last.

    Raise ``AddressError`` for an address that names no part, ``ValueUnavailable`` if the part did
    not run in that iteration, and ``EngineError`` if a state inside it was not recorded.
    """
    model = run.model
    part = part_of(model, address, around=around, start=start, end=end, catalogue=catalogue)
    _refuse_inner_states(part.model, catalogue_for(part.model.dialect, catalogue))
    prefix = _graph_with_iterations(model, part.graph, with_iterations(model, address or start))
    if iteration is not None:
        prefix = _in_iteration(model, prefix, iteration)
    run.rows_of(Address.parse(f"{prefix}/part"))  # the graph must have run
    graph = next(place.graph for place in graphs(model) if place.address == part.graph)
    input_addresses, output_addresses = addresses(part, graph, prefix)
    inputs = [run.value(address) for address in input_addresses]
    values: list[Any] = []
    missing = ""
    for output in output_addresses:
        try:
            values.append(run.value(output))
        except ValueUnavailable as error:
            values.append(_NOT_COMPUTED)
            missing = run.failure or str(error)
    cut = with_values(part.model, inputs)
    return Case(
        cut,
        {signature.name: value for signature, value in zip(cut.inputs, inputs, strict=True)},
        {
            signature.name: value
            for signature, value in zip(cut.outputs, values, strict=True)
            if value is not _NOT_COMPUTED
        },
        prefix if part.graph == Address.parse(prefix).static else part.graph,
        missing,
    )


_NOT_COMPUTED = object()


def _refuse_inner_states(part: Model, catalogue: Catalogue) -> None:
    """Raise ``EngineError`` for random numbers or a variable in an inner graph of a part.

    Those of the part's own graph are inputs with recorded values. Inner ones would begin anew, and
    the part would compute other values than the model.
    """
    for place in graphs(part):
        for node in place.graph.nodes if place.owner is not None else ():
            operation = catalogue.find(node.type, node.opset)
            if operation is None:
                continue
            is_variable = operation.role in (Role.READ_VALUE, Role.ASSIGN)
            if is_variable or operation.stateful:
                subject = "uses a variable" if is_variable else "draws random numbers"
                raise EngineError(
                    f"{shorten(node.name, 60)!r} in {shorten(place.address)!r} {subject}, and the "
                    "state at its beginning was not recorded: expected a part without it, or the "
                    "graph around it"
                )


def _graph_with_iterations(model: Model, graph: str, address: str) -> str:
    """Return the address of a graph with the iterations that ``address`` has around it."""
    segments = Address.parse(address).segments[: graph.count("/") + 1]
    return str(Address(segments))


def _in_iteration(model: Model, prefix: str, iteration: int) -> str:
    """Return the address of a graph in an iteration of the innermost loop around it."""
    segments = list(Address.parse(prefix).segments)
    loops = {
        place.address.rpartition("/")[0]
        for place in graphs(model)
        if place.owner is not None and place.owner.is_loop
    }
    for number in range(len(segments) - 2, 0, -2):
        if "/".join(segment.label for segment in segments[: number + 1]) in loops:
            known = segments[number].iteration
            if known is not None and known != iteration:
                raise AddressError(
                    f"{shorten(prefix)!r} names iteration {known}, and iteration {iteration} is "
                    "requested: use one of them"
                )
            segments[number] = Segment(segments[number].label, iteration)
            return str(Address(tuple(segments)))
    raise AddressError(f"{shorten(prefix)!r} is not inside a loop, and so has no iterations")


FILES = {"onnx": "model.onnx", "openvino": "model.xml"}
"""Name of the model file in a folder, by dialect."""
RUNTIMES = PACKAGES
"""Runtime that runs the model of a folder, by dialect."""
_VALUES_MODULE = "onnxruntime_values.py"
_TITLES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


def refuse_folder(folder: str | os.PathLike[str], model: Model) -> None:
    """Raise ``WriteError`` if the folder is a file, or if the opened model lies in it."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise WriteError(f"{str(path)!r} is a file: expected a folder to write to")
    target = path / FILES[model.dialect]
    if model.file and target.exists() and target.samefile(model.file):
        raise WriteError(f"{str(target)!r} is the opened model: expected another folder")


def write_case(
    case: Case,
    folder: str | os.PathLike[str],
    *,
    title: str,
    paragraphs: Sequence[str] = (),
    goal: Goal = "compare",
    tolerance: float = peers.TOLERANCE,
    runtime: Literal["onnxruntime", "openvino"] | None = None,
) -> list[Path]:
    """Write ``model.onnx`` (or ``model.xml`` and ``model.bin``), ``inputs.npz``, ``run.py`` and
    ``README.md``; return the files.

    ``expected.npz`` is written if ``goal`` is ``compare`` or ``test``. The folder is created.
    ``runtime`` is that of the script; by default ONNX Runtime for ONNX and OpenVINO for IR. Raise
    ``WriteError`` if the model cannot be written.
    """
    refuse_folder(folder, case.model)
    path = Path(folder)
    chosen = runtime or RUNTIMES[case.model.dialect]
    inputs, expected = stored.packed(case.inputs), stored.packed(case.expected)
    special = stored.FORMS in inputs or stored.FORMS in expected
    if special and chosen == "openvino":
        raise EngineError(
            f"{_special_value(case)}, which a script without Loopscope cannot pass to OpenVINO"
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"{str(path)!r} cannot be written: {error.strerror}") from error
    model_file = path / FILES[case.model.dialect]
    write_model(case.model, model_file)
    files = [model_file]
    if model_file.suffix == ".xml":
        files.append(model_file.with_suffix(".bin"))
    elif (path / f"{model_file.name}.data").exists():
        files.append(path / f"{model_file.name}.data")
    runner = script(
        chosen,
        model_file.name,
        title=f"Run {model_file.name} in {_TITLES[chosen]} with inputs.npz.",
        goal=goal,
        tolerance=tolerance,
        has_special_values=special,
    )
    readme = _readme(case, title, paragraphs, goal, chosen)
    texts = {"run.py": runner, "README.md": readme}
    if special:
        process = Path(peers.__file__).with_name("onnxruntime_process.py")
        texts[_VALUES_MODULE] = process.read_text("utf-8")
    arrays = {"inputs.npz": inputs}
    if goal in ("compare", "test"):
        arrays["expected.npz"] = expected
    for name, entries in arrays.items():
        with replaced_file(path / name) as file:
            stored.write(file, entries)
    for name, text in texts.items():
        with replaced_file(path / name) as file:
            file.write(text.encode())
    return [*files, *(path / name for name in (*arrays, *texts))]


def _special_value(case: Case) -> str:
    for values in (case.inputs, case.expected):
        for name, value in values.items():
            if stored.FORMS in stored.packed({name: value}):
                return f"{elided(name)!r} is not an array of numpy's types"
    return "a value is not an array of numpy's types"


def _readme(case: Case, title: str, paragraphs: Iterable[str], goal: Goal, runtime: str) -> str:
    """Return the description in Markdown. Names of the model are code spans."""
    model_file = FILES[case.model.dialect]
    packages = (runtime, "onnx", "numpy") if model_file.endswith(".onnx") else (runtime, "numpy")
    versions = [f"Loopscope {VERSION}", f"Python {platform.python_version()}"]
    versions += [f"{name} {version}" for name, version in _installed_versions(packages).items()]
    ends = {
        "compare": "It prints how each output compares with `expected.npz`, and exits with 1 if "
        "one differs.",
        "test": "It prints how each output of the runtime compares with that of Loopscope. "
        "`loopscope test .` in this folder shows the failing expectation.",
        "nan": "It counts the NaN elements of each output, and exits with 1 if there are any.",
        "fails": "It prints the error of the runtime.",
    }
    lines = [f"# {title}", ""]
    for paragraph in paragraphs:
        lines += [paragraph, ""]
    lines += [f"Run `python run.py`. {ends[goal]}", "", "| input | type | value |", "|---|---|---|"]
    lines += _rows(case.model.inputs, case.inputs)
    lines += ["", "| output | type | expected value |", "|---|---|---|"]
    lines += _rows(case.model.outputs, case.expected if goal in ("compare", "test") else {})
    machine = f"{platform.system()} {platform.machine()}"
    lines += ["", f"The model is `{model_file}`. Versions: {', '.join(versions)}, {machine}.", ""]
    return "\n".join(lines)


def _installed_versions(packages: Iterable[str]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _rows(signatures: Iterable[Signature], values: Mapping[str, Any]) -> list[str]:
    rows = []
    for signature in signatures:
        value = values.get(signature.name)
        kind = f"{signature.element_type or 'dynamic'}{signature.shape}"
        if isinstance(value, (np.ndarray, np.generic)):
            kind = f"{type_name(value.dtype)}{list(value.shape)}".replace(" ", "")
        summary = "" if value is None else _summary(value)
        rows.append(f"| {code_span(signature.name)} | {kind} | {summary} |")
    return rows


def _summary(value: Any) -> str:
    if not isinstance(value, (np.ndarray, np.generic)):
        return type(value).__name__
    array = np.asarray(value)
    if array.size <= 8 and array.dtype.kind in "biuf":
        return code_span(np.array2string(array, precision=6, separator=", "))
    return f"array {list(array.shape)}"


def cut_folder(case: Case, folder: str | os.PathLike[str], source: Model) -> list[Path]:
    """Write a case that was cut out of ``source`` to a folder; return the files.

    Raise ``WriteError`` if the model cannot be written, or if ``source`` lies in the folder.
    """
    refuse_folder(folder, source)
    origin = code_span(Path(source.file).name or source.name)
    place = code_span(readable(case.place), 200)
    values = (
        "`inputs.npz` contains what the part read in that execution, and `expected.npz` what it "
        "computed in Loopscope."
    )
    rules = (
        "A weight of the original model stays a weight. Random numbers and variables are inputs."
    )
    paragraphs = [f"Cut out of {origin} at {place}. {values}", rules]
    if case.missing:
        paragraphs.append(f"Some outputs have no expected value: {code_span(case.missing)}.")
    return write_case(case, folder, title="A part of a model", paragraphs=paragraphs)


def code_span(text: str, limit: int = 80) -> str:
    """Return a text on one line as a code span that cannot leave its span or table cell."""
    shown = neutral(elided(" ".join(text.split()), limit), 4 * limit)
    return f"`{shown.replace('`', chr(39)).replace('|', '¦')}`"
