"""A run saved without weights: everything that was recorded is there, and what weights would be
needed for says that it is not kept.
"""

from __future__ import annotations

import io
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import onnx
import onnx.parser
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.errors import NotKept, ValueUnavailable
from loopscope.executor.machine.machine import Failure
from loopscope.explain import export, listing, runnable_code, verdict
from loopscope.ir.address import Address, nodes
from loopscope.run_file import loading, saving
from loopscope.timeline import run_values
from loopscope_samples import samples
from tests.engine.run_file.test_recorded_runs import addresses, begun, value

EVERYTHING = loopscope.Record(everything=True, recompute=False)


def dense(record: loopscope.Record | None = None) -> loopscope.Debugger:
    """A loop around a dense layer, whose weights and bias are large."""
    graph = builder.Graph("dense")
    x = graph.parameter("x", "f32", [1, 80])
    drawn = np.random.default_rng(0)
    weights, bias = (
        drawn.normal(size=shape).astype(np.float32) / 9 for shape in ((80, 80), (1, 80))
    )

    def layer(i: builder.Tensor, state: builder.Tensor) -> tuple[builder.Tensor, builder.Tensor]:
        product = ops.matmul(state, weights, transpose_a=False, transpose_b=False, name="product")
        return i + 1, ops.tanh(ops.add(product, bias, name="shifted"), name="state_out")

    _, last = builder.while_loop(lambda i, state: i < 20, layer, (0, x), name="layers")
    debugger = loopscope.Debugger(
        graph.model({"last": ops.negative(last, name="turned")}),
        {"x": np.ones((1, 80), np.float32)},
        record=record,
    )
    debugger.run()
    return debugger


def without_weights(debugger: loopscope.Debugger, folder: Path) -> loopscope.Debugger:
    loopscope.save(debugger, folder / "run.loopscope", weights=False)
    return loopscope.load(folder / "run.loopscope")


@pytest.mark.parametrize("name", [one.name for one in samples()])
def test_every_value_is_the_recorded_one_or_not_kept(name: str, tmp_path: Path) -> None:
    debugger = begun(name, EVERYTHING)
    debugger.run()
    again = without_weights(debugger, tmp_path)
    assert (again.cursor, again.state, again.steps) == (
        debugger.cursor,
        debugger.state,
        debugger.steps,
    )
    assert list(again.control_flow) == list(debugger.control_flow)
    lost = [address for address in addresses(debugger) if is_lost(again, address)]
    for address in set(addresses(debugger)) - set(lost):
        assert value(again, address) == value(debugger, address), address
    constants = {address for address, node in nodes(debugger.model) if node.constant is not None}
    assert {static(one) for one in lost} <= constants, "only Consts themselves"
    for record in debugger.control_flow[:3]:
        assert verdict(again, record.address).sentence == verdict(debugger, record.address).sentence


def is_lost(run: loopscope.Debugger, address: str) -> bool:
    try:
        run.value(address)
    except ValueUnavailable as none:  # or it did not run
        return isinstance(none, NotKept) and str(none).startswith("not kept: ")
    return False


def static(address: str) -> str:
    return str(Address.parse(address).static)


def test_a_short_run_is_recorded_whole_for_its_file(tmp_path: Path) -> None:
    debugger = dense()
    again = without_weights(debugger, tmp_path)
    for name in ("product", "shifted", "state_out"):
        np.testing.assert_array_equal(
            again.value(f"main/layers[3]/body/{name}"),
            debugger.value(f"main/layers[3]/body/{name}"),
        )
    paused = loopscope.Debugger(debugger.model, {"x": np.ones((1, 80), np.float32)})
    paused.seek(40)
    again = without_weights(paused, tmp_path)
    assert (again.steps, again.state) == (40, "paused")
    np.testing.assert_array_equal(
        again.value("main/layers[3]/body/product"), debugger.value("main/layers[3]/body/product")
    )


def test_only_carried_state_leaves_what_weights_feed_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "SHORT_SECONDS", -1.0)
    debugger = dense()
    again = without_weights(debugger, tmp_path)
    np.testing.assert_array_equal(again.result.outputs[0], debugger.result.outputs[0])
    carried = next(one for one in addresses_of_state(debugger))
    np.testing.assert_array_equal(again.value(carried), debugger.value(carried))
    with pytest.raises(
        NotKept,
        match=r"not kept: layers · iteration 3 › shifted depends on weights, and the run was saved without them",
    ):
        again.value("main/layers[3]/body/shifted")
    for iteration in (3, 18, 19):  # the next iteration has it, or the graph around
        address = f"main/layers[{iteration}]/body/state_out"
        np.testing.assert_array_equal(again.value(address), debugger.value(address))
    everything = without_weights(dense(EVERYTHING), tmp_path)
    for name in ("product", "shifted", "state_out"):
        np.testing.assert_array_equal(
            everything.value(f"main/layers[3]/body/{name}"),
            debugger.value(f"main/layers[3]/body/{name}"),
        )


def nested() -> loopscope.Debugger:
    """A loop of four iterations in a loop of three; the state goes through both."""
    graph = builder.Graph("nested")
    x = graph.parameter("x", "f32", [1, 80])
    weights = np.random.default_rng(0).normal(size=(80, 80)).astype(np.float32) / 9

    def layer(i: builder.Tensor, state: builder.Tensor) -> tuple[builder.Tensor, builder.Tensor]:
        product = ops.matmul(state, weights, transpose_a=False, transpose_b=False, name="product")
        return i + 1, ops.tanh(product, name="state_out")

    def block(i: builder.Tensor, state: builder.Tensor) -> tuple[builder.Tensor, builder.Tensor]:
        _, last = builder.while_loop(lambda i, state: i < 4, layer, (0, state), name="inner")
        return i + 1, last

    _, last = builder.while_loop(lambda i, state: i < 3, block, (0, x), name="outer")
    return loopscope.Debugger(graph.model({"last": last}), {"x": np.ones((1, 80), np.float32)})


def test_a_last_state_is_where_the_loops_around_passed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while a later execution of the inner loop is open, and not before its own has ended."""
    monkeypatch.setattr(saving, "SHORT_SECONDS", -1.0)
    debugger, paused = nested(), nested()
    debugger.run()
    paused.run_to("main/outer[1]/body/inner[2]/body/product")
    again = without_weights(paused, tmp_path)
    for place in ("outer[0]/body/inner[3]", "outer[0]/body/inner[1]", "outer[1]/body/inner[1]"):
        address = f"main/{place}/body/state_out"
        np.testing.assert_array_equal(again.value(address), debugger.value(address), address)
    with pytest.raises(NotKept):
        again.value("main/outer[0]/body/inner[3]/body/product")
    finished = without_weights(debugger, tmp_path)
    address = "main/outer[2]/body/inner[3]/body/state_out"
    np.testing.assert_array_equal(finished.value(address), debugger.value(address))


def test_a_run_that_has_its_weights_does_not_blame_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise Failure("it fails the second time")

    debugger = dense(loopscope.Record())
    monkeypatch.setattr(run_values, "execute", fail)
    with pytest.raises(Failure, match="the second time"):
        debugger.value("main/layers[3]/body/shifted")


def test_a_value_of_a_branch_that_weights_feed_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "SHORT_SECONDS", -1.0)
    again = without_weights(choosing(), tmp_path)
    with pytest.raises(NotKept, match="choice · then › product depends on weights"):
        again.value("main/choice/then/product")


def addresses_of_state(run: loopscope.Debugger) -> list[str]:
    program = run.plan.programs[1]
    assert program.loop is not None
    wanted = {one.parameter for one in program.loop.carried}
    labels = {layer: label for label, layer in program.layer_of_label.items()}
    return [
        f"main/layers[7]/body/{labels[layer]}"
        for layer, slot in program.parameters.items()
        if slot in wanted
    ]


def test_going_on_says_what_it_lacks_and_restarting_only_goes_back(tmp_path: Path) -> None:
    debugger = dense()
    debugger = loopscope.Debugger(debugger.model, {"x": np.ones((1, 80), np.float32)})
    debugger.run_to("main/layers[2]/body/product")
    again = without_weights(debugger, tmp_path)
    assert again.cursor == debugger.cursor
    again.run()
    assert again.state == "failed"
    assert "not kept: it depends on weights, and the run was saved without them" in str(
        again.failure
    )
    again.restart()
    assert (again.cursor.step, again.steps) == (0, debugger.steps)


def test_no_weight_is_in_the_file(tmp_path: Path) -> None:
    debugger = dense()
    without_weights(debugger, tmp_path)
    data = loading.read_run(tmp_path / "run.loopscope")
    found = [node.constant for _, node in nodes(data.model) if node.constant is not None]
    assert all(
        one.is_kept == (one.elements <= 64) and (one.is_kept or not one.data) for one in found
    )
    assert sorted(one.shape for one in found if not one.is_kept) == [(1, 80), (80, 80)]
    assert (tmp_path / "run.loopscope").stat().st_size < 40_000


def test_an_onnx_file_loses_its_tensors_wherever_they_are(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> agraph (float[2,100] x, bool which) => (float[2,100] y) {
        y = If (which) <then_branch = a () => (float[2,100] p) { w = Constant <value = float[100] {0}> () p = Add (x, w) },
                        else_branch = b () => (float[2,100] q) { q = Neg (x) }> }"""
    proto = onnx.parser.parse_model(
        text.replace("float[100] {0}", "float[100] {" + ",".join(["3"] * 100) + "}")
    )
    onnx.save(proto, tmp_path / "m.onnx")
    debugger = loopscope.Debugger(
        loopscope.read_model(tmp_path / "m.onnx"),
        {"x": np.ones((2, 100), np.float32), "which": True},
    )
    debugger.run()
    again = without_weights(debugger, tmp_path)
    assert again.result.outputs[0].tolist() == [[4.0] * 100] * 2
    held = loading.read_run(tmp_path / "run.loopscope").document
    assert np.float32(3).tobytes() * 4 not in held
    with pytest.raises(NotKept):
        again.value(
            "main/" + next(one.label for one in again.plan.main.instructions) + "/then/Constant_0"
        )


def test_a_model_without_weights_is_neither_written_nor_run_as_if_it_had_them(
    tmp_path: Path,
) -> None:
    again = without_weights(dense(), tmp_path)
    with pytest.raises(loopscope.WriteError, match="saved without weights"):
        loopscope.write_model(again.model, tmp_path / "m.xml")
    other = loopscope.Debugger(again.model, {"x": np.zeros((1, 80), np.float32)})
    other.run()
    assert other.state == "failed"
    with pytest.raises(loopscope.WriteError, match="without weights it cannot be computed again"):
        loopscope.save(dense(), tmp_path / "run.loopscope", weights=False, budget_bytes=10)


def choosing() -> loopscope.Debugger:
    """An If whose branch multiplies with weights of the graph around it."""
    graph = builder.Graph("branches")
    x, which = graph.parameter("x", "f32", [1, 80]), graph.parameter("which", "boolean", [])
    weights = builder.constant(np.ones((80, 80), np.float32))

    def heavy() -> builder.Tensor:
        return ops.matmul(
            ops.negative(x, name="turned"),
            weights,
            transpose_a=False,
            transpose_b=False,
            name="product",
        )

    result = builder.cond(which, heavy, lambda: x, name="choice")
    debugger = loopscope.Debugger(
        graph.model({"y": result}), {"x": np.ones((1, 80), np.float32), "which": True}
    )
    debugger.run()
    return debugger


def test_a_branch_has_its_values_though_weights_are_handed_into_it(tmp_path: Path) -> None:
    debugger = choosing()
    again = without_weights(debugger, tmp_path)
    for name in ("turned", "product", "x"):
        np.testing.assert_array_equal(
            again.value(f"main/choice/then/{name}"), debugger.value(f"main/choice/then/{name}")
        )


def test_code_of_a_run_without_weights_says_which_constants_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "SHORT_SECONDS", -1.0)
    again = without_weights(dense(), tmp_path)
    written = listing(again.plan).text
    assert written.count("]  # not kept: the run was saved without weights") == 2
    compile(written, "listing", "exec")
    code = runnable_code(again.plan)
    assert 'WEIGHTS = dict(np.load("weights.npz"))' in code.text
    assert not code.weights


def test_a_run_without_weights_is_saved_and_exported_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "SHORT_SECONDS", -1.0)
    once = without_weights(dense(), tmp_path)
    loopscope.save(once, tmp_path / "again.loopscope")
    again = loopscope.load(tmp_path / "again.loopscope")
    assert again.plan.lacks_weights
    assert (again.cursor, again.steps) == (once.cursor, once.steps)
    count = export(again, tmp_path / "trace.npz")
    with np.load(tmp_path / "trace.npz") as held:
        assert len(held.files) == count
        assert "main/layers[3]/body/state_out" in held.files
        assert "main/layers[3]/body/shifted" not in held.files


def test_what_is_made_of_weights_alone_is_not_in_the_file(tmp_path: Path) -> None:
    """Handed into a loop and a branch, sliced, turned, or handed on as it is: none of it is in
    the file under another name.
    """
    weights = np.random.default_rng(5).standard_normal((9, 9)).astype(np.float32)
    graph = builder.Graph("handed")
    x, known = graph.parameter("x", "f32", [1, 9]), builder.constant(weights)
    turned = ops.transpose(known, np.array([1, 0]), name="turned")

    def body(
        number: builder.Tensor, state: builder.Tensor, same: builder.Tensor
    ) -> tuple[builder.Tensor, ...]:
        doubled = ops.multiply(turned, np.float32(2), name="doubled")
        given = builder.cond(
            number > 0, lambda: ops.negative(known, name="less"), lambda: known, name="choice"
        )
        return number + 1, ops.tanh(state @ doubled @ given @ same, name="next"), same

    _, last, same = builder.while_loop(
        lambda number, *_: number < 3, body, [np.int64(0), x, known], name="layers"
    )
    debugger = loopscope.Debugger(
        graph.model({"last": last, "sum": ops.reduce_sum(same, [0, 1])}),
        {"x": np.ones((1, 9), np.float32)},
    )
    debugger.run()
    path = tmp_path / "run.loopscope"
    again = without_weights(debugger, tmp_path)
    with ZipFile(path) as archive:
        arrays = [
            np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name.endswith(".npy")
        ]
    ours = {np.abs(one).sum(dtype=np.float64).round(3) for one in (weights, 2 * weights)}
    rows = [
        row
        for array in arrays
        if array.dtype == np.float32
        for row in (array, *(array if array.ndim > 2 else ()))
    ]
    assert not ours & {
        np.abs(row).sum(dtype=np.float64).round(3) for row in rows if row.size >= weights.size
    }
    for number in range(3):
        np.testing.assert_array_equal(
            again.value(f"main/layers[{number}]/body/next"),
            debugger.value(f"main/layers[{number}]/body/next"),
        )
    np.testing.assert_array_equal(again.value("main/sum"), debugger.value("main/sum"))
    with pytest.raises(
        NotKept, match="doubled depends on weights, and the run was saved without them"
    ):
        again.value("main/layers[1]/body/doubled")
