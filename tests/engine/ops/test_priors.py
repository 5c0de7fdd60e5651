"""Prior boxes of every combination of attributes against OpenVINO, and the combinations of which
OpenVINO has no answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import openvino as ov
import pytest
from openvino.utils.node_factory import NodeFactory

from tests.engine.ops.oracle import agree, openvinos, ours, references

CELLS, IMAGE = np.array([3, 2]), np.array([60, 90])
Attributes = dict[str, object]

SIZES: dict[str, Attributes] = {
    "nothing": {},
    "least": {"min_size": [16.0]},
    "two least": {"min_size": [4.0, 9.5]},
    "two least, one greatest": {"min_size": [4.0, 9.5], "max_size": [8.25]},
    "two of each": {"min_size": [7.5, 12.25], "max_size": [8.0, 30.0]},
    "one dense": {"fixed_size": [32.0], "density": [2.0]},
    "two dense": {"fixed_size": [6.0, 5.0], "density": [2.0, 3.0]},
    "dense in fractions": {"fixed_size": [7.5], "density": [2.0]},
    "dense with ratios": {
        "fixed_size": [32.0, 7.0],
        "density": [2.0, 1.0],
        "fixed_ratio": [1.0, 0.5],
        "aspect_ratio": [3.0],
    },
    "dense with one ratio": {"fixed_size": [32.0], "density": [3.0], "fixed_ratio": [2.0]},
}
RATIOS: list[Attributes] = [
    {},
    {"aspect_ratio": [2.0, 3.0]},
    {"aspect_ratio": [3.0, 2.0], "flip": True},
    {"aspect_ratio": [1.0, 2.0, 2.0], "flip": True},
    {"aspect_ratio": [2.0, 0.5]},
    {"aspect_ratio": [0.5, 2.0], "flip": True},
]
PLACES: list[Attributes] = [
    {"offset": 0.5},
    {"offset": 0.0, "step": 16.0},
    {"offset": 0.3, "step": 4.5, "clip": True},
    {"offset": 0.3, "step": -1.0},
    {"offset": 0.5, "step": 0.0, "clip": True, "variance": [0.1, 0.1, 0.2, 0.2]},
    {"offset": 0.5, "variance": [0.3]},
]


def combinations(sizes: Attributes) -> Iterator[tuple[int, Attributes]]:
    for ratios, places, shares in product(
        RATIOS if "fixed_ratio" not in sizes else [{}], PLACES, ({}, {"scale_all_sizes": False})
    ):
        if shares and "max_size" not in sizes and "min_size" in sizes:
            yield 1, {**sizes, **ratios, **places, **shares}
        elif not shares:
            yield 1, {**sizes, **ratios, **places}
            yield 8, {**sizes, **ratios, **places, "min_max_aspect_ratios_order": False}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_every_combination_is_openvinos(sizes: Attributes) -> None:
    for version, attributes in combinations(sizes):
        agree("PriorBox", version, [CELLS, IMAGE], attributes, constant=(0, 1), oracle=references)


CLUSTERS = [{"width": [86.0, 13.0], "height": [44.0, 10.0]}, {"width": [5.5], "height": [3.25]}]
STEPS: list[Attributes] = [
    {},
    {"step": 16.0},
    {"step_w": 8.0, "step_h": 4.5},
    {"step": 16.0, "step_w": 4.5},
    {"step_w": 4.0},
    {"step_h": 7.5},
]


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_every_combination_of_clusters_is_openvinos(steps: Attributes) -> None:
    for cluster, clip, offset in product(CLUSTERS, (True, False), (0.0, 0.5)):
        for variance in ({}, {"variance": [0.3]}, {"variance": [0.1, 0.1, 0.2, 0.2]}):
            attributes = {**cluster, **steps, **variance, "clip": clip, "offset": offset}
            agree(
                "PriorBoxClustered",
                1,
                [CELLS, IMAGE],
                attributes,
                constant=(0, 1),
                oracle=references,
            )


COUNTED: dict[str, tuple[Attributes, int, int]] = {
    # attributes, the boxes of a point that its own rules make, and how many OpenVINO makes room for
    "a greatest size without a least one": ({"max_size": [38.5]}, 0, 1),
    "more greatest sizes than least ones": (
        {"min_size": [4.0], "max_size": [8.0, 9.0, 10.0]},
        2,
        4,
    ),
    "greatest sizes in shares of the image": (
        {"min_size": [0.2, 0.3], "max_size": [8.0, 9.0], "scale_all_sizes": False},
        4,
        2,
    ),
    "least and fixed sizes": ({"min_size": [4.0], "fixed_size": [8.0], "density": [1.0]}, 2, 1),
    "density of no size": ({"min_size": [4.0], "density": [2.0]}, 1, 4),
    "fewer ratios of its own than others": (
        {"fixed_size": [8.0], "density": [1.0], "fixed_ratio": [2.0], "aspect_ratio": [3.0, 4.0]},
        1,
        3,
    ),
}


@pytest.mark.parametrize(("attributes", "made", "room"), COUNTED.values(), ids=COUNTED.keys())
def test_where_openvino_counts_other_boxes_than_it_makes(
    attributes: Attributes, made: int, room: int
) -> None:
    """It then leaves a part of its output as the memory was, or writes beyond the end: there is no
    answer to agree with.

    We give the boxes that the rules make.
    """
    sources = [ov.opset8.constant(array).output(0) for array in (CELLS, IMAGE)]
    node = NodeFactory("opset8").create("PriorBox", sources, {**attributes, "offset": 0.5})
    assert list(node.output(0).get_shape()) == [2, 4 * CELLS.prod() * room]
    texts = {
        name: ",".join(map(str, value)) if isinstance(value, list) else str(value).lower()
        for name, value in attributes.items()
    }
    assert ours("PriorBox", 8, [CELLS, IMAGE], {**texts, "offset": "0.5"})[0].shape == (
        2,
        4 * CELLS.prod() * made,
    )


@pytest.mark.parametrize(("size", "shift"), [(6.0, 0.0), (5.0, 0.5), (7.0, 0.5), (7.5, 0.5)])
def test_the_cpu_plugin_lays_dense_boxes_of_odd_sizes_elsewhere(size: float, shift: float) -> None:
    """OpenVINO's core moves them by half the size in whole pixels, as we do; its CPU plugin by
    half a pixel more. The page is silent.
    """
    attributes = {
        "offset": 0.5,
        "step": 20.0,
        "fixed_size": [size],
        "density": [1.0],
        "fixed_ratio": [1.0],
    }
    agree("PriorBox", 8, [CELLS, IMAGE], attributes, constant=(0, 1), oracle=references)
    core, plugin = (
        one("PriorBox", 8, [CELLS, IMAGE], attributes)[0][0].reshape(-1, 4)
        for one in (references_of_constants, openvinos)
    )
    np.testing.assert_allclose((core - plugin) * [90, 60, 90, 60], shift, atol=1e-4)


def references_of_constants(
    name: str, version: int, inputs: list[np.ndarray], attributes: Attributes
) -> list[np.ndarray]:
    return references(name, version, inputs, attributes, (0, 1))
