"""Detection operations against OpenVINO, and worked examples."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.oracle import agree, ours

RANDOM = np.random.default_rng(31)
CELLS, IMAGE = np.array([3, 4], np.int64), np.array([60, 90], np.int64)


def _normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return RANDOM.normal(0, scale, shape).astype(np.float32)


def _uniform(*shape: int) -> np.ndarray:
    return RANDOM.uniform(0, 1, shape).astype(np.float32)


def _boxes(count: int, size: float) -> np.ndarray:
    """Corners [count, 4] of boxes within an image of that size."""
    starts, lengths = (
        RANDOM.uniform(0, size * 0.7, (count, 2)),
        RANDOM.uniform(size * 0.05, size * 0.3, (count, 2)),
    )
    return np.concatenate([starts, starts + lengths], 1).astype(np.float32)


def _in_batch(boxes: np.ndarray, images: int) -> np.ndarray:
    return np.concatenate([np.arange(len(boxes))[:, None] % images, boxes], 1).astype(np.float32)


PRIORS = [
    {
        "min_size": [16.0],
        "max_size": [38.46],
        "aspect_ratio": [2.0],
        "flip": True,
        "step": 16.0,
        "offset": 0.5,
    },
    {
        "min_size": [4.0, 9.0],
        "max_size": [8.0, 12.0],
        "aspect_ratio": [2.0, 3.0],
        "offset": 0.5,
        "clip": True,
    },
    {"min_size": [4.0], "offset": 0.0, "variance": [0.1, 0.1, 0.2, 0.2], "step": 4.0},
    {
        "fixed_size": [32.0, 7.0],
        "density": [2.0, 1.0],
        "fixed_ratio": [2.0],
        "offset": 0.5,
        "step": 16.0,
    },
    {
        "fixed_size": [32.0, 7.0],
        "density": [2.0, 3.0],
        "aspect_ratio": [2.0],
        "flip": True,
        "offset": 0.5,
    },
    {
        "min_size": [0.2, 0.3],
        "aspect_ratio": [2.0],
        "scale_all_sizes": False,
        "offset": 0.5,
        "step": -1.0,
    },
]


@pytest.mark.parametrize("attributes", PRIORS)
def test_prior_box(attributes: dict[str, object]) -> None:
    agree("PriorBox", 1, [CELLS, IMAGE], attributes, constant=(0, 1))


@pytest.mark.parametrize("order", [True, False])
def test_prior_box_order(order: bool) -> None:
    agree(
        "PriorBox",
        8,
        [CELLS, IMAGE],
        {**PRIORS[1], "min_max_aspect_ratios_order": order},
        constant=(0, 1),
    )


@pytest.mark.parametrize(
    "attributes",
    [
        {"step": 16.0, "clip": False},
        {"step_w": 8.0, "step_h": 4.0, "clip": True},
        {"variance": [0.1, 0.1, 0.2, 0.2]},
    ],
)
def test_prior_box_clustered(attributes: dict[str, object]) -> None:
    sizes = {"width": [86.0, 13.0], "height": [44.0, 10.0], "offset": 0.5}
    agree("PriorBoxClustered", 1, [CELLS, IMAGE], {**sizes, **attributes}, constant=(0, 1))


@pytest.mark.parametrize(
    "attributes", [{"flatten": True}, {"flatten": False, "stride_x": 8.0, "stride_y": 4.0}]
)
def test_prior_grid(attributes: dict[str, object]) -> None:
    agree(
        "ExperimentalDetectronPriorGridGenerator",
        6,
        [_normal(3, 4), _normal(1, 2, 4, 5), _normal(1, 2, 60, 90)],
        attributes,
    )


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("aligned", ["asymmetric", "half_pixel_for_nn", "half_pixel"])
def test_roi_align(aligned: str, ratio: int, mode: str) -> None:
    inputs = [_normal(2, 3, 7, 9), _boxes(5, 16), np.array([0, 1, 1, 0, 1])]
    texts = {
        "pooled_h": 2,
        "pooled_w": 3,
        "sampling_ratio": ratio,
        "spatial_scale": 0.5,
        "mode": mode,
    }
    agree("ROIAlign", 9, inputs, {**texts, "aligned_mode": aligned}, rtol=1e-4, atol=1e-5)


def test_roi_align_3() -> None:
    inputs = [_normal(1, 2, 6, 6), _boxes(4, 14) - 3, np.zeros(4, np.int32)]
    texts = {"pooled_h": 2, "pooled_w": 2, "sampling_ratio": 2, "spatial_scale": 1.0, "mode": "avg"}
    agree("ROIAlign", 3, inputs, texts, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("clockwise", [True, False])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align_rotated(ratio: int, clockwise: bool) -> None:
    centres, sizes, angles = (
        RANDOM.uniform(2, 6, (4, 2)),
        RANDOM.uniform(1, 6, (4, 2)),
        RANDOM.uniform(-3, 3, (4, 1)),
    )
    regions = np.concatenate([centres, sizes, angles], 1).astype(np.float32)
    texts = {
        "pooled_h": 2,
        "pooled_w": 2,
        "sampling_ratio": ratio,
        "spatial_scale": 1.0,
        "clockwise_mode": clockwise,
    }
    agree(
        "ROIAlignRotated",
        15,
        [_normal(1, 2, 8, 8), regions, np.zeros(4, np.int64)],
        texts,
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("aligned", [True, False])
def test_feature_extractor(aligned: bool) -> None:
    regions = np.concatenate([_boxes(3, 400), _boxes(3, 60), np.array([[5, 5, 5, 9]], np.float32)])
    inputs = [regions, _normal(1, 2, 100, 100), _normal(1, 2, 50, 50), _normal(1, 2, 25, 25)]
    texts = {
        "output_size": 2,
        "sampling_ratio": 2,
        "pyramid_scales": [4, 8, 16],
        "aligned": aligned,
    }
    agree("ExperimentalDetectronROIFeatureExtractor", 6, inputs, texts, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("scale", [0.25, 1.0])
def test_roi_pooling_max(scale: float) -> None:
    inputs = [_normal(2, 3, 8, 9), _in_batch(_boxes(5, 30), 2)]
    agree(
        "ROIPooling",
        2,
        inputs,
        {
            "output_roi": [2, 3],
            "pooled_h": 2,
            "pooled_w": 3,
            "spatial_scale": scale,
            "method": "max",
        },
    )


@pytest.mark.parametrize("size", [(2, 3), (1, 1)])
def test_roi_pooling_bilinear(size: tuple[int, int]) -> None:
    inputs = [_normal(2, 3, 8, 9), _in_batch(_boxes(5, 1), 2)]
    texts = {
        "output_roi": list(size),
        "pooled_h": size[0],
        "pooled_w": size[1],
        "spatial_scale": 1.0,
        "method": "bilinear",
    }
    agree("ROIPooling", 2, inputs, texts, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [0.25, 0.5])
def test_ps_roi_pooling_average(scale: float) -> None:
    inputs = [_normal(2, 18, 8, 9), _in_batch(_boxes(5, 30), 2)]
    agree(
        "PSROIPooling",
        1,
        inputs,
        {"output_dim": 2, "group_size": 3, "spatial_scale": scale, "mode": "average"},
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("group", [1, 3])
def test_ps_roi_pooling_bilinear(group: int) -> None:
    inputs = [_normal(2, 12, 8, 9), _in_batch(_boxes(5, 1), 2)]
    texts = {
        "output_dim": 2,
        "group_size": group,
        "spatial_scale": 1.0,
        "mode": "bilinear",
        "spatial_bins_x": 3,
        "spatial_bins_y": 2,
    }
    agree("PSROIPooling", 1, inputs, texts, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("offsets", [0, 2, 4])
def test_deformable_ps_roi_pooling(offsets: int) -> None:
    inputs = [_normal(2, 36, 8, 9), _in_batch(_boxes(5, 30), 2)] + (
        [_uniform(5, offsets, 3, 3)] if offsets else []
    )
    texts = {"output_dim": 4, "group_size": 3, "spatial_scale": 0.25, "mode": "bilinear_deformable"}
    bins = {"spatial_bins_x": 2, "spatial_bins_y": 3, "trans_std": 0.2, "part_size": 3}
    agree("DeformablePSROIPooling", 1, inputs, {**texts, **bins}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("channels", "attributes"),
    [
        (24, {"num": 6, "do_softmax": False, "mask": [0, 1, 2]}),
        (24, {"num": 3, "do_softmax": True, "mask": []}),
    ],
)
def test_region_yolo(channels: int, attributes: dict[str, object]) -> None:
    agree(
        "RegionYolo",
        1,
        [_normal(2, channels, 3, 4)],
        {"axis": 1, "end_axis": 3, "coords": 4, "classes": 3, **attributes},
    )


@pytest.mark.parametrize("stride", [1, 2])
def test_reorg_yolo(stride: int) -> None:
    agree("ReorgYolo", 2, [_normal(2, 8, 4, 6)], {"stride": [stride]})


PROPOSAL = {
    "base_size": 16,
    "pre_nms_topn": 40,
    "post_nms_topn": 12,
    "nms_thresh": 0.6,
    "feat_stride": 8,
    "min_size": 6,
    "ratio": [0.5, 1.0],
    "scale": [1.0, 2.0],
}


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"framework": "tensorflow"},
        {"normalize": True, "clip_after_nms": True, "clip_before_nms": False},
        {"box_size_scale": 5.0, "box_coordinate_scale": 10.0},
    ],
)
@pytest.mark.parametrize("version", [1, 4])
def test_proposal(version: int, attributes: dict[str, object]) -> None:
    inputs = [
        _uniform(2, 8, 4, 5),
        _normal(2, 16, 4, 5, scale=0.3),
        np.array([48, 56, 1.0], np.float32),
    ]
    agree("Proposal", version, inputs, {**PROPOSAL, **attributes}, rtol=1e-4, atol=1e-3)


def test_proposals_that_run_out() -> None:
    """The scores after the last one are left undefined by OpenVINO, so only the regions are
    compared.
    """
    inputs = [
        _uniform(2, 8, 4, 5),
        _normal(2, 16, 4, 5, scale=0.3),
        np.array([48, 56, 1.0], np.float32),
    ]
    agree("Proposal", 1, inputs, {**PROPOSAL, "nms_thresh": 0.05}, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("framework", ["", "tensorflow"])
def test_proposal_of_two_scales(framework: str) -> None:
    inputs = [
        _uniform(2, 8, 4, 5),
        _normal(2, 16, 4, 5, scale=0.3),
        np.array([48, 56, 1.0, 2.5], np.float32),
    ]
    agree("Proposal", 4, inputs, {**PROPOSAL, "framework": framework}, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("normalized", [True, False])
def test_generate_proposals(normalized: bool) -> None:
    anchors = _boxes(4 * 5 * 3, 60).reshape(4, 5, 3, 4)
    inputs = [
        np.array([[60, 60, 1, 1], [50, 40, 2, 1]], np.float32),
        anchors,
        _normal(2, 12, 4, 5, scale=0.2),
        _uniform(2, 3, 4, 5),
    ]
    texts = {"min_size": 4.0, "nms_threshold": 0.5, "pre_nms_count": 30, "post_nms_count": 10}
    agree(
        "GenerateProposals",
        9,
        inputs,
        {**texts, "normalized": normalized, "roi_num_type": "i32"},
        rtol=1e-4,
        atol=1e-3,
    )


def test_adaptive_threshold_keeps_fewer() -> None:
    anchors = np.array(
        [[0, 0, 10, 10], [0, 0, 10, 6.5], [20, 0, 30, 10], [20, 0, 30, 6.2]], np.float32
    ).reshape(1, 1, 4, 4)
    scores = np.linspace(1, 0.1, 4, dtype=np.float32).reshape(1, 4, 1, 1)
    inputs = [
        np.array([[60, 60, 1]], np.float32),
        anchors,
        np.zeros((1, 16, 1, 1), np.float32),
        scores,
    ]
    texts = {"min_size": "1", "nms_threshold": "0.7", "pre_nms_count": "10", "post_nms_count": "10"}
    assert ours("GenerateProposals", 9, inputs, texts)[2].tolist() == [4]
    assert ours("GenerateProposals", 9, inputs, {**texts, "nms_eta": "0.8"})[2].tolist() == [3]


def test_proposals_of_one_image() -> None:
    inputs = [
        np.array([60, 60, 1], np.float32),
        _boxes(4 * 5 * 3, 60),
        _normal(12, 4, 5, scale=0.2),
        _uniform(3, 4, 5),
    ]
    texts = {"min_size": 4.0, "nms_threshold": 0.3, "pre_nms_count": 30, "post_nms_count": 20}
    agree(
        "ExperimentalDetectronGenerateProposalsSingleImage", 6, inputs, texts, rtol=1e-4, atol=1e-3
    )


def _detection_inputs(places: int, size: int, encoded: bool) -> list[np.ndarray]:
    priors = _boxes(6, 1 if size == 4 else 50)
    if size == 5:
        priors = np.concatenate([np.zeros((6, 1), np.float32), priors], 1)
    rows = [priors.reshape(-1)] + (
        [] if encoded else [np.resize(np.array([0.1, 0.1, 0.2, 0.2], np.float32), priors.size)]
    )
    return [_normal(2, 6 * places * 4), _uniform(2, 6 * 3), np.stack(rows)[None]]


@pytest.mark.parametrize(
    "attributes",
    [
        {"keep_top_k": [5], "normalized": True},
        {
            "keep_top_k": [-1],
            "top_k": 3,
            "normalized": True,
            "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
        },
        {"keep_top_k": [-1], "normalized": True, "share_location": False, "clip_after_nms": True},
        {
            "keep_top_k": [4],
            "normalized": True,
            "variance_encoded_in_target": True,
            "clip_before_nms": True,
            "confidence_threshold": 0.4,
        },
        {
            "keep_top_k": [5],
            "normalized": False,
            "input_height": 50,
            "input_width": 40,
            "background_label_id": -1,
        },
        {
            "keep_top_k": [5],
            "normalized": True,
            "decrease_label_id": True,
            "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
        },
    ],
)
@pytest.mark.parametrize("version", [1, 8])
def test_detection_output(version: int, attributes: dict[str, object]) -> None:
    places = 3 if attributes.get("share_location") is False else 1
    inputs = _detection_inputs(
        places,
        4 if attributes["normalized"] else 5,
        bool(attributes.get("variance_encoded_in_target")),
    )
    texts = {"nms_threshold": 0.4, **({"num_classes": 3} if version == 1 else {}), **attributes}
    agree("DetectionOutput", version, inputs, texts, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [4, 5])
def test_detection_output_refined_twice(size: int) -> None:
    inputs = [*_detection_inputs(1, size, False), _uniform(2, 12), _normal(2, 24)]
    inputs[2] = np.repeat(inputs[2], 2, axis=0)
    texts = {
        "nms_threshold": 0.4,
        "keep_top_k": [5],
        "normalized": size == 4,
        "objectness_score": 0.5,
    }
    texts |= {} if size == 4 else {"input_height": 50, "input_width": 40}
    agree(
        "DetectionOutput",
        8,
        inputs,
        {**texts, "code_type": "caffe.PriorBoxParameter.CENTER_SIZE"},
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("edge", [70, 20])
@pytest.mark.parametrize("most", [4, 12])
def test_detectron_output(most: int, edge: int) -> None:
    inputs = [
        _boxes(12, 60),
        _normal(12, 12),
        _uniform(12, 3),
        np.array([[edge, edge, 1]], np.float32),
    ]
    texts = {
        "score_threshold": 0.3,
        "nms_threshold": 0.4,
        "num_classes": 3,
        "post_nms_count": 8,
        "max_detections_per_image": most,
    }
    more = {"deltas_weights": [10.0, 10.0, 5.0, 5.0], "max_delta_log_wh": 4.0}
    agree(
        "ExperimentalDetectronDetectionOutput", 6, inputs, {**texts, **more}, rtol=1e-4, atol=1e-3
    )


def test_no_regions() -> None:
    none = np.zeros((0, 4), np.float32)
    texts = {
        "pooled_h": "2",
        "pooled_w": "2",
        "sampling_ratio": "2",
        "spatial_scale": "1",
        "mode": "avg",
    }
    assert ours("ROIAlign", 9, [_normal(1, 2, 4, 4), none, np.zeros(0, np.int64)], texts)[
        0
    ].shape == (0, 2, 2, 2)


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes", "problem"),
    [
        (
            "PriorBox",
            1,
            [np.array([2**20, 2**20]), IMAGE],
            {"min_size": "1", "offset": "0.5"},
            "more than the limit",
        ),
        (
            "PriorBox",
            1,
            [np.array([2]), IMAGE],
            {"min_size": "1", "offset": "0.5"},
            "expected height and width",
        ),
        ("ReorgYolo", 2, [_normal(1, 3, 4, 4)], {"stride": "2"}, "cannot be reorganized"),
        (
            "RegionYolo",
            1,
            [_normal(1, 3, 4, 4)],
            {"axis": "1", "end_axis": "3", "coords": "4", "classes": "2", "num": "1"},
            "channels",
        ),
        (
            "ROIPooling",
            2,
            [_normal(1, 1, 4, 4), np.array([[7, 0, 0, 1, 1]], np.float32)],
            {"pooled_h": "1", "pooled_w": "1", "spatial_scale": "1"},
            "image 7",
        ),
        (
            "ROIAlign",
            3,
            [_normal(1, 1, 4, 4), np.array([[0, 0, np.inf, 1]], np.float32), np.array([0])],
            {
                "pooled_h": "1",
                "pooled_w": "1",
                "sampling_ratio": "0",
                "spatial_scale": "1",
                "mode": "avg",
            },
            "cannot be divided",
        ),
        (
            "ROIAlign",
            3,
            [_normal(1, 1, 4, 4), np.array([[0, 0, 1e9, 1e9]], np.float32), np.array([0])],
            {
                "pooled_h": "1",
                "pooled_w": "1",
                "sampling_ratio": "0",
                "spatial_scale": "1",
                "mode": "avg",
            },
            "more than the limit",
        ),
    ],
)
def test_refused(
    name: str, version: int, inputs: list[np.ndarray], attributes: dict[str, str], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        ours(name, version, inputs, attributes)
