"""Decoders with an early stop: a table of words with a confidence gate, and an LSTM that hums a melody."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from sample_models.recipes.blocks import Iteration, branch, called, constant, model, parameter
from sample_models.recipes.recipe import Recipe

END, THE, CAT, SAW, A, DOG, VERY, SMALL = range(8)
WORDS = (".", "the", "cat", "saw", "a", "dog", "very", "small")

NOTES, HEARD, MEMORY, MELODY_SEED = 6, 3, 4, 35


def recipes() -> list[Recipe]:
    return [_decoder_recipe(), _melody_recipe()]


def _decoder_recipe() -> Recipe:
    def say(word: int, least: float, most: int) -> dict[str, np.ndarray]:
        return {"first_word": np.int64(word), "least_confidence": np.float32(least), "most_words": np.int64(most)}

    sets = {
        "sure_sentence": say(THE, 0.3, 12),
        "loses_confidence": say(THE, 0.5, 12),
        "repeats_itself": say(VERY, 0.3, 8),
        "one_word": say(DOG, 0.3, 12),
    }
    return Recipe("decoder", _decoder(), sets)


def _decoder() -> ov.Model:
    """A sentence, word after word: the likeliest next word, or the full stop when the model is not confident enough."""
    first, least, most = parameter("first_word", "i64"), parameter("least_confidence", "f32"), parameter("most_words", "i64")
    loop = Iteration("for_each_word", most, constant("start", True))
    word = loop.carried("word", first)
    sentence = loop.carried("sentence_probability", constant("certain", 1.0, np.float32))
    bar = loop.invariant("least_confidence", least)

    scores = called("scores_of_next_word", ops.gather(constant("language", _language()), word, constant("row", 0, np.int64)))
    best = ops.topk(scores, constant("one", 1, np.int64), 0, "max", "value", index_element_type="i64")
    best.set_friendly_name("best_word")
    confident = called("is_confident", ops.greater_equal(best.output(0), bar))

    likely, number = parameter("probability", "f32", [1]), parameter("word", "i64", [1])
    say = model("say_the_word", {"said_word": number, "said_probability": likely}, [number, likely])
    stop = model(
        "say_full_stop",
        {"full_stop_word": constant("full_stop", [END], np.int64), "full_stop_probability": constant("sure", [1.0], np.float32)},
        [],
    )
    chosen, probability = branch(
        "confident_enough", confident, say, stop, [(best.output(1), "word", None), (best.output(0), "probability", None)]
    )

    scalar = constant("to_scalar", [0], np.int64)
    next_word = called("next_word", ops.squeeze(chosen, scalar))
    total = called("next_sentence_probability", ops.multiply(sentence, ops.squeeze(probability, scalar, name="word_probability")))
    keep_going = called("keep_going", ops.not_equal(next_word, constant("end_of_sentence", END, np.int64)))
    loop.body(keep_going, {"word": next_word, "sentence_probability": total}, {"words": chosen})
    outputs = {"words": loop.concatenated("words"), "sentence_probability": loop.last("next_sentence_probability")}
    return model("decoder", outputs, [first, least, most])


def _language() -> np.ndarray:
    """Probability of the next word (column) after each word (row); what is left over is spread over the other words."""
    likely = {
        END: {THE: 0.7},
        THE: {CAT: 0.62, DOG: 0.2},
        CAT: {SAW: 0.55, END: 0.25},
        SAW: {A: 0.7, THE: 0.2},
        A: {DOG: 0.42, CAT: 0.3},
        DOG: {END: 0.8},
        VERY: {VERY: 0.6, SMALL: 0.3},
        SMALL: {DOG: 0.5, CAT: 0.3},
    }
    table = np.zeros((len(WORDS), len(WORDS)), np.float32)
    for word, following in likely.items():
        others = [other for other in range(len(WORDS)) if other not in following]
        table[word, others] = (1 - sum(following.values())) / len(others)
        for other, probability in following.items():
            table[word, other] = probability
    return table


def _melody_recipe() -> Recipe:
    sets = {f"from_note_{note}": {"first_note": np.array([note]), "breath": np.int64(10)} for note in range(1, NOTES)}
    return Recipe("lstm_melody", _melody(), sets)


def _melody() -> ov.Model:
    """Each note is the next step's input, until the closing note (0) comes or the breath is used up."""
    first, breath = parameter("first_note", "i64", [1]), parameter("breath", "i64")
    loop = Iteration("while_it_sings", breath, constant("start", True))
    nothing = constant("empty_memory", np.zeros((1, MEMORY)), np.float32)
    note, hidden, cell = loop.carried("note", first), loop.carried("hidden", nothing), loop.carried("cell", nothing)
    draw = np.random.default_rng(MELODY_SEED).normal
    weights = {
        name: constant(name, draw(0, 2, shape), np.float32)
        for name, shape in {
            "notes": (NOTES, HEARD),
            "input_weights": (4 * MEMORY, HEARD),
            "memory_weights": (4 * MEMORY, MEMORY),
            "biases": (4 * MEMORY,),
            "score_weights": (NOTES, MEMORY),
        }.items()
    }
    heard = called("heard_note", ops.gather(weights["notes"], note, constant("row", 0, np.int64)))
    memory = ops.lstm_cell(heard, hidden, cell, weights["input_weights"], weights["memory_weights"], weights["biases"], MEMORY)
    memory.set_friendly_name("memory")
    scores = called("note_scores", ops.matmul(memory.output(0), weights["score_weights"], False, True))
    best = ops.topk(scores, constant("one", 1, np.int64), 1, "max", "value", index_element_type="i64")
    best.set_friendly_name("best_note")
    next_note = called("next_note", ops.squeeze(best.output(1), constant("to_vector", [1], np.int64)))
    keep_going = called("keep_going", ops.not_equal(next_note, constant("closing_note", [0], np.int64)))
    loop.body(keep_going, {"note": next_note, "hidden": memory.output(0), "cell": memory.output(1)})
    outputs = {"melody": loop.concatenated("next_note"), "last_hidden": loop.last("next_hidden")}
    return model("lstm_melody", outputs, [first, breath])
