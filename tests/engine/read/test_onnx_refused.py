"""ONNX files that are refused, each in a sentence: names, sizes and nests beyond bounds, data
outside the folder, damage.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

import loopscope
from loopscope.errors import ReadError
from loopscope.read.file_limits import ReadLimits
from tests.engine.read.onnx_models import HEADER, LOOP, X, read


def test_functions_that_call_themselves_are_refused() -> None:
    text = """main (float[3] x) => (float[3] y) { y = local.f (x) }
    <domain: "local", opset_import: ["" : 17, "local" : 1]> f (v) => (w) { w = local.g (v) }
    <domain: "local", opset_import: ["" : 17, "local" : 1]> g (v) => (w) { w = local.f (v) }"""
    with pytest.raises(ReadError, match="calls itself"):
        read(text)


def test_functions_that_double_again_and_again_are_refused() -> None:
    calls = "".join(
        f'<domain: "local", opset_import: ["" : 17, "local" : 1]> f{n} (v) => (w) {{ u = local.f{n - 1} (v)\n w = local.f{n - 1} (u) }}\n'
        for n in range(1, 40)
    )
    text = "main (float[3] x) => (float[3] y) { y = local.f39 (x) }\n" + calls
    text += '<domain: "local", opset_import: ["" : 17, "local" : 1]> f0 (v) => (w) { w = Neg (v) }'
    with pytest.raises(ReadError, match="limit 'nodes'"):
        loopscope.read_model(
            parser.parse_model(HEADER + text).SerializeToString(), limits=ReadLimits(nodes=10_000)
        )


def _external(location: str, **entries: str) -> onnx.ModelProto:
    tensor = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL
    )
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "external", [value], [output], [tensor]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_external_data_is_mapped(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"\0" * 8 + np.array([1, 2, 3], np.float32).tobytes())
    path = tmp_path / "model.onnx"
    path.write_bytes(_external("data.bin", offset="8", length="12").SerializeToString())
    np.testing.assert_array_equal(
        loopscope.run(loopscope.read_model(path), X).outputs[0], [2, 4, 6]
    )
    given = loopscope.read_model(path.read_bytes(), weights=(tmp_path / "data.bin").read_bytes())
    np.testing.assert_array_equal(loopscope.run(given, X).outputs[0], [2, 4, 6])


@pytest.mark.parametrize(
    "location",
    ["../secret", "/etc/hostname", "a/../../secret", "..\\secret", "link", "", "missing", "C:x"],
)
def test_external_data_outside_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret").write_bytes(b"\0" * 12)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    path = folder / "model.onnx"
    path.write_bytes(_external(location).SerializeToString())
    with pytest.raises(ReadError, match="initializer 'w'"):
        loopscope.read_model(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)  # so that opening the pipe would not wait here
    try:
        (tmp_path / "model.onnx").write_bytes(_external("pipe").SerializeToString())
        with pytest.raises(ReadError, match="lies in a pipe or a device, not in a file"):
            loopscope.read_model(tmp_path / "model.onnx")
    finally:
        os.close(writer)


@pytest.mark.parametrize(
    ("dims", "data"),
    [([10**12], b"\0" * 4), ([-1], b""), ([2, 2], b"\0" * 12), ([2**62, 2**62], b"")],
)
def test_tensors_that_contradict_their_data_are_refused(dims: list[int], data: bytes) -> None:
    model = _external("data.bin")
    model.graph.initializer[0].CopyFrom(
        TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=data)
    )
    with pytest.raises(ReadError, match="initializer 'w'"):
        loopscope.read_model(model.SerializeToString())


def test_damaged_files_are_refused() -> None:
    data = parser.parse_model(HEADER + LOOP).SerializeToString()
    for cut in (3, 20, len(data) // 2, len(data) - 1):
        with pytest.raises(ReadError):
            loopscope.read_model(data[:cut])


@pytest.mark.slow
def test_millions_of_empty_nodes_are_refused() -> None:
    nodes = b"\x0a\x00" * 4_000_000
    graph = onnx.GraphProto(name="g").SerializeToString() + nodes
    length = bytearray()
    size = len(graph)
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    with pytest.raises(ReadError, match="parts"):
        loopscope.read_model(b"\x08\x08\x3a" + bytes(length) + bytes([size]) + graph)


def test_outputs_beyond_all_bounds_are_refused() -> None:
    text = "main (int64[2] s) => (float[A, B] y) { y = ConstantOfShape (s) }"
    with pytest.raises(loopscope.RunStopped, match="more than the limit"):
        loopscope.run(read(text), {"s": np.array([10**6, 10**6])})


LONG = "n" * 2**20


@pytest.mark.parametrize("place", ["x", "body", "Loop", "number"])
def test_a_name_of_a_megabyte_is_refused_in_a_short_sentence(place: str) -> None:
    model = parser.parse_model(HEADER + LOOP)
    loop = next(node for node in model.graph.node if node.op_type == "Loop")
    match place:
        case "x":
            model.graph.input[0].name = LONG
        case "body":
            loop.attribute[0].g.name = LONG
        case "Loop":
            loop.op_type = LONG
        case _:
            loop.attribute[0].name = LONG
    data = model.SerializeToString()
    with pytest.raises(
        ReadError, match=r"a name has 1048576 characters .* more than the limit 'name' of 10000"
    ) as caught:
        loopscope.read_model(data)
    assert len(str(caught.value)) < 300


def test_a_long_name_opens_when_the_limit_is_raised() -> None:
    model = parser.parse_model(HEADER + LOOP)
    model.graph.name = LONG
    assert (
        loopscope.read_model(model.SerializeToString(), limits=ReadLimits(name=2**21)).name == LONG
    )


@pytest.mark.parametrize("depth", [60, 10_000])
def test_ifs_nested_beyond_what_protobuf_reads_are_refused(depth: int) -> None:
    """Written by hand: the protobuf package refuses to write so deep a file too."""
    data = _nested(depth)
    with pytest.raises(ReadError, match="nested deeper than protobuf files may be"):
        loopscope.read_model(data)


def _nested(depth: int) -> bytes:
    """Bytes of an ONNX model with an If in an If, and so on."""

    def field(number: int, data: bytes) -> bytes:
        return _varint(number << 3 | 2) + _varint(len(data)) + data

    graph = field(2, b"g")
    for _ in range(depth):
        branch = field(5, field(1, b"then_branch") + field(6, graph) + _varint(20 << 3) + b"\x05")
        graph = field(1, field(4, b"If") + branch) + field(2, b"g")
    return b"\x08\x08" + field(7, graph) + field(8, b"\x10\x11")


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])
