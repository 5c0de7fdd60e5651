"""Traces beside each other and beside models, also a sequential loop beside a chunked one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import loopscope
from loopscope.comparison import Alignment, RequestedPair
from loopscope.errors import InputError
from loopscope_samples import FOLDER
from loopscope_samples.recipes import linear_attention

STEPS, SIZE, CHUNK = 256, 8, 64
RANDOM = np.random.default_rng(0)
QUERY, KEY, VALUE = (RANDOM.standard_normal((STEPS, SIZE)) * 0.5 for _ in range(3))
KEY /= np.linalg.norm(KEY, axis=1, keepdims=True)
BETA = 1 / (1 + np.exp(-RANDOM.standard_normal(STEPS)))
DECAY = -0.05 * RANDOM.random(STEPS)
"""Inputs of a gated delta rule; the decay is a logarithm."""


def shown(path: Path) -> loopscope.Debugger:
    return loopscope.load(path)


def sequential(
    path: Path, cast: Callable[[np.floating], np.floating] = lambda beta: beta, steps: int = STEPS
) -> loopscope.Debugger:
    """The gated delta rule step by step; ``cast`` is what a kernel does with beta."""
    state = np.zeros((SIZE, SIZE))
    with loopscope.trace(path) as trace:
        trace.record(state=state.astype(np.float32))
        for step in trace.iterations("delta", range(steps)):
            beta = cast(BETA[step])
            trace.record(beta=np.float32(beta))
            state = np.exp(DECAY[step]) * state
            state = state + np.outer(KEY[step], beta * (VALUE[step] - KEY[step] @ state))
            trace.record(state=state.astype(np.float32), o=(QUERY[step] @ state).astype("f4"))
    return shown(path)


def chunked(path: Path, wrong_chunk: int | None = None, steps: int = STEPS) -> loopscope.Debugger:
    """The same in chunks of 64, by the solution of a triangular system.

    At the border of ``wrong_chunk`` the decay of its last step is left out.
    """
    state = np.zeros((SIZE, SIZE))
    with loopscope.trace(path) as trace:
        trace.record(state=state.astype(np.float32))
        for chunk in trace.iterations("delta", range(-(-steps // CHUNK))):
            part = slice(chunk * CHUNK, min((chunk + 1) * CHUNK, steps))
            total, key, beta = np.cumsum(DECAY[part]), KEY[part], BETA[part]
            between = np.exp(total[:, None] - total)
            system = np.eye(len(total)) + np.tril(beta[:, None] * (key @ key.T) * between, -1)
            target = VALUE[part] - np.exp(total)[:, None] * (key @ state)
            update = np.linalg.solve(system, beta[:, None] * target)
            inner = np.tril((QUERY[part] @ key.T) * between)
            output = np.exp(total)[:, None] * (QUERY[part] @ state) + inner @ update
            last = total[-2 if chunk == wrong_chunk else -1]
            state = np.exp(last) * state + (np.exp(last - total)[:, None] * key).T @ update
            trace.record(state=state.astype(np.float32), o=output.astype(np.float32))
    return shown(path)


def test_a_sequential_and_a_chunked_delta_rule_agree(tmp_path: Path) -> None:
    left, right = sequential(tmp_path / "s.loopscope"), chunked(tmp_path / "c.loopscope")
    for alignment in ("64:1", "auto"):
        result = loopscope.drift(left, right, alignment=Alignment.parse(alignment))
        assert result.first is None
        assert sorted(len(pair.rows.left) for pair in result.pairs) == [1, 4, STEPS]
        assert result.sentence.startswith("All 261 values")


@pytest.mark.parametrize("swapped", [False, True])
def test_a_wrong_decay_at_a_chunk_border_is_placed(tmp_path: Path, swapped: bool) -> None:
    runs = [sequential(tmp_path / "s.loopscope"), chunked(tmp_path / "c.loopscope", wrong_chunk=1)]
    alignment = Alignment.parse("1:64" if swapped else "64:1")
    left, right = reversed(runs) if swapped else runs
    result = loopscope.drift(left, right, alignment=alignment)
    assert result.sentence.startswith(
        "Begins in `delta` in chunk 1 (steps 64 to 127) in `state`; `o` differs from step 128 on"
    )


def test_a_last_chunk_may_be_shorter(tmp_path: Path) -> None:
    left = sequential(tmp_path / "s.loopscope", steps=100)
    right = chunked(tmp_path / "c.loopscope", steps=100)
    result = loopscope.drift(left, right, alignment=Alignment())
    assert result.first is None
    assert sorted(len(pair.rows.left) for pair in result.pairs) == [1, 2, 100]


def test_a_wrong_cast_of_beta_is_placed(tmp_path: Path) -> None:
    left = sequential(tmp_path / "s.loopscope")
    wrong = sequential(
        tmp_path / "w.loopscope",
        lambda beta: np.float64(ml_dtypes.bfloat16(beta)) if beta > 0.8 else beta,
    )
    first = int(np.flatnonzero(BETA > 0.8)[0])
    result = loopscope.drift(left, wrong, tolerance=1e-5)
    assert result.first is not None
    assert result.first.first is not None
    assert result.first.first.address == f"main/delta[{first}]/body/beta"


def test_a_trace_is_compared_with_a_model(tmp_path: Path) -> None:
    """By requested names, and without them by correlation."""
    inputs = linear_attention.inputs(40, seed=2)
    model = loopscope.Debugger(
        loopscope.read_model(FOLDER / "linear_attention" / "model.xml"), inputs
    )
    model.run()

    def kernel(path: Path, wrong_step: int | None) -> loopscope.Debugger:
        state = inputs["state"].copy()
        with loopscope.trace(path) as trace:
            for step in trace.iterations("decode", range(40)):
                query, key, value = (inputs[name][:, :, step] for name in ("query", "key", "value"))
                state = state * np.exp(inputs["g"][:, :, step])[..., None, None]
                memory = (state * key[..., None]).sum(-2)
                beta = inputs["beta"][:, :, step] * (1.01 if step == wrong_step else 1)
                delta = (value - memory) * beta[..., None].astype(np.float32)
                state = state + key[..., None] * delta[..., None, :]
                output = (state * (query / np.sqrt(np.float32(8)))[..., None]).sum(
                    -2, keepdims=True
                )
                trace.record(kernel_state=state, kernel_output=output)
        return shown(path)

    pairs = RequestedPair.parse("decode=main/for_each_token; kernel_state=S")
    for requested in (pairs, ()):
        right = kernel(tmp_path / "right.loopscope", None)
        result = loopscope.drift(right, model, pairs=requested)
        assert {(pair.one, pair.other) for pair in result.pairs} == {
            ("main/decode/body/kernel_state", "main/for_each_token/body/new_state"),
            ("main/decode/body/kernel_output", "main/for_each_token/body/out"),
        }
        assert result.first is None
        wrong = kernel(tmp_path / "wrong.loopscope", 17)
        result = loopscope.drift(wrong, model, pairs=requested)
        assert result.first is not None
        assert result.first.first is not None
        assert result.first.first.iteration == 17


def test_the_first_other_token_of_logits_in_a_loop(tmp_path: Path) -> None:
    def logits(path: Path, token: int) -> loopscope.Debugger:
        with loopscope.trace(path) as trace:
            for step in trace.iterations("decode", range(20)):
                values = np.sin(np.arange(30) * (step + 1))
                values[3] += 9 if step >= token else 0
                trace.record(logits=values)
        return shown(path)

    result = loopscope.drift(
        logits(tmp_path / "a.loopscope", 99), logits(tmp_path / "b.loopscope", 12)
    )
    assert result.choice == "The largest logit is another one from token 12 on."


def test_rows_that_a_side_lacks_and_samples_beside_whole_values(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).standard_normal((8, 500))

    def recorded(path: Path, budget: float, error: float) -> loopscope.Debugger:
        with loopscope.trace(path, budget=budget) as trace:
            for step in trace.iterations("loop", range(8)):
                row = rows[step].copy()
                row[-1] += error if step == 6 else 0
                if step % 2 == 0:
                    trace.record(x=row)
        return shown(path)

    whole = recorded(tmp_path / "a.loopscope", 1, 0)
    sampled = recorded(tmp_path / "b.loopscope", 0, 0.5)
    result = loopscope.drift(whole, sampled)
    assert [len(pair.rows.left) for pair in result.pairs] == [4]
    assert result.first is not None
    assert result.first.first is not None
    assert result.first.first.address == "main/loop[6]/body/x"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: RequestedPair.parse("state"), "'state' is not a pair"),
        (lambda: Alignment.parse("64"), "'64' is not an alignment"),
        (lambda: Alignment.parse("2:3"), "'2:3' is not an alignment"),
        (lambda: Alignment.parse("0:1"), "'0:1' is not an alignment"),
    ],
)
def test_what_is_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_a_request_that_matches_nothing_is_refused(tmp_path: Path) -> None:
    run = sequential(tmp_path / "s.loopscope", steps=3)
    with pytest.raises(InputError, match="'state' in the first and 'nothing' in the second"):
        loopscope.drift(run, run, pairs=RequestedPair.parse("state=nothing"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("delta_rule_in_chunks", "All 2,416 values agree"),
        (
            "delta_rule_wrong_border",
            "Begins in `for_each_token` in chunk 1 (steps 64 to 127) in `next_state`; `out` differs",
        ),
    ],
)
@pytest.mark.parametrize("alignment", ["64:1", "auto"])
def test_models_in_chunks_beside_a_sequential_one(name: str, expected: str, alignment: str) -> None:
    inputs = np.load(FOLDER / "delta_rule" / "inputs" / "two_hundred_tokens.npz")
    runs = [
        loopscope.Debugger(loopscope.read_model(FOLDER / each / "model.xml"), dict(inputs))
        for each in ("delta_rule", name)
    ]
    for run in runs:
        run.run()
    result = loopscope.drift(*runs, alignment=Alignment.parse(alignment))
    assert result.sentence.startswith(expected)
    states = next(pair for pair in result.pairs if pair.one.endswith("/body/state"))
    assert states.rows.left.tolist() == [0, 64, 128, 192], "states are received at chunk starts"
