"""Exports the programs, converts them and keeps what their framework does: ``python -m
tests.engine.peers.sources.make torch``.

With torch 2.13 and onnxscript 0.7, or ``tensorflow`` 2.21, and OpenVINO 2026.4. What no converter
of torch takes (``map``, a ``cond`` inside a ``while_loop``) is built.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.native.run_once import run_alone
from loopscope.peers.source.program import PROCESS
from tests.engine.peers.sources import FOLDER
from tests.engine.peers.sources.cases import TENSORFLOW, TORCH, Case


def mapping() -> loopscope.Model:
    graph = builder.Graph("mapping")
    x = graph.parameter("x", "f32", [4, 3])
    y = graph.parameter("y", "f32", [3])
    return graph.model(
        outputs={"rows": builder.map_fn(lambda row: ops.sin(row) + y, x, name="map_impl")}
    )


def alternating() -> loopscope.Model:
    graph = builder.Graph("alternating")
    n = graph.parameter("n", "i64", [])
    x = graph.parameter("x", "f32", [4])

    def body(n: Any, x: Any) -> Any:
        even = ops.equal(ops.floor_mod(n, 2), 0)
        return n - 1, builder.cond(even, lambda: x * 2, lambda: x + 1, name="cond")

    n, x = builder.while_loop(lambda n, x: n > 0, body, (n, x), name="while_loop")
    return graph.model(outputs={"n_end": n, "x_end": x})


BUILT = {"mapping": mapping, "alternating": alternating}


def keep(kind: str, source: Path, case: Case) -> None:
    """What a program does, as its process writes it."""
    with tempfile.TemporaryDirectory() as folder:
        given, happened = (Path(folder) / name for name in ("in.npz", "out.npz"))
        np.savez(
            given,
            allow_pickle=False,
            **{str(number): array for number, array in enumerate(case.inputs.values())},
        )
        names = json.dumps([[name] for name in case.inputs])
        ended = run_alone(PROCESS, kind, str(source), names, str(given), str(happened), seconds=120)
        if ended.code:
            raise RuntimeError(ended.complained)
        shutil.copy(happened, case.happened)


def of_torch(folder: Path) -> None:
    import torch

    from tests.engine.peers.sources.torch_programs import PROGRAMS

    for name, (module, example) in PROGRAMS.items():
        program = torch.export.export(module, example)
        torch.export.save(program, folder / f"{name}.pt2")
        if name in BUILT:
            loopscope.write_model(BUILT[name](), FOLDER / f"{name}.xml")
        elif name == "recurrent":
            torch.onnx.export(
                program,
                f=str(FOLDER / f"{name}.onnx"),
                dynamo=True,
                verbose=False,
                external_data=False,
            )
            without_places(FOLDER / f"{name}.onnx")
        elif name != "gated":
            openvino.save_model(
                openvino.convert_model(program), FOLDER / f"{name}.xml", compress_to_fp16=False
            )
        for case in (one for one in TORCH if one.program == name):
            keep("pt2", folder / f"{name}.pt2", case)


def without_places(file: Path) -> None:
    """Takes out what torch's exporter tells of the machine: where each line stands in its files."""
    proto = onnx.load(str(file))
    graphs = [proto.graph]
    while graphs:
        graph = graphs.pop()
        for node in graph.node:
            del node.metadata_props[:]
            graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    file.write_bytes(proto.SerializeToString())


def of_tensorflow(folder: Path) -> None:
    from tests.engine.peers.sources.tensorflow_programs import PROGRAMS, save

    for name in PROGRAMS:
        save(name, folder / name)
        loopscope.write_model(loopscope.read_model(folder / name), FOLDER / f"{name}.xml")
        for case in (one for one in TENSORFLOW if one.program == name):
            keep("saved_model", folder / name, case)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        {"torch": of_torch, "tensorflow": of_tensorflow}[sys.argv[1]](Path(made))
