"""Exports the programs of torch, converts them and keeps what torch does: ``python -m tests.engine.peers.sources.make``.

With torch 2.13, OpenVINO 2026.4 and onnxscript 0.7. What no converter takes (``map``, a ``cond`` inside a ``while_loop``) is built.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import torch

import engine
from engine import build
from engine.build import ops
from engine.native.alone import run_alone
from engine.peers.source.program import PROCESS
from tests.engine.peers.sources import FOLDER
from tests.engine.peers.sources.cases import TORCH, Case
from tests.engine.peers.sources.torch_programs import PROGRAMS


def mapping() -> engine.Model:
    graph = build.Graph("mapping")
    x = graph.parameter("x", "f32", [4, 3])
    y = graph.parameter("y", "f32", [3])
    return graph.model(outputs={"rows": build.map_fn(lambda row: ops.sin(row) + y, x, name="map_impl")})


def alternating() -> engine.Model:
    graph = build.Graph("alternating")
    n = graph.parameter("n", "i64", [])
    x = graph.parameter("x", "f32", [4])

    def body(n: Any, x: Any) -> Any:
        even = ops.equal(ops.floor_mod(n, 2), 0)
        return n - 1, build.cond(even, lambda: x * 2, lambda: x + 1, name="cond")

    n, x = build.while_loop(lambda n, x: n > 0, body, (n, x), name="while_loop")
    return graph.model(outputs={"n_end": n, "x_end": x})


BUILT = {"mapping": mapping, "alternating": alternating}


def keep(program: torch.export.ExportedProgram, case: Case) -> None:
    """What a program does, as its process writes it."""
    with tempfile.TemporaryDirectory() as folder:
        source, given, happened = (Path(folder) / name for name in ("source.pt2", "in.npz", "out.npz"))
        torch.export.save(program, source)
        np.savez(given, allow_pickle=False, **{str(number): array for number, array in enumerate(case.inputs.values())})
        names = json.dumps([[name] for name in case.inputs])
        ended = run_alone(PROCESS, "pt2", str(source), names, str(given), str(happened), seconds=120)
        if ended.code:
            raise RuntimeError(ended.complained)
        shutil.copy(happened, case.happened)


def to_onnx(program: torch.export.ExportedProgram, target: Path) -> None:
    """Without what the exporter tells of the machine: the places of each line in its files."""
    torch.onnx.export(program, f=str(target), dynamo=True, verbose=False, external_data=False)
    proto = onnx.load(str(target))
    graphs = [proto.graph]
    while graphs:
        graph = graphs.pop()
        for node in graph.node:
            del node.metadata_props[:]
            graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    target.write_bytes(proto.SerializeToString())


def main() -> None:
    for name, (module, example) in PROGRAMS.items():
        program = torch.export.export(module, example)
        if name in BUILT:
            engine.write_model(BUILT[name](), FOLDER / f"{name}.xml")
        elif name == "recurrent":
            to_onnx(program, FOLDER / f"{name}.onnx")
        else:
            openvino.save_model(openvino.convert_model(program), FOLDER / f"{name}.xml", compress_to_fp16=False)
        for case in (one for one in TORCH if one.program == name):
            keep(program, case)


if __name__ == "__main__":
    main()
