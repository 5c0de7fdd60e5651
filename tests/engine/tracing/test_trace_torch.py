"""Traces of torch and transformers, where they are installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope.errors import InputError
from loopscope.tracing import import_dumps

torch = pytest.importorskip("torch")


def gru(path: Path, dtype: Any) -> loopscope.Debugger:
    """A GRU cell in a Python loop that a decision ends."""
    torch.manual_seed(1)
    cell = torch.nn.GRUCell(4, 8)
    inputs = torch.randn(200, 1, 4)
    cell, inputs, hidden = cell.to(dtype), inputs.to(dtype), torch.zeros(1, 8, dtype=dtype)
    with loopscope.trace(path) as trace, torch.no_grad():
        trace.record(hidden=hidden)
        for step in trace.iterations("decode", range(200)):
            hidden = cell(inputs[step], hidden)
            trace.record(hidden=hidden)
            if trace.branch("stop", step == 136):
                break
    return loopscope.load(path)


def test_a_gru_cell_in_f32_and_bf16(tmp_path: Path) -> None:
    runs = [
        gru(tmp_path / f"{number}.loopscope", dtype)
        for number, dtype in enumerate((torch.float32, torch.bfloat16))
    ]
    assert runs[1].value("main/decode[9]/body/hidden").dtype.name == "bfloat16"
    assert loopscope.verdict(runs[1], "main/decode").sentence == (
        "Ended after 137 of 200 iterations: `stop` was true."
    )
    result = loopscope.drift(*runs)
    assert result.first is not None
    assert result.first.one == "main/decode/body/hidden"
    assert result.first.worst.relative < 0.1


class Layers(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Two layers, the second of which counts its calls in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
        self.state: Any
        self.register_buffer("state", torch.zeros(2))

    def forward(self, x: Any) -> Any:
        if x.sum() < -100:
            raise ValueError("too small")
        for layer in self.layers:
            x = layer(x)
        self.state = self.state + x
        return x


def test_a_module_by_hooks(tmp_path: Path) -> None:
    module, path = Layers(), tmp_path / "x.loopscope"
    x = torch.ones(2)
    with loopscope.trace(path), torch.no_grad():
        with loopscope.trace_module(module, patterns=["layers.1", "state"]):
            outputs = [module(x) for _ in range(3)]
        module(x)
    run = loopscope.load(path)
    assert run.control_flow[0].iterations == 3
    assert run.value("main/step[2]/body/output").tolist() == outputs[2].tolist()
    assert run.value("main/step[2]/body/layers.1").tolist() == outputs[2].tolist()
    np.testing.assert_allclose(run.value("main/step[2]/body/state"), 3 * outputs[0], rtol=1e-6)
    with pytest.raises(InputError, match="no submodule or buffer matches 'nothing'"):
        loopscope.trace_module(module, patterns=["nothing"])
    with pytest.raises(InputError, match="has no submodule 'nothing'"):
        loopscope.trace_module(module, "nothing")


def test_a_call_that_fails_ends_its_iteration(tmp_path: Path) -> None:
    module, path = Layers(), tmp_path / "x.loopscope"
    with loopscope.trace(path), loopscope.trace_module(module), torch.no_grad():
        module(torch.ones(2))
        with pytest.raises(ValueError, match="too small"):
            module(torch.full((2,), -1e3))
        module(torch.ones(2))
    assert loopscope.load(path).control_flow[0].iterations == 3


def test_without_a_trace_no_hook_is_installed() -> None:
    module = Layers()
    with loopscope.trace_module(module):
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


def llama(transformers: Any) -> Any:
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=500,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            initializer_range=0.1,
        )
    )


def mamba(transformers: Any) -> Any:
    return transformers.MambaForCausalLM(
        transformers.MambaConfig(
            vocab_size=500,
            hidden_size=64,
            num_hidden_layers=4,
            state_size=8,
            initializer_range=0.1,
            tie_word_embeddings=False,
        )
    )


@pytest.mark.parametrize("make", [llama, mamba])
def test_generation_in_f32_and_bf16(make: Callable[[Any], Any], tmp_path: Path) -> None:
    """An iteration per token and a row per layer; the first token that differs is reported."""
    transformers = pytest.importorskip("transformers")
    tokens, runs = [], []
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(0)
        model = make(transformers).eval().to(dtype)
        path = tmp_path / f"{dtype}.loopscope"
        with loopscope.trace(path), loopscope.trace_module(model), torch.no_grad():
            output = model.generate(
                torch.tensor([[1, 5, 9, 4]]),
                max_new_tokens=64,
                min_new_tokens=64,
                do_sample=False,
                pad_token_id=0,
            )
        tokens.append(output[0, 4:].numpy())
        runs.append(loopscope.load(path))
    assert [run.control_flow[0].iterations for run in runs] == [64, 64]
    result = loopscope.drift(*runs, tolerance=1e-4)
    layers = {pair.one.rpartition("/")[2] for pair in result.pairs}
    assert len([name for name in layers if ".layers." in name]) == 4
    assert result.first is not None
    assert result.first.first is not None
    assert result.first.first.iteration == 0
    assert result.first.one.endswith(".layers.0")
    differ = np.flatnonzero(tokens[0] != tokens[1])
    if len(differ):
        assert f"token {differ[0]}" in result.choice
    else:
        assert result.choice == ""


def test_files_of_torch_are_imported_without_their_code(tmp_path: Path) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    for step in range(3):
        state = {"h": torch.full((2,), step, dtype=torch.bfloat16), "list": [torch.ones(1)]}
        torch.save(state, folder / f"step{step}.pt")
    target = tmp_path / "x.loopscope"
    assert import_dumps(folder, ["step{step}.pt"], target) == 3
    run = loopscope.load(target)
    assert run.value("main/step[2]/body/h").astype(float).tolist() == [2, 2]
    torch.save(Layers(), folder / "step3.pt")
    with pytest.raises(InputError, match="torch does not read it"):
        import_dumps(folder, ["step{step}.pt"], target)
