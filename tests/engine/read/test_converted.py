"""Models of other frameworks are converted and run with their results; archives and processes
cannot do harm.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope.errors import ReadError
from loopscope.read import conversion
from loopscope.read.file_limits import ReadLimits
from loopscope.read.recognise import Format, format_of, recognise, unpack
from tests.engine.read.archives import many

FILES = Path(__file__).parent / "files"
X = np.array([[1, 2, 3], [-4, 5, 0.5]], np.float32)
# What TensorFlow itself gives for X and n = 5.
SUM = np.array([[8, 20, 32], [-52, 56, 2]], np.float32)
HISTORY = np.array([15, 16.5, 25.5, 42, 66], np.float32)


def _check_while_loop(model: loopscope.Model) -> None:
    by_name = {
        name.partition(":")[0]: one for one in model.inputs for name in (one.name, *one.names)
    }
    given = {by_name["x"].name: X, by_name["n"].name: np.int32(5)}
    result = loopscope.run(model, given)
    shapes = sorted((output.shape, output.tolist()) for output in result.outputs)
    assert shapes == sorted([((), 5), ((5,), HISTORY.tolist()), ((2, 3), SUM.tolist())])
    loop, *branches = result.control_flow
    assert (loop.kind, loop.iterations) == ("Loop", 5)
    assert {record.kind for record in branches} == {"If"}
    assert [record.branch for record in branches].count("else") == 1


@pytest.mark.parametrize("name", ["while_loop.pb", "while_loop_saved_model.zip"])
def test_a_while_loop_of_tensorflow_runs_with_its_results(name: str) -> None:
    model = loopscope.read_model(FILES / name)
    assert "converted by OpenVINO" in model.converted_from
    _check_while_loop(model)


def test_bytes_are_read_too() -> None:
    _check_while_loop(loopscope.read_model((FILES / "while_loop_saved_model.zip").read_bytes()))


def test_a_folder_is_read_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES / "while_loop_saved_model.zip") as files:
        files.extractall(tmp_path)
    folder = next(tmp_path.rglob("saved_model.pb")).parent
    _check_while_loop(loopscope.read_model(folder))
    _check_while_loop(loopscope.read_model(folder / "saved_model.pb"))
    other = (folder / "saved_model.pb").rename(folder / "before.pb")
    (folder / "saved_model.pb").write_bytes((FILES / "while_loop.pb").read_bytes()[:100])
    _check_while_loop(loopscope.read_model(other))
    assert loopscope.read_model(other).file == str(other)


def test_a_tensor_array_of_tensorflow_lite() -> None:
    result = loopscope.run(
        loopscope.read_model((FILES / "tensor_array.tflite").read_bytes()),
        [np.arange(1, 5, dtype=np.float32)],
    )
    assert result.outputs[0].tolist() == [1, 3, 6, 10]
    assert result.control_flow[0].kind == "Loop"


PADDLE = FILES / "linear.pdmodel"
# What PaddlePaddle itself gives for 0 to 5.
LINEAR = np.array([[0, 0.8395185, 0.61140436, 1.753974], [0, 0, 3.3018303, 4.827249]], np.float32)


@pytest.mark.parametrize("by_path", [True, False])
def test_a_model_of_paddlepaddle_runs_with_its_results(by_path: bool) -> None:
    parameters = PADDLE.with_suffix(".pdiparams").read_bytes()
    model = (
        loopscope.read_model(PADDLE)
        if by_path
        else loopscope.read_model(PADDLE.read_bytes(), parameters)
    )
    assert model.converted_from.startswith("a PaddlePaddle model, converted by OpenVINO")
    result = loopscope.run(model, [np.arange(6, dtype=np.float32).reshape(2, 3)])
    np.testing.assert_allclose(result.outputs[0], LINEAR, rtol=1e-6)


def test_a_model_of_paddlepaddle_without_its_parameters_is_one_sentence() -> None:
    with pytest.raises(
        ReadError, match=r"PaddlePaddle model; OpenVINO does not convert it: .*pdiparams"
    ):
        loopscope.read_model(PADDLE.read_bytes())


def test_a_program_of_paddlepaddle_3_says_how_to_convert_it() -> None:
    with pytest.raises(
        ReadError,
        match="PaddlePaddle program in JSON; it is not read: paddle2onnx makes an ONNX model",
    ):
        loopscope.read_model(
            b'{"base_code":{"magic":"pir","trainable":true,"version":4},"program":{"regions":[]}}'
        )


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b"\x08\x01\x12\x05\x0a\x03\x12\x01a", Format.SAVED_MODEL),
        (b"\x08\x01\x12\x07pytorch", Format.ONNX),
        (b"\x08\x07\x12\x07pytorch", Format.ONNX),
        (b"\x0a\x32\x0a\x01x\x12\x0bPlaceholder", Format.FROZEN),
        (b"\x0a\x80\x01\x08\x00\x10\xff\xff", Format.PADDLE),
        (b"\x0a\x85\x07\x12\xde\x06\x0aD", Format.META_GRAPH),
        (b'# a graph\nnode {\n  name: "x"', Format.GRAPH_TEXT),
        (b"meta_info_def {\n  tags", Format.META_GRAPH_TEXT),
        (b"# saved\nsaved_model_schema_version: 1\n", Format.SAVED_MODEL_TEXT),
        (b"node of a poem { }", Format.TEXT),
        (b"\x0a\x05hello", Format.UNKNOWN),
        (b"\x18\x00\x00\x00TFL3", Format.TFLITE),
        (b"\x30\x00\x00\x00ET12", Format.EXECUTORCH),
        (b"GGUF\x03\x00\x00\x00", Format.GGUF),
        (b"ML\xefR\x0dStableHLO_v1.15.0\x00\x01", Format.STABLEHLO),
        (b"ML\xefR\x0dMLIR22.0.0\x00\x01", Format.MLIR),
        (
            b'#loc1 = loc("x")\nmodule @jit attributes {mhlo.num_partitions = 1 : i32} {',
            Format.STABLEHLO,
        ),
        (b"func.func @f(%x: tensor<2xf32>) {\n  %0 = stablehlo.add %x, %x", Format.STABLEHLO),
        (
            b"// a comment\nmodule {\n  func.func @f(%x: tensor<2xf32>) {\n  %0 = arith.addf %x, %x",
            Format.MLIR,
        ),
        (b'"builtin.module"() ({', Format.MLIR),
        (b"#map = affine_map<(d0) -> (d0)>\nmodule {", Format.MLIR),
        (b"HloModule jit_f, entry_computation_layout={", Format.HLO),
        (b"module of a poem", Format.TEXT),
        (b"# a = 3\n", Format.TEXT),
    ],
)
def test_recognised_by_content(head: bytes, found: Format) -> None:
    assert recognise(head) is found


@pytest.mark.parametrize(
    ("head", "opened_by"),
    [
        (b"GGUF\x03\x00\x00\x00", r"this is a GGUF file; .*llama\.cpp"),
        (b"\x30\x00\x00\x00ET12", r"ExecuTorch program.*\.pt2"),
        (b"module @m {", r"MLIR module; mlir-opt and IREE open it"),
        (b"module @m { stablehlo.add", r"StableHLO module; .*XLA"),
        (b"HloModule f", r"HLO module of XLA; "),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00",
            r"Git LFS; .*`git lfs pull`",
        ),
        (b"\n<!DOCTYPE html>\n<html lang='en'>", r"a web page; .*download the file"),
    ],
)
def test_formats_that_are_not_read_name_what_opens_them(head: bytes, opened_by: str) -> None:
    with pytest.raises(ReadError, match=opened_by):
        loopscope.read_model(head)


def test_a_package_of_core_ml_names_what_opens_it(tmp_path: Path) -> None:
    (tmp_path / "Data").mkdir()
    (tmp_path / "Manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(
        ReadError, match=r"Core ML package \(\.mlpackage\); coremltools and Xcode open it"
    ):
        loopscope.read_model(tmp_path)


def _zip(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(name, data)
    return buffer.getvalue()


_ESCAPES = (
    "../saved_model.pb",
    "/saved_model.pb",
    "a/../../saved_model.pb",
    "..\\..\\saved_model.pb",
    "C:\\saved_model.pb",
)


@pytest.mark.parametrize("name", _ESCAPES)
def test_archives_do_not_escape(name: str, tmp_path: Path) -> None:
    data = _zip(**{"saved_model.pb": b"", name: b"x"})
    with pytest.raises(ReadError, match="leads out of the archive"):
        loopscope.read_model(data)
    path = tmp_path / "inside" / "model.zip"
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(ReadError, match="leads out of the archive"):
        loopscope.read_model(path)
    assert {one.name for one in tmp_path.rglob("*")} == {"inside", "model.zip"}


def test_archives_do_not_explode() -> None:
    data = _zip(**{"saved_model.pb": b"", "variables/data": b"\0" * 50_000_000})
    with pytest.raises(ReadError, match="more than 1,000,000 bytes"):
        loopscope.read_model(data, limits=ReadLimits(unpacked_bytes=1_000_000))


def _entries(*entries: tuple[zipfile.ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for info, data in entries:
            made.writestr(info, data)
    return buffer.getvalue()


def _link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, 0o120777 << 16
    return info


def test_links_in_archives_lead_nowhere(tmp_path: Path) -> None:
    """They are unpacked as the text that they are; a file below one finds a file where a folder
    should be.
    """
    (tmp_path / "outside").mkdir()
    for entry in (
        _entries((_link("saved_model.pb"), b"/etc/passwd")),
        _entries((_link("variables"), str(tmp_path).encode())),
    ):
        folder = tmp_path / "inside"
        folder.mkdir()
        with contextlib.suppress(ValueError):
            unpack(io.BytesIO(entry), folder, 10**6)
        assert not [path for path in folder.rglob("*") if path.is_symlink()]
        shutil.rmtree(folder)
    through = _entries(
        (_link("a"), str(tmp_path / "outside").encode()),
        (zipfile.ZipInfo("a/saved_model.pb"), b"x"),
    )
    with pytest.raises(ReadError, match="not unpacked"):
        loopscope.read_model(through)
    assert list((tmp_path / "outside").iterdir()) == []


def _zip64(size: int) -> bytes:
    """An archive whose 64-bit end says that its directory has so many bytes."""
    data = _zip(**{"saved_model.pb": b""})
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    record = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1, 1, size, start)
    locator = b"PK\x06\x07" + struct.pack("<IQI", 0, end, 1)
    return (
        data[:end]
        + record
        + locator
        + b"PK\x05\x06"
        + struct.pack("<HHHHIIH", 0, 0, 1, 1, 2**32 - 1, 2**32 - 1, 0)
    )


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (many(30_000), "more than 20,000 files"),
        (many(200_000), "its directory has more than 8,388,608 bytes"),
        (_zip64(2**40), "zip archive"),
        (_zip64(2**63 - 1), "zip archive"),
        (_zip64(2**64 - 1), "zip archive"),
    ],
    ids=["many files", "a long directory", "a terabyte of directory", "largest number", "beyond"],
)
def test_directories_of_archives_are_bounded(data: bytes, message: str) -> None:
    with pytest.raises(ReadError, match=message) as caught:
        loopscope.read_model(data)
    assert len(str(caught.value)) < 300


def test_an_archive_may_lie_about_its_sizes() -> None:
    """It says that a file has 10 bytes; that many are unpacked, and no more is taken on trust."""
    data = bytearray(_zip(**{"saved_model.pb": b"\0" * 50_000_000}))
    entry = data.index(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<I", 10)
    with pytest.raises(ReadError, match="not unpacked: it cannot be read: Bad CRC-32"):
        loopscope.read_model(bytes(data), limits=ReadLimits(unpacked_bytes=1000))


def test_damaged_archives_are_one_sentence() -> None:
    """Wherever four bytes are lost, the directory of the archive is read as before, or what is
    wrong is told.
    """
    whole = (FILES / "while_loop_saved_model.zip").read_bytes()
    refused = []
    for at in range(0, len(whole), 3):
        try:
            format_of(io.BytesIO(whole[:at] + b"\xff\xff\xff\xff" + whole[at + 4 :]))
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) > 10
    assert all(words.startswith("it ") and "\n" not in words for words in refused)


def test_archives_without_a_model_are_refused() -> None:
    with pytest.raises(ReadError, match="no model in it"):
        loopscope.read_model(_zip(readme=b"hello"))
    with pytest.raises(ReadError, match="cannot be read"):
        loopscope.read_model(b"PK\x03\x04" + b"\0" * 100)


def test_a_damaged_file_is_one_sentence() -> None:
    with pytest.raises(ReadError, match="OpenVINO does not convert it") as caught:
        loopscope.read_model((FILES / "while_loop.pb").read_bytes()[:3000])
    assert "\n" not in str(caught.value)
    assert "core.cpp" not in str(caught.value)


def test_exported_programs_are_read_by_path_only(tmp_path: Path) -> None:
    data = _zip(**{"m/archive_format": b"pt2", "m/models/model.json": b"{}"})
    with pytest.raises(ReadError, match="by its path only"):
        loopscope.read_model(data)


TORCH = {
    # The entries that torch.jit.save, torch.save of a dictionary of tensors, and torch.export.save
    # write.
    "TorchScript": (
        ("net/data.pkl", "net/code/__torch__.py", "net/constants.pkl", "net/version"),
        r"a TorchScript model: .*torch\.jit\.load",
    ),
    "TorchScript without constants": (
        ("net/data.pkl", "net/code/__torch__/net.py"),
        "a TorchScript model",
    ),
    "weights": (
        ("net/data.pkl", "net/data/0", "net/byteorder", "net/version"),
        "a PyTorch checkpoint: it holds weights",
    ),
    "an exported program": (
        ("net/archive_format", "net/models/model.json"),
        "a PyTorch exported program",
    ),
}


@pytest.mark.parametrize(("names", "says"), TORCH.values(), ids=TORCH.keys())
def test_files_of_torch_are_called_by_their_names_and_not_unpickled(
    names: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    # A pickle that writes a file when it is loaded.
    written = tmp_path / "written"
    attack = b"cbuiltins\nopen\n(S'" + str(written).encode() + b"'\nS'w'\ntR."
    data = _zip(**dict.fromkeys(names, attack))
    (tmp_path / "net.pt").write_bytes(data)
    with pytest.raises(ReadError, match=says):
        loopscope.read_model(data)
    if "exported" not in says:
        with pytest.raises(ReadError, match=says):
            loopscope.read_model(tmp_path / "net.pt")
    assert not written.exists()


def test_conversion_has_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(conversion, "_PROCESS", slow)
    with pytest.raises(ReadError, match="conversion_seconds"):
        loopscope.read_model(FILES / "while_loop.pb", limits=ReadLimits(conversion_seconds=0.5))


def test_a_frontend_that_crashes_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    crash = tmp_path / "crash.py"
    crash.write_text("import os; os.abort()")
    monkeypatch.setattr(conversion, "_PROCESS", crash)
    with pytest.raises(ReadError, match="crashed on the file"):
        loopscope.read_model(FILES / "while_loop.pb")


def test_without_openvino_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ReadError, match="pip install openvino"):
        loopscope.read_model(FILES / "while_loop.pb")


def test_no_folder_but_a_saved_model(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"folder without saved_model\.pb"):
        loopscope.read_model(tmp_path)
