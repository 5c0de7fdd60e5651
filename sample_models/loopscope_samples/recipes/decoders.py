"""Decoders with an early stop: a table of words with a confidence gate, and an LSTM that hums a
melody.
"""

from __future__ import annotations

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import Collected, Graph, Tensor, ops
from loopscope_samples.recipes import data_sets
from loopscope_samples.recipes.recipe import InputSet, Recipe

END, THE, CAT, SAW, A, DOG, VERY, SMALL = range(8)
WORDS = (".", "the", "cat", "saw", "a", "dog", "very", "small")

NOTES, HEARD, MEMORY, MELODY_SEED = 6, 3, 4, 35


def recipes() -> list[Recipe]:
    return [_decoder_recipe(), _melody_recipe()]


def _decoder_recipe() -> Recipe:
    def say(word: int, least: float, most: int) -> InputSet:
        return {
            "first_word": np.int64(word),
            "least_confidence": np.float32(least),
            "most_words": np.int64(most),
        }

    sets = {
        "sure_sentence": say(THE, 0.3, 12),
        "loses_confidence": say(THE, 0.5, 12),
        "repeats_itself": say(VERY, 0.3, 8),
        "one_word": say(DOG, 0.3, 12),
    }
    return Recipe("decoder", _decoder(), sets, data_sets.decoder())


def _decoder() -> loopscope.Model:
    """A sentence, word after word: the likeliest next word, or the full stop when the model is
    not confident enough.
    """
    graph = Graph("decoder")
    first_word = graph.parameter("first_word", "i64", [])
    least_confidence = graph.parameter("least_confidence", "f32", [])
    most_words = graph.parameter("most_words", "i64", [])
    words = Collected("words")

    def say(word: Tensor, sentence_probability: Tensor) -> tuple[Tensor, Tensor]:
        language = graph.constant(_language(), name="language")
        scores = ops.gather(language, word, 0, name="scores_of_next_word")
        probability, likeliest = ops.topk(
            scores, 1, axis=0, mode="max", sort="value", index_element_type="i64", name="best_word"
        )
        confident = ops.greater_equal(probability, least_confidence, name="is_confident")
        chosen, probability = builder.cond(
            confident,
            lambda: (likeliest, probability),
            lambda: (graph.constant([END], name="full_stop"), graph.constant([1.0], name="sure")),
            name="confident_enough",
        )
        words.extend(chosen)
        next_word = ops.squeeze(chosen, [0], name="next_word")
        word_probability = ops.squeeze(probability, [0], name="word_probability")
        return next_word, ops.multiply(
            sentence_probability, word_probability, name="next_sentence_probability"
        )

    def is_unfinished(word: Tensor, sentence_probability: Tensor) -> Tensor:
        return ops.not_equal(word, graph.constant(END, name="end_of_sentence"), name="keep_going")

    start = (first_word, graph.constant(1.0, name="certain"))
    _, probability = builder.do_while(
        is_unfinished, say, start, maximum_iterations=most_words, name="for_each_word"
    )
    return graph.model({"words": words.tensor, "sentence_probability": probability})


def _language() -> np.ndarray:
    """Probability of the next word (column) after each word (row); what is left over is spread
    over the other words.
    """
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
    sets = {
        f"from_note_{note}": {"first_note": np.array([note]), "breath": np.int64(10)}
        for note in range(1, NOTES)
    }
    return Recipe("lstm_melody", _melody(), sets)


def _melody() -> loopscope.Model:
    """Each note is the next step's input, until the closing note (0) comes or the breath is used
    up.
    """
    graph = Graph("lstm_melody")
    first_note, breath = (
        graph.parameter("first_note", "i64", [1]),
        graph.parameter("breath", "i64", []),
    )
    nothing = graph.constant(np.zeros((1, MEMORY), np.float32), name="empty_memory")
    draw = np.random.default_rng(MELODY_SEED).normal
    weights = {
        name: draw(0, 2, shape).astype(np.float32)
        for name, shape in {
            "notes": (NOTES, HEARD),
            "input_weights": (4 * MEMORY, HEARD),
            "memory_weights": (4 * MEMORY, MEMORY),
            "biases": (4 * MEMORY,),
            "score_weights": (NOTES, MEMORY),
        }.items()
    }
    melody = Collected("melody")

    def sing(note: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        notes, into_cell, memory_weights, biases, score_weights = (
            graph.constant(array, name=name) for name, array in weights.items()
        )
        heard = ops.gather(notes, note, 0, name="heard_note")
        hidden, cell = ops.lstm_cell(
            heard,
            hidden,
            cell,
            into_cell,
            memory_weights,
            biases,
            hidden_size=MEMORY,
            name="memory",
        )
        scores = ops.matmul(hidden, score_weights, transpose_b=True, name="note_scores")
        _, best = ops.topk(
            scores, 1, axis=1, mode="max", sort="value", index_element_type="i64", name="best_note"
        )
        next_note = ops.squeeze(best, [1], name="next_note")
        melody.extend(next_note)
        return next_note, hidden, cell

    def sings_on(note: Tensor, hidden: Tensor, cell: Tensor) -> Tensor:
        return ops.not_equal(note, graph.constant([0], name="closing_note"), name="keep_going")

    start = (first_note, nothing, nothing)
    _, hidden, _ = builder.do_while(
        sings_on, sing, start, maximum_iterations=breath, name="while_it_sings"
    )
    return graph.model({"melody": melody.tensor, "last_hidden": hidden})
