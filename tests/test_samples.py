"""Every sample on every input set: our engine against OpenVINO, and the catalogue against the
files.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

import loopscope
import loopscope_samples
from loopscope.ir.address import graphs
from loopscope.ir.equal import difference
from loopscope.timeline.timeline import ControlFlowRecord
from loopscope_samples import SECTIONS, InputSet, Sample, Size, make, sample_traces, samples
from loopscope_samples.recipes import (
    by_hand,
    data_sets,
    decoders,
    recorded,
    savings,
    seed_page,
    training,
)
from loopscope_samples.recipes.recipe import Recipe

CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
SAMPLES = {sample.name: sample for sample in samples()}
BUILT = [
    one
    for source in (by_hand, decoders, savings, seed_page)
    for one in source.recipes()
    if isinstance(one.model, loopscope.Model)
]
RUNS = [
    pytest.param(sample, chosen, id=f"{sample.name}-{chosen.name}")
    for sample in samples()
    for chosen in sample.sets
    if not chosen.never_ends and not chosen.openvino_differs
]


def _openvinos(sample: Sample, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Compiled afresh: OpenVINO keeps results of an earlier run when a loop runs zero times."""
    core = ov.Core()
    compiled = core.compile_model(core.read_model(sample.model), "CPU", CONFIG)
    request = compiled.create_infer_request()
    request.infer({name: ov.Tensor(array) for name, array in inputs.items()})
    return {
        port.get_any_name(): np.array(request.get_output_tensor(index).data)
        for index, port in enumerate(compiled.outputs)
    }


def _iterations(sample: Sample, outputs: Mapping[str, np.ndarray]) -> int:
    assert sample.count is not None
    output = outputs[sample.count.output]
    return (
        int(output)
        if sample.count.read == "value"
        else output.shape[sample.count.axis] + sample.count.offset
    )


def _record(result: loopscope.Result, address: str) -> ControlFlowRecord:
    return next(record for record in result.control_flow if record.address == address)


@pytest.mark.parametrize(("sample", "chosen"), RUNS)
def test_sample_agrees_with_openvino(sample: Sample, chosen: InputSet) -> None:
    inputs = chosen.arrays()
    result = loopscope.run(loopscope.read_model(sample.model), inputs)
    expected = _openvinos(sample, inputs)
    assert len(result.outputs) == len(expected)
    for name, theirs in expected.items():
        ours = result.named[name]
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), name
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)
    if sample.count is not None:
        assert _record(result, sample.address).iterations == _iterations(sample, expected)


@pytest.mark.parametrize("sample", samples(), ids=SAMPLES)
def test_input_sets_take_different_ways(sample: Sample) -> None:
    model = loopscope.read_model(sample.model)
    ways = set()
    for chosen in sample.sets:
        if not chosen.never_ends:
            record = _record(loopscope.run(model, chosen.arrays()), sample.address)
            ways.add((record.iterations, record.branch))
    assert len(ways) >= 2


@pytest.mark.parametrize("sample", samples(), ids=SAMPLES)
def test_question_has_an_answer(sample: Sample) -> None:
    question = sample.question
    chosen = next(one for one in sample.sets if one.name == question.inputs)
    record = _record(
        loopscope.run(loopscope.read_model(sample.model), chosen.arrays()), question.address
    )
    answer = {
        "iterations": record.iterations,
        "ended_by": record.ended_by,
        "branch": record.branch,
    }[question.asks]
    assert answer is not None


@pytest.mark.parametrize(
    ("name", "chosen", "answer"),
    [
        ("decoder", "sure_sentence", (5, "condition")),
        ("decoder", "repeats_itself", (8, "trip_count")),
        ("collatz", "three", (7, "condition")),
        ("collatz", "seventeen", (12, "condition")),
        ("while_loop", "already_there", (0, "initial_condition")),
        ("do_while_loop", "already_there", (1, "condition")),
        ("for_loop", "no_years", (0, "zero_trip_count")),
        ("for_loop", "three_years", (3, "trip_count")),
        ("for_loop_with_condition", "years_first", (4, "trip_count")),
        ("lstm_melody", "from_note_5", (10, "condition")),
        ("lstm_melody", "from_note_3", (10, "trip_count")),
        ("walking_backwards", "prize_at_the_end", (5, "slices_exhausted")),
        ("zero_iterations", "condition_false", (0, "initial_condition")),
    ],
)
def test_why_it_ended(name: str, chosen: str, answer: tuple[int, str]) -> None:
    sample = SAMPLES[name]
    inputs = next(one for one in sample.sets if one.name == chosen).arrays()
    record = _record(loopscope.run(loopscope.read_model(sample.model), inputs), sample.address)
    assert (record.iterations, record.ended_by) == answer


def test_only_a_limit_stops_what_never_ends() -> None:
    sample = SAMPLES["infinite_loop"]
    endless = next(chosen for chosen in sample.sets if chosen.never_ends)
    with pytest.raises(loopscope.RunStopped) as stopped:
        loopscope.run(
            loopscope.read_model(sample.model),
            endless.arrays(),
            limits=loopscope.Limits(iterations=1000),
        )
    record = _record(stopped.value.result, sample.address)
    assert (record.iterations, record.ended_by) == (1000, "limit")


def test_nan_is_born_where_the_lesson_says() -> None:
    sample = SAMPLES["diverging_training"]
    too_fast, careful = (
        loopscope.run(loopscope.read_model(sample.model), chosen.arrays()).named["losses"]
        for chosen in sample.sets
    )
    assert np.isfinite(careful).all()
    assert np.isinf(too_fast).nonzero()[0].tolist() == [4, 5]
    assert np.isnan(too_fast).nonzero()[0].tolist() == [6, 7]


def test_training_follows_the_true_gradient() -> None:
    """Of the fourth power: four times the third, as the graph that was made of the loss computes
    it, in every iteration.
    """
    sample = SAMPLES["diverging_training"]
    for chosen in sample.sets:
        run = loopscope.Debugger(loopscope.read_model(sample.model), chosen.arrays())
        run.run()
        rate = np.float64(chosen.arrays()["learning_rate"])
        for iteration in range(4):
            place = f"{sample.address}[{iteration}]/body/"
            weight, change = (np.float64(run.value(place + name)) for name in ("weight", "change"))
            np.testing.assert_allclose(change, rate * 4 * weight**3, rtol=1e-6)


@pytest.mark.parametrize("recipe", BUILT, ids=[recipe.name for recipe in BUILT])
def test_what_the_builder_makes_is_what_lies_there(recipe: Recipe) -> None:
    sample = SAMPLES[recipe.name]
    assert isinstance(recipe.model, loopscope.Model)
    assert difference(recipe.model, loopscope.read_model(sample.model)) == ""
    for chosen in sample.sets:
        made, there = recipe.sets[chosen.name], chosen.arrays()
        assert made.keys() == there.keys()
        for name, array in made.items():
            np.testing.assert_array_equal(array, there[name], err_msg=f"{chosen.name}: {name}")


@pytest.mark.parametrize("recipe", training.recipes(), ids=lambda one: str(one.name))
def test_what_lies_there_computes_what_its_recipe_does(recipe: Recipe) -> None:
    """How a gradient is computed may change; what it is may not."""
    sample = SAMPLES[recipe.name]
    assert isinstance(recipe.model, loopscope.Model)
    for chosen in sample.sets:
        made, there = (
            loopscope.run(model, recipe.sets[chosen.name])
            for model in (recipe.model, loopscope.read_model(sample.model))
        )
        assert made.named.keys() == there.named.keys()
        for name, array in made.named.items():
            np.testing.assert_allclose(
                there.named[name], array, rtol=1e-6, atol=1e-12, err_msg=f"{chosen.name}: {name}"
            )


@pytest.mark.parametrize(
    ("name", "chosen", "output", "expected"),
    [
        (
            "gated_memory",
            "gate_half_open",
            "gradient of loss with respect to weight",
            -(0.5**30) * (1 - np.tanh(1) ** 2),
        ),
        ("exploding_gradient", "stays", "gradient", -29.0),
        ("exploding_gradient", "short", "gradient", (1.5**3 - 2) * 3 * 1.5**2),
        ("branch_not_taken", "warm", "gradient of loss with respect to cold_weight", 0.0),
        (
            "branch_not_taken",
            "cold",
            "gradient of loss with respect to cold_weight",
            -2 * (-0.5 - 1),
        ),
        (
            "truncated_training",
            "one_sound_long_ago",
            "gradient of loss with respect to learning_weight",
            0.0,
        ),
        (
            "truncated_training",
            "one_sound_long_ago",
            "gradient of loss with respect to weight",
            (0.9**19 - 20) * 0.9**19,
        ),
    ],
)
def test_gradients_of_the_samples_of_training(
    name: str, chosen: str, output: str, expected: float
) -> None:
    sample = SAMPLES[name]
    inputs = next(one for one in sample.sets if one.name == chosen).arrays()
    np.testing.assert_allclose(
        loopscope.run(loopscope.read_model(sample.model), inputs).named[output],
        expected,
        rtol=1e-5,
        atol=0,
    )


def test_the_sample_traces_are_what_their_recipe_records(tmp_path: Path) -> None:
    recorded.write(tmp_path)
    for trace in sample_traces():
        # The blocks of the files depend on the time between two values, their content does not.
        # Another processor sums matrix products of f32 in another order: 1.4e-7 was measured.
        again = loopscope.load(tmp_path / trace.model.name)
        assert loopscope.drift(loopscope.load(trace.model), again, tolerance=1e-5).first is None
        assert trace.model.stat().st_size < 300_000
        assert trace.card.endswith(".")
        assert len(trace.card) <= 140
    kernel, reference = (loopscope.load(trace.model) for trace in sample_traces())
    assert loopscope.drift(kernel, reference).sentence == (
        "Begins in `decode` at iteration 64 in `state`; then fades to 0.00049. "
        "The largest logit is another one at 1 of 200 tokens, first at token 91."
    )


FRAMEWORKS = ("openvino", "onnx", "torch", "tensorflow")


def _make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: list[str], absent: tuple[str, ...]
) -> set[str]:
    """The samples that were written, on a machine without these modules."""
    for name in absent:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [one for one in sys.modules if one.startswith("loopscope_samples.recipes.from_")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(make, "HERE", tmp_path)
    try:
        make.main(wanted)
    finally:
        written = {path.parent.name for path in tmp_path.glob("*/model.xml")}
    return written


@pytest.mark.parametrize("name", [recipe.name for recipe in BUILT])
def test_samples_of_the_builder_are_made_without_any_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert _make(tmp_path, monkeypatch, [name], FRAMEWORKS) == {name}
    assert (
        difference(
            loopscope.read_model(tmp_path / name / "model.xml"),
            loopscope.read_model(SAMPLES[name].model),
        )
        == ""
    )


@pytest.mark.parametrize(
    ("wanted", "absent", "sentence"),
    [
        (
            ["collatz", "gcd"],
            ("torch", "tensorflow"),
            "found for collatz, gcd; from_pytorch needs torch, which is not installed: pip install torch; ",
        ),
        (
            ["walking_backwards"],
            FRAMEWORKS,
            "from_openvino needs openvino, which is not installed: pip install openvino",
        ),
        (["for_loop", "nothing"], FRAMEWORKS, "no recipe was found for nothing; "),
        (
            [],
            FRAMEWORKS,
            "from_openvino needs openvino, .*; from_onnx needs .*; from_pytorch needs .*; from_tensorflow needs ",
        ),
    ],
)
def test_a_framework_or_a_name_that_is_missing_is_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wanted: list[str],
    absent: tuple[str, ...],
    sentence: str,
) -> None:
    with pytest.raises(SystemExit, match=sentence):
        _make(tmp_path, monkeypatch, wanted, absent)


@pytest.mark.parametrize("name", ["decoder", "early_exit"])
def test_data_sets_are_what_their_recipes_make_and_run(name: str) -> None:
    data = SAMPLES[name].data
    assert data is not None
    made = {"decoder": data_sets.decoder, "early_exit": data_sets.early_exit}[name]()
    with np.load(data) as stored:
        assert {key: stored[key].dtype for key in stored.files} == {
            key: np.asarray(array).dtype for key, array in made.items()
        }
        for key, array in made.items():
            np.testing.assert_array_equal(stored[key], array)
    sweep = loopscope.sweep(loopscope.read_model(SAMPLES[name].model), data, workers=1)
    summary = sweep.run()
    assert (summary.rows, summary.failed, summary.never_taken) == (2000, 0, ())


def test_catalogue_and_folders_name_the_same_samples() -> None:
    folder = Path(loopscope_samples.__file__).parents[1]
    assert {path.parent.name for path in folder.glob("*/model.xml")} == set(SAMPLES)
    for sample in samples():
        assert sample.model.with_suffix(".bin").exists()
        assert {path.stem for path in (sample.model.parent / "inputs").glob("*.npz")} == {
            chosen.name for chosen in sample.sets
        }


@pytest.mark.parametrize("sample", samples(), ids=SAMPLES)
def test_catalogue_texts(sample: Sample) -> None:
    assert sample.title
    assert sample.card.endswith(".")
    assert sample.card.count(". ") == 0
    assert len(sample.card) <= 140, "one line of a list"
    assert set(sample.patterns) <= {
        "while",
        "do-while",
        "for",
        "slices",
        "if",
        "if in a loop",
        "loop in a loop",
    }
    assert sample.patterns
    assert sample.source in ("Python", "PyTorch", "TensorFlow", "ONNX", "OpenVINO")
    assert sample.teaches
    assert 2 <= sum(sample.lesson.count(mark) for mark in (". ", "? ", ".\n")) + 1 <= 4
    assert sample.question.text.endswith("?")
    assert sample.question.asks in ("iterations", "ended_by", "branch")
    assert len(sample.sets) >= 2
    assert all(chosen.text.endswith(".") for chosen in sample.sets)
    assert all(pitfall.endswith(".") for pitfall in sample.pitfalls)


@pytest.mark.parametrize("sample", samples(), ids=SAMPLES)
def test_input_sets_name_the_models_inputs(sample: Sample) -> None:
    inputs = {signature.name: signature for signature in loopscope.read_model(sample.model).inputs}
    for chosen in sample.sets:
        arrays = chosen.arrays()
        assert arrays.keys() == inputs.keys()
        for name, array in arrays.items():
            element_type = inputs[name].element_type
            assert element_type is not None
            assert array.dtype == element_type.dtype
            assert inputs[name].shape.contains(array.shape)


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)
def test_the_counts_of_a_card_are_those_of_the_file(sample: Sample) -> None:
    nodes = [
        node
        for place in graphs(loopscope.read_model(sample.model))
        for node in place.graph.nodes
        if node.type not in ("Parameter", "Result", "Const")
    ]
    loops, ifs = sum(node.is_loop for node in nodes), sum(node.type == "If" for node in nodes)
    assert sample.counts == Size(len(nodes), loops, ifs)


def test_every_section_has_samples_and_three_are_to_start_with() -> None:
    assert [sample.section for sample in samples()].count(SECTIONS[0]) == 3
    assert {sample.section for sample in samples()} == set(SECTIONS)
