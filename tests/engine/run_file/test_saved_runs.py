"""A saved run opens again at the same moment; a file that is none, or was changed, is refused in
one sentence.
"""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.run_file import loading, read_run
from loopscope.run_file.run_archive import digest
from loopscope_samples import sample, samples


def debugger_of(name: str) -> loopscope.Debugger:
    found = sample(name)
    assert found is not None
    return loopscope.Debugger(loopscope.read_model(found.model), next(iter(found.sets)).arrays())


@pytest.mark.parametrize("name", [one.name for one in samples()])
def test_every_sample_comes_back_at_its_moment(name: str, tmp_path: Path) -> None:
    debugger = debugger_of(name)
    debugger.run()
    debugger.seek(debugger.steps // 2)
    loopscope.save(debugger, tmp_path / "run.loopscope")
    again = loopscope.load(tmp_path / "run.loopscope")
    assert (again.cursor, again.state, again.steps) == (
        debugger.cursor,
        debugger.state,
        debugger.steps,
    )
    assert list(again.control_flow) == list(debugger.control_flow)
    for one, other in zip(again.result.outputs, debugger.result.outputs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_was_set_comes_back(tmp_path: Path) -> None:
    inner = debugger_of("collatz")
    changed = next(one.label for one in inner.plan.main.instructions if one.region is not None)
    inner.run()
    body = next(iter(one for one in inner.plan.programs if one.address.endswith("/body")))
    label = next(one.label for one in body.instructions if one.region is None)
    address = f"main/{changed}[2]/body/{label}"
    debugger = loopscope.Debugger(inner.model, [7], seed=5, changes={address: inner.value(address)})
    debugger.breakpoints.add(f"main/{changed}[*]/body/{label}", "iteration > 3")
    debugger.breakpoints.add("", kind="nan", on=False)
    debugger.watches.add("1 + 1")
    debugger.run()
    step = debugger.cursor.step
    loopscope.save(debugger, tmp_path / "run.loopscope", look={"node": "main/n"})
    again = loopscope.load(tmp_path / "run.loopscope")
    assert (again.cursor.step, again.cursor.address) == (step, debugger.cursor.address)
    assert [one.describe() for one in again.breakpoints.items()] == [
        one.describe() for one in debugger.breakpoints.items()
    ]
    assert [one.on for one in again.breakpoints.items()] == [True, False]
    assert list(again.watches.items()) == list(debugger.watches.items())
    assert [one.address for one in again.changes] == [address]
    assert again.beginning.seed == 5
    assert loading.read_run(tmp_path / "run.loopscope").description.look == {"node": "main/n"}


def test_values_of_narrow_types_and_texts_come_back(tmp_path: Path) -> None:
    graph = builder.Graph("narrow")
    x = graph.parameter("x", "bf16", [3])
    debugger = loopscope.Debugger(
        graph.model({"y": x + x}), {"x": np.array([1, 2, np.nan], np.float32)}
    )
    debugger.run()
    loopscope.save(debugger, tmp_path / "run.loopscope")
    again = loopscope.load(tmp_path / "run.loopscope")
    assert again.result.outputs[0].dtype == debugger.result.outputs[0].dtype
    assert again.result.outputs[0].tobytes() == debugger.result.outputs[0].tobytes()


def test_a_run_of_an_onnx_file_holds_the_file(tmp_path: Path) -> None:
    import onnx.parser

    proto = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> agraph (float[2] x) => (float[2] y) { y = Add (x, x) }'
    )
    onnx.save(proto, tmp_path / "m.onnx")
    debugger = loopscope.Debugger(loopscope.read_model(tmp_path / "m.onnx"), {"x": [1, 2]})
    debugger.run()
    loopscope.save(debugger, tmp_path / "run.loopscope")
    (tmp_path / "m.onnx").unlink()
    again = loopscope.load(tmp_path / "run.loopscope")
    assert again.result.named["y"].tolist() == [2, 4]
    with pytest.raises(
        loopscope.WriteError,
        match=r"read from bytes is saved with its file's content: give it as document=",
    ):
        loopscope.save(again, tmp_path / "again.loopscope")
    loopscope.save(
        again, tmp_path / "again.loopscope", document=read_run(tmp_path / "run.loopscope").document
    )
    assert loopscope.load(tmp_path / "again.loopscope").result.named["y"].tolist() == [2, 4]


def test_what_is_computed_otherwise_is_told(tmp_path: Path) -> None:
    debugger = debugger_of("collatz")
    debugger.run()
    file = tmp_path / "run.loopscope"
    loopscope.save(debugger, file)

    def other_ending(data: dict[str, Any]) -> None:
        data["control_flow"][0][1] += 1

    without_recording(file)
    with pytest.warns(UserWarning, match=r"ran \d+ times \(condition\) here, and ran \d+ times"):
        loopscope.load(rewritten(file, other_ending))
    output = np.array(1)
    changed = changed_output(file, output + 41)
    with pytest.warns(UserWarning, match="from what was recorded|another type or shape"):
        loopscope.load(changed)


def test_a_run_that_is_read_as_a_model_says_what_it_is(tmp_path: Path) -> None:
    loopscope.save(debugger_of("collatz"), tmp_path / "run.loopscope")
    with pytest.raises(
        loopscope.ReadError,
        match=r"this is a run that Loopscope saved: it opens with loopscope\.load",
    ):
        loopscope.read_model(tmp_path / "run.loopscope")


def test_what_has_no_room_is_not_kept(tmp_path: Path) -> None:
    debugger = debugger_of("collatz")
    debugger.run()
    loopscope.save(debugger, tmp_path / "run.loopscope", budget_bytes=0)
    saved = loading.read_run(tmp_path / "run.loopscope")
    assert saved.outputs is None
    assert saved.description.control_flow is None
    assert loopscope.load(tmp_path / "run.loopscope").state == "finished"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda data: data.update(version=3, made_by="9.9"),
            r"saved by Loopscope 9\.9 in version 3 of the format, and this .* versions 1 to 2",
        ),
        (lambda data: data.update(format="other"), "is not that of a run"),
        (lambda data: data.update(version="1"), "'version'"),
        (lambda data: data.update(step=-1), "'step'"),
        (lambda data: data.update(step=True), "'step'"),
        (lambda data: data.update(breakpoints=[["a", "", "sometimes", True]]), "'breakpoints'"),
        (lambda data: data.update(watches=["1"] * 1001), "'watches'"),
        (lambda data: data.update(limits={"iterations": "many"}), "'iterations'"),
        (lambda data: data.update(look={"node": 1}), "'look'"),
        (lambda data: data.update(changes=["main/x"]), "changed values"),
        (lambda data: data.update(files={}), "lists other files"),
        (lambda data: data.update(state="asleep"), "'state'"),
        (lambda data: data.update(control_flow=[["a"]]), "'control_flow'"),
        (lambda data: data["files"].update({"model/model.xml": "0"}), "damaged"),
    ],
)
def test_a_changed_description_is_refused_in_one_sentence(
    change: Callable[[dict[str, Any]], None], sentence: str, tmp_path: Path
) -> None:
    debugger = debugger_of("collatz")
    file = tmp_path / "run.loopscope"
    loopscope.save(debugger, file)
    with pytest.raises(loopscope.ReadError, match=sentence) as refused:
        loopscope.load(rewritten(file, change))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "model/model.pkl", "inputs/a b.npy", "/model/model.xml"]
)
def test_other_names_are_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "run.loopscope"
    loopscope.save(debugger_of("collatz"), file)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(name, b"x")
    with pytest.raises(loopscope.ReadError, match="does not belong to a run"):
        loopscope.load(file)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "bomb.loopscope"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", b" " * (64 * 2**20))
    with pytest.raises(loopscope.ReadError, match="unpacks to more than is allowed"):
        loopscope.load(file)


def flat(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A saved run whose 8 MB of weights are zeros, where files may unpack to 4 MB freely."""
    monkeypatch.setattr("loopscope.run_file.run_archive._FREE_BYTES", 4 * 2**20)
    graph = builder.Graph("flat")
    product = builder.ops.matmul(
        graph.parameter("x", "f32", [1, 2]), np.zeros((2, 2**20), np.float32)
    )
    debugger = loopscope.Debugger(
        graph.model({"sum": builder.ops.reduce_sum(product, [0, 1])}), [[[1, 2]]]
    )
    debugger.run()
    loopscope.save(debugger, file)


def test_weights_that_are_all_the_same_are_no_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat(tmp_path / "flat.loopscope", monkeypatch)
    assert loopscope.load(tmp_path / "flat.loopscope").value("main/sum") == 0


def test_a_small_file_is_not_unpacked_to_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat(tmp_path / "flat.loopscope", monkeypatch)
    with (
        zipfile.ZipFile(tmp_path / "flat.loopscope") as whole,
        zipfile.ZipFile(tmp_path / "bomb.loopscope", "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for name in whole.namelist():
            bomb.writestr(name, whole.read(name))
    with pytest.raises(
        loopscope.ReadError,
        match=r"unpacks to more than is allowed: model/model\.bin exceeds 4,1\d\d,\d{3} bytes",
    ):
        loopscope.load(tmp_path / "bomb.loopscope")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 64 + "), }",
    ],
)
def test_an_array_that_promises_something_else_is_refused(header: str, tmp_path: Path) -> None:
    file = tmp_path / "run.loopscope"
    loopscope.save(debugger_of("collatz"), file)
    text = header.encode().ljust(246) + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 8
    with pytest.raises(loopscope.ReadError, match="an array in it"):
        loopscope.load(repacked(file, {"inputs/0.npy": content}))


def test_damaged_files_are_refused_as_nothing_but_read_errors(tmp_path: Path) -> None:
    loopscope.save(debugger_of("collatz"), tmp_path / "run.loopscope")
    whole = (tmp_path / "run.loopscope").read_bytes()
    drawn = random.Random(0)
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(drawn.randint(1, 4)):
            data[drawn.randrange(len(data))] = drawn.randrange(256)
        if drawn.random() < 0.2:
            del data[drawn.randrange(len(data)) :]
        try:
            loading.read_run(bytes(data))
        except loopscope.ReadError:
            refused += 1
    assert refused > 250


def test_only_a_whole_run_is_saved_and_only_to_such_a_file(tmp_path: Path) -> None:
    debugger = debugger_of("collatz")
    with pytest.raises(loopscope.WriteError, match=r"ends with \.loopscope"):
        loopscope.save(debugger, tmp_path / "run.zip")
    part = loopscope.Debugger(debugger.model, [7], fetches=[debugger.model.outputs[0].name])
    with pytest.raises(loopscope.WriteError, match="only a whole run is saved"):
        loopscope.save(part, tmp_path / "run.loopscope")
    assert not list(tmp_path.iterdir())


def rewritten(file: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    with zipfile.ZipFile(file) as archive:
        data = json.loads(archive.read("run.json"))
        change(data)
        return written(
            file,
            {
                "run.json": json.dumps(data).encode(),
                **{n: archive.read(n) for n in archive.namelist() if n != "run.json"},
            },
        )


def without_recording(file: Path) -> None:
    """As version 1 of the format was: the run has to be computed again."""
    with zipfile.ZipFile(file) as archive:
        contents = {
            name: archive.read(name)
            for name in archive.namelist()
            if not name.startswith("recording")
        }
    data = json.loads(contents.pop("run.json"))
    data["files"] = {name: digest(content) for name, content in contents.items()}
    written(file, {"run.json": json.dumps(data).encode(), **contents}).replace(file)


def repacked(file: Path, entries: dict[str, bytes]) -> Path:
    """With other entries, of which the description knows the hashes."""
    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()} | entries
    data = json.loads(contents.pop("run.json"))
    data["files"] = {name: digest(content) for name, content in contents.items()}
    return written(file, {"run.json": json.dumps(data).encode(), **contents})


def changed_output(file: Path, value: np.ndarray) -> Path:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, value)
    return repacked(file, {"outputs/0.npy": buffer.getvalue()})


def written(file: Path, entries: dict[str, bytes]) -> Path:
    target = file.with_name("other.loopscope")
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return target
