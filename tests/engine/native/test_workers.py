"""Native code in processes of its own: it answers, refuses, crashes, hangs, asks for too much;
we go on.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from PIL import Image

from loopscope.checks.check import check
from loopscope.native.onnx_functions import function_of
from loopscope.native.workers import WORKERS, Crashed, Refused, Workers
from loopscope.ops.catalogue import CATALOGUE
from loopscope.read import read_model

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])
INDICES = helper.make_tensor_value_info("i", TensorProto.INT64, [2, 1])
ML = "ai.onnx.ml"


def small(node: NodeProto, *inputs: ValueInfoProto) -> ModelProto:
    """A model of one node, and one more whose type follows."""
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in ("y", "z")
    ]
    graph = helper.make_graph(
        [node, helper.make_node("Relu", ["x"], ["z"])], "small", list(inputs), outputs
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(ML, 5)], ir_version=9
    )


TREE = helper.make_node("TreeEnsemble", [""], ["y"], domain=ML, n_targets=1, leaf_targetids=[0])
TREE.attribute.append(
    helper.make_attribute("nodes_splits", helper.make_tensor("t", TensorProto.FLOAT, [1], [1.0]))
)
BODY = helper.make_graph(
    [],
    "body",
    [helper.make_empty_tensor_value_info("p")],
    [helper.make_empty_tensor_value_info("z")],
)
CRASHES = {
    "EyeLike": small(helper.make_node("EyeLike", [""], ["y"], dtype=1), X),
    "LabelEncoder": small(
        helper.make_node(
            "LabelEncoder", ["unknown"], ["y"], domain=ML, keys_int64s=[1], values_int64s=[1]
        ),
        X,
    ),
    "RegexFullMatch": small(helper.make_node("RegexFullMatch", ["unknown"], ["y"], pattern="a"), X),
    "TreeEnsemble": small(TREE, X),
    "DictVectorizer": small(
        helper.make_node("DictVectorizer", ["unknown"], ["y"], domain=ML, string_vocabulary=["a"]),
        X,
    ),
    "GatherND": small(helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=-3), X, INDICES),
}


@pytest.mark.parametrize("name", CRASHES)
def test_a_file_on_which_shape_inference_crashes_is_read_and_says_so(name: str) -> None:
    document = CRASHES[name].SerializeToString()
    assert len(document) < 250
    with pytest.raises(Crashed):
        WORKERS.ask("onnx types", document)
    model = read_model(document)
    assert {name, "Relu"} <= {node.type for node in model.graph.nodes}
    (remark,) = [one for one in check(model, CATALOGUE).diagnostics if one.code == "LS111"]
    assert "shape inference crashes on this file" in remark.message
    sound = read_model(small(helper.make_node("Neg", ["x"], ["y"]), X).SerializeToString())
    assert not sound.notes
    assert [str(one.shape) for one in sound.outputs] == ["[2,2]", "[2,2]"], (
        "a crash costs the types of its own file only"
    )


def test_an_operation_whose_definition_crashes_is_drawn_without_it() -> None:
    node = helper.make_node("SequenceMap", ["x", "x"], ["y"], body=BODY)
    with pytest.raises(Crashed):
        WORKERS.ask(
            "onnx function",
            b'{"type": "SequenceMap", "version": 17, "domain": ""}',
            node.SerializeToString(),
        )
    assert function_of(node, 17, []) is None
    assert "SequenceMap" in {
        one.type for one in read_model(small(node, X).SerializeToString()).graph.nodes
    }


def test_requests_of_many_threads_get_their_own_answers_also_where_some_crash() -> None:
    workers = Workers()
    crash = CRASHES["GatherND"].SerializeToString()

    def asked(number: int) -> str:
        if number % 5 == 0:
            with pytest.raises(Crashed):
                workers.ask("onnx types", crash)
            return ""
        graph = helper.make_graph([], f"graph {number}", [], [])
        (made,) = workers.ask("onnx types", helper.make_model(graph).SerializeToString())
        return str(ModelProto.FromString(made).graph.name)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(asked, range(40))) == [
            "" if number % 5 == 0 else f"graph {number}" for number in range(40)
        ]
    workers.close()


def test_something_else_is_done_while_an_answer_is_awaited() -> None:
    workers = Workers()
    with workers.asking("image size", picture(3)) as answer:
        assert not workers._idle
        assert answer() == [b"3", b"3"]
        assert workers.ask("image size", picture(5)) == [b"5", b"5"], (
            "the turn is over with the answer"
        )
        assert answer() == [b"3", b"3"]
    with (
        workers.asking("image size", b"no image") as refused,
        pytest.raises(Refused, match="cannot identify"),
    ):
        refused()
    assert len(workers._idle) == 1
    workers.close()


def test_an_answer_that_nobody_waits_for_answers_no_later_request() -> None:
    workers = Workers()
    with pytest.raises(ZeroDivisionError), workers.asking("image size", picture(3)):
        raise ZeroDivisionError
    assert workers.ask("image size", picture(5)) == [b"5", b"5"]
    with workers.asking("onnx types", CRASHES["GatherND"].SerializeToString()):
        pass
    assert workers.ask("image size", picture(7)) == [b"7", b"7"]
    workers.close()


def test_what_takes_too_long_is_ended() -> None:
    workers = Workers(seconds=0)
    with pytest.raises(Crashed):
        workers.ask("image size", picture(1))


def test_what_takes_too_much_memory_is_refused() -> None:
    encoded = picture(6000)
    workers = Workers(most_bytes=100 * 2**20)
    assert workers.ask("image size", encoded) == [b"6000", b"6000"]
    with pytest.raises((Refused, Crashed)):
        workers.ask("image", b"RGB", encoded)
    workers.close()


def test_a_request_is_refused_in_the_words_of_who_refuses_it() -> None:
    with pytest.raises(Refused, match="cannot identify image file"):
        WORKERS.ask("image size", b"no image")


def picture(length: int) -> bytes:
    file = io.BytesIO()
    Image.new("L", (length, length)).save(file, "PNG")
    return file.getvalue()


ENDS = """
from loopscope.native.workers import WORKERS
try:
    WORKERS.ask("image size", b"")
except Exception:
    print(WORKERS._idle[0].pid)
"""


def hanging() -> ModelProto:
    """Functions that call the one before twice: shape inference writes 2 to the 40th nodes out."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    functions = [
        helper.make_function(
            "mine", "f0", ["a"], ["c"], [helper.make_node("Neg", ["a"], ["c"])], opsets
        )
    ]
    for number in range(1, 40):
        calls = [
            helper.make_node(f"f{number - 1}", [given], [made], domain="mine")
            for given, made in (("a", "b"), ("b", "c"))
        ]
        functions.append(helper.make_function("mine", f"f{number}", ["a"], ["c"], calls, opsets))
    graph = helper.make_graph(
        [helper.make_node("f39", ["x"], ["y"], domain="mine")], "hanging", [X], []
    )
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes there have no timer that ends them")
def test_what_hangs_has_seconds_of_the_processor_that_are_bounded_by_its_size() -> None:
    before = os.times()
    with pytest.raises(Crashed):
        WORKERS.ask("onnx types", hanging().SerializeToString())
    after = os.times()
    used = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    assert 1.5 < used < 4, "2 s, and what the process had used before"


HANGS = """
import sys
from loopscope.native.workers import WORKERS
WORKERS.warm()
print(WORKERS._idle[0].pid, flush=True)
WORKERS.ask("onnx types", sys.stdin.buffer.read())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="whether a process is there is read from /proc")
def test_a_process_that_hangs_ends_though_ours_was_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANGS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as ours:
        assert ours.stdin is not None
        assert ours.stdout is not None
        child = Path("/proc", ours.stdout.readline().decode().strip())
        ours.stdin.write(hanging().SerializeToString())
        ours.stdin.close()
        assert passes(lambda: processor_seconds(child) > 1), "it hangs"
        ours.kill()
    assert passes(lambda: processor_seconds(child) == 0)


def processor_seconds(process: Path) -> float:
    """What a process has used; 0 when there is none."""
    try:
        state, *numbers = (process / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if state == "Z" else sum(map(int, numbers[10:12])) / os.sysconf("SC_CLK_TCK")


def passes(condition: Callable[[], bool]) -> bool:
    """Whether it comes true before long."""
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="whether a process is there is read from /proc")
def test_the_processes_end_with_ours() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDS], capture_output=True, text=True, check=True, timeout=60
    )
    assert not Path("/proc", done.stdout.strip()).exists()
