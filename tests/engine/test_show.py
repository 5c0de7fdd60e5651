"""loopscope.show starts the app on a model and its inputs, and leaves nothing behind."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.launch import RunningApp
from loopscope.ops.stored import unpacked


def halving() -> loopscope.Model:
    graph = builder.Graph("halve: until/small")
    x = graph.parameter("x", "f32", [])
    return graph.model(builder.while_loop(lambda v: v > 1, lambda v: v / 2, [x])[0])


class Started:
    """Stands for the app's process."""

    def __init__(self, words: list[str], env: dict[str, str]) -> None:
        self.words, self.env, self.running = words, env, True

    def poll(self) -> int | None:
        return None if self.running else 0

    def wait(self, timeout: float | None = None) -> int:
        self.running = False
        return 0

    terminate = wait


def stand_in(shown: RunningApp) -> Started:
    process: object = shown.process
    assert isinstance(process, Started)
    return process


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> type:
    monkeypatch.setattr("subprocess.Popen", Started)
    return Started


def test_the_app_gets_the_model_and_its_inputs(started: type) -> None:
    shown = loopscope.show(halving(), [100], wait=False, browser=False)
    words = stand_in(shown).words
    assert words[1:4] == ["-P", "-m", "loopscope_app.cli"]
    assert words[-1] == "--no-browser"
    path, inputs = Path(words[4]), words[words.index("--inputs") + 1]
    assert path.name == "halve_ until_small.xml"
    model = loopscope.read_model(path)
    with np.load(inputs) as arrays:
        assert loopscope.run(model, [arrays["0"]]).outputs[0] == np.float32(0.78125)
    assert shown.url.endswith(words[words.index("--port") + 1])
    assert shown.url in shown._repr_html_()
    assert repr(shown) == f"<Loopscope at {shown.url}>"
    shown.stop()
    assert repr(shown) == f"<Loopscope at {shown.url}, closed>"
    assert not path.exists()


def test_the_app_gets_what_is_said_of_nodes(started: type, tmp_path: Path) -> None:
    shown = loopscope.show(
        halving(), overlay={"Divide": np.float64(0.5)}, wait=False, browser=False
    )
    words = stand_in(shown).words
    path = Path(words[words.index("--overlay") + 1])
    assert json.loads(path.read_text()) == {"Divide": 0.5}
    shown.stop()
    assert not path.exists()
    (tmp_path / "cost.json").write_text('{"Divide": "slow"}')
    shown = loopscope.show(halving(), overlay=tmp_path / "cost.json", wait=False, browser=False)
    assert stand_in(shown).words[stand_in(shown).words.index("--overlay") + 1] == str(
        tmp_path / "cost.json"
    )
    with pytest.raises(loopscope.ReadError, match="no key of the node data"):
        loopscope.show(halving(), overlay={"nobody": 1}, wait=False, browser=False)


def test_inputs_of_every_type_arrive(started: type) -> None:
    graph = builder.Graph("types")
    given = {
        "bf16": [0.5],
        "f16": [1.5],
        "i4": [-3],
        "u1": [1],
        "boolean": [True],
        "string": ["a"],
        "i64": [2**40],
    }
    made = [graph.parameter(name, name, [1]) for name in given]
    shown = loopscope.show(graph.model(made), given, wait=False, browser=False)
    words = stand_in(shown).words
    with np.load(words[words.index("--inputs") + 1], allow_pickle=False) as arrays:
        values = unpacked({key: arrays[key] for key in arrays.files})
    stored = loopscope.run(
        loopscope.read_model(words[4]), {int(key): value for key, value in values.items()}
    )
    assert [output.tolist() for output in stored.outputs] == list(given.values())
    shown.stop()


def test_a_script_waits_and_a_prompt_does_not(
    started: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not stand_in(loopscope.show(halving(), [100])).running
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    shown = loopscope.show(halving(), [100])
    assert stand_in(shown).running
    shown.stop()
    assert not stand_in(shown).running


def test_inputs_that_do_not_fit_are_told_at_once(started: type) -> None:
    with pytest.raises(loopscope.InputError, match="expected shape"):
        loopscope.show(halving(), [[1, 2]])
    with pytest.raises(loopscope.InputError, match="no value is given for 'x'"):
        loopscope.show(halving(), {})


@pytest.mark.slow
@pytest.mark.measured
def test_the_real_app_answers() -> None:
    shown = loopscope.show(halving(), [100], wait=False, browser=False)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and shown.process.poll() is None:
            try:
                assert (
                    urllib.request.urlopen(f"{shown.url}/_stcore/health", timeout=5).read() == b"ok"
                )
                break
            except OSError:
                time.sleep(0.2)
        else:
            pytest.fail("the app did not start")
    finally:
        shown.stop()
    assert shown.process.poll() is not None
