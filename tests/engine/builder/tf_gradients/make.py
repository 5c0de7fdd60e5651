"""Writes the graphs and tf.gradients' answers anew: ``python -m
tests.engine.builder.tf_gradients.make``, with TensorFlow 2.21.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf  # not needed to run the tests, only to make their table anew

from tests.engine.builder.tf_gradients import CASES, FOLDER, TABLE, arguments

v1 = tf.compat.v1


def while_v1(x: Any, w: Any) -> Any:
    """Switch, Merge and the like, as TensorFlow 1 had it."""
    _, last = v1.while_loop(
        lambda i, h: i < 4, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) + x)), (tf.constant(0), x)
    )
    return tf.reduce_sum(last * last)


def while_v2(x: Any, w: Any) -> Any:
    _, last = tf.while_loop(
        lambda i, h: tf.reduce_sum(h * h) < 40.0,
        lambda i, h: (i + 1, h * 1.5 + tf.matmul(x, w)),
        (tf.constant(0), x),
    )
    return tf.reduce_sum(tf.sin(last))


def cond_in_while(x: Any, w: Any) -> Any:
    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.cond(
            tf.reduce_sum(h) > 2.0, lambda: h * 0.5, lambda: tf.matmul(h, w) + x * 1.5
        )

    _, last = tf.while_loop(lambda i, h: i < 5, body, (tf.constant(0), x))
    return tf.reduce_sum(last * last)


def two_loops_and_a_weight(x: Any, w: Any) -> Any:
    _, first = tf.while_loop(
        lambda i, h: i < 3, lambda i, h: (i + 1, tf.sigmoid(tf.matmul(h, w))), (tf.constant(0), x)
    )
    _, second = tf.while_loop(
        lambda i, h: i < 2,
        lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w) * first)),
        (tf.constant(0), first),
    )
    return tf.reduce_sum(second) + tf.reduce_sum(first * first)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    one.__name__: one for one in (while_v1, while_v2, cond_in_while, two_loops_and_a_weight)
}


def record(name: str) -> list[np.ndarray]:
    """Writes the graph without gradients, and gives those of x and w."""
    (v1.disable_control_flow_v2 if name == "while_v1" else v1.enable_control_flow_v2)()
    feeds = arguments()
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        x, w = (v1.placeholder(tf.float32, array.shape, name=key) for key, array in feeds.items())
        loss = tf.identity(FUNCTIONS[name](x, w), name="loss")
        (FOLDER / f"{name}.pb").write_bytes(graph.as_graph_def().SerializeToString())
        found: list[np.ndarray] = session.run(
            v1.gradients(loss, [x, w]), {x: feeds["x"], w: feeds["w"]}
        )
        return found


def main() -> None:
    table: dict[str, Any] = {
        f"{name}:{number}": array for name in CASES for number, array in enumerate(record(name))
    }
    np.savez_compressed(TABLE, **table)


if __name__ == "__main__":
    main()
