"""Programs of TensorFlow with While and If, each with what it takes, and how they are saved."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import tensorflow as tf

N, VECTOR = tf.TensorSpec([], tf.int64, "n"), tf.TensorSpec([4], tf.float32, "x")


@tf.function(input_signature=[N, VECTOR])
def tf_doubling(n, x):
    """Doubles x n times."""
    n, x = tf.while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2), (n, x))
    return {"n_end": n, "x_end": x}


@tf.function(input_signature=[N, VECTOR])
def tf_choosing(n, x):
    """Doubles what is positive n times; takes 1 from what is not."""
    chosen = tf.cond(
        tf.reduce_sum(x) > 0,
        lambda: tf.while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2), (n, x))[1],
        lambda: x - 1,
    )
    return {"chosen": chosen}


@tf.function(input_signature=[N, VECTOR])
def tf_nested(n, x):
    """Counts down; where n is even adds n ones, one by one, else doubles."""

    def added(n, x):
        return tf.while_loop(
            lambda i, x: i < n, lambda i, x: (i + 1, x + 1), (tf.zeros_like(n), x)
        )[1]

    def body(n, x):
        return n - 1, tf.cond(n % 2 == 0, partial(added, n, x), lambda: x * 2)

    n, x = tf.while_loop(lambda n, x: n > 0, body, (n, x))
    return {"n_end": n, "x_end": x}


def tf_plain(n, x):
    """As ``tf_doubling``, for autograph to make a loop of."""
    while n > 0:
        n, x = n - 1, x * 2
    return {"n_end": n, "x_end": x}


def tf_switched(n, x):
    """One of three, and a loop beside it."""
    n, doubled = tf.while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2), (n, x))
    return {
        "x_end": tf.switch_case(
            tf.cast(n, tf.int32), [lambda: doubled + 1, lambda: doubled - 1, lambda: doubled]
        )
    }


PROGRAMS = {"tf_doubling": tf_doubling, "tf_choosing": tf_choosing, "tf_nested": tf_nested}


def save(name: str, folder: Path) -> None:
    """As a SavedModel."""
    tf.saved_model.save(tf.Module(), str(folder), signatures=PROGRAMS[name])


def concrete():
    """A concrete function, for a command line that names it."""
    return tf_doubling.get_concrete_function()
