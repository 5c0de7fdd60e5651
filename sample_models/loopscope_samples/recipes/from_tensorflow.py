"""Samples exported from TensorFlow and Keras: saved models, converted by OpenVINO."""

from __future__ import annotations

import tempfile

import numpy as np
import openvino as ov
import tensorflow as tf
from openvino._offline_transformations import apply_moc_transformations

from loopscope_samples.recipes.names import renumbered
from loopscope_samples.recipes.recipe import Recipe

LENGTHS = {"five_steps": 5, "two_steps": 2, "one_step": 1}


class Gcd(tf.Module):
    @tf.function(
        input_signature=[
            tf.TensorSpec([], tf.int64, name="a"),
            tf.TensorSpec([], tf.int64, name="b"),
        ]
    )
    def __call__(self, a, b):
        def not_done(larger, smaller, steps):
            return tf.not_equal(smaller, 0, name="not_done")

        def divide(larger, smaller, steps):
            return (
                smaller,
                tf.math.floormod(larger, smaller, name="remainder"),
                tf.add(steps, 1, name="count"),
            )

        divisor, _, steps = tf.while_loop(
            not_done, divide, (a, b, tf.constant(0, tf.int64, name="no_steps")), name="euclid"
        )
        return {"divisor": divisor, "steps": steps}


class SignedRoots(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="values")])
    def __call__(self, values):
        def root(value):
            return tf.cond(
                value > 0,
                lambda: tf.sqrt(value, name="root"),
                lambda: tf.multiply(value, 0.1, name="shrink"),
                name="positive",
            )

        return {"roots": tf.map_fn(root, values, name="each")}


def recipes() -> list[Recipe]:
    return [_gcd(), _map(), _keras_gru()]


def _gcd() -> Recipe:
    sets = {
        "coins": {"a": np.int64(240), "b": np.int64(46)},
        "golden": {"a": np.int64(89), "b": np.int64(55)},
        "nothing_to_do": {"a": np.int64(12), "b": np.int64(0)},
    }
    return Recipe("gcd", _converted(Gcd()), sets)


def _map() -> Recipe:
    sets = {
        "four_values": {"values": np.array([4, -4, 9, -0.5], np.float32)},
        "all_positive": {"values": np.array([1, 16], np.float32)},
        "one_negative": {"values": np.array([-10], np.float32)},
    }
    return Recipe("map_with_cond", _converted(SignedRoots()), sets)


def _keras_gru() -> Recipe:
    tf.keras.utils.set_random_seed(11)
    sequence = tf.keras.Input((None, 3), batch_size=1, name="sequence")
    gru = tf.keras.layers.GRU(4, return_sequences=True, name="gru")
    network = tf.keras.Model(sequence, {"states": gru(sequence)}, name="network")
    with tempfile.TemporaryDirectory() as folder:
        network.export(folder, verbose=False)
        model = ov.convert_model(folder)
    draw = np.random.default_rng(5).normal
    sets = {
        name: {"sequence": draw(0, 1, (1, length, 3)).astype(np.float32)}
        for name, length in LENGTHS.items()
    }
    return Recipe("keras_gru", _tidy(model), sets)


def _converted(module: tf.Module) -> ov.Model:
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=module.__call__)
        return _tidy(ov.convert_model(folder))


def _tidy(model: ov.Model) -> ov.Model:
    apply_moc_transformations(model, cf=True)
    return renumbered(model)
