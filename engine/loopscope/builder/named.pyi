# Written by `python -m loopscope.builder.stub` from the catalogue of operations; not by hand.
"""One method per operation, with its inputs, attributes and outputs."""

from collections.abc import Iterable
from typing import Literal

from numpy.typing import ArrayLike

from loopscope.builder.python_values import ElementTypeLike
from loopscope.builder.operations import Operations
from loopscope.builder.tensor import Tensor
from loopscope.ir.shape import Dimension, PartialShape

Value = Tensor | ArrayLike
"""A tensor of the graph, or numbers, lists and arrays, which become a constant."""
Shape = PartialShape | str | Iterable[int | Dimension | None]

class NamedOperations(Operations):
    """The operations of the catalogue, each in its newest version."""

    def abs(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return the magnitude of each element. Page arithmetic/abs-1."""

    def acos(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the inverse cosine of each element. Page arithmetic/acos-1."""

    def acosh(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the inverse hyperbolic cosine of each element. Page arithmetic/acosh-3."""

    def adaptive_avg_pool(
        self,
        data: Value,
        output_shape: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Average over evenly spread windows; integers are rounded half to even. Page pooling/adaptive-avg-pool-8."""

    def adaptive_max_pool(
        self,
        data: Value,
        output_shape: Value,
        /,
        *,
        index_element_type: ElementTypeLike = "i64",
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Return maxima over evenly spread windows, and their indices within the spatial axes. Page pooling/adaptive-max-pool-8."""

    def add(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Add two tensors. Page arithmetic/add-1."""

    def after(
        self,
        *inputs: Value | Iterable[Value],
        name: str = "",
    ) -> Tensor:
        """Return the first input unchanged, after all other inputs have been computed. Page ."""

    def asin(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the inverse sine of each element. Page arithmetic/asin-1."""

    def asinh(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the inverse hyperbolic sine of each element. Page arithmetic/asinh-3."""

    def assign(
        self,
        value: Value,
        /,
        *,
        variable_id: str,
        name: str = "",
    ) -> Tensor:
        """Assign-6. Page infrastructure/assign-6."""

    def atan(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the inverse tangent of each element. Page arithmetic/atan-1."""

    def atanh(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the inverse hyperbolic tangent of each element. Page arithmetic/atanh-3."""

    def augru_sequence(
        self,
        data: Value,
        hidden: Value,
        lengths: Value,
        weights: Value,
        recurrence: Value,
        bias: Value,
        attention: Value,
        /,
        *,
        hidden_size: int,
        activations: str | Iterable[str] = ("sigmoid", "tanh"),
        activations_alpha: float | Iterable[float] = (),
        activations_beta: float | Iterable[float] = (),
        clip: float = ...,
        direction: Literal["forward"] = "forward",
        linear_before_reset: bool = False,
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Run GRU cells over time, whose update gate each step weakens by an attention score. Page AUGRUSequence."""

    def avg_pool(
        self,
        data: Value,
        /,
        *,
        kernel: int | Iterable[int],
        exclude_pad: bool,
        strides: int | Iterable[int] = (),
        pads_begin: int | Iterable[int] = (),
        pads_end: int | Iterable[int] = (),
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        rounding_type: Literal["floor", "ceil", "ceil_torch"] = "floor",
        dilations: int | Iterable[int] = (),
        name: str = "",
    ) -> Tensor:
        """Average each window; with ``exclude-pad`` only over the elements that are not padding. Page pooling/avg-pool-16."""

    def batch_norm_inference(
        self,
        data: Value,
        gamma: Value,
        beta: Value,
        mean: Value,
        variance: Value,
        /,
        *,
        epsilon: float,
        name: str = "",
    ) -> Tensor:
        """Normalise each channel (the second axis) by its mean and variance, then scale and shift. Page normalization/batch-norm-inference-5."""

    def batch_to_space(
        self,
        data: Value,
        block_shape: Value,
        crops_begin: Value,
        crops_end: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Move blocks of the batch axis into the spatial axes, and crop the result. Page movement/batch-to-space-2."""

    def beam_scorer(
        self,
        scores: Value,
        words: Value,
        beams: Value,
        sequences: Value,
        ended: Value,
        ended_scores: Value,
        ended_count: Value,
        done: Value,
        length_penalty: Value,
        /,
        *,
        eos_token_id: int,
        pad_token_id: int,
        early_stopping: int = 0,
        name: str = "",
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return the beams that continue, and the sequences that have ended so far. Page ."""

    def best_beams(
        self,
        sequences: Value,
        beam_scores: Value,
        ended: Value,
        ended_scores: Value,
        ended_count: Value,
        done: Value,
        length_penalty: Value,
        returned: Value,
        /,
        *,
        pad_token_id: int,
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Return the best ended and continuing sequences, and their scores. Page ."""

    def bgr_to_nv12(
        self,
        image: Value,
        /,
        *,
        single_plane: bool = True,
        name: str = "",
    ) -> tuple[Tensor, ...]:
        """Convert a frame [N, H, W, 3] with even H and W to NV12. Page image/bgr-to-nv12-17."""

    def binary_convolution(
        self,
        data: Value,
        filters: Value,
        /,
        *,
        mode: Literal["xnor-popcount"],
        pad_value: float,
        strides: int | Iterable[int] = (),
        pads_begin: int | Iterable[int] = (),
        pads_end: int | Iterable[int] = (),
        dilations: int | Iterable[int] = (),
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        name: str = "",
    ) -> Tensor:
        """Count equal minus unequal bits under each filter, for data of 0 and 1. Page convolution/binary-convolution-1."""

    def bitwise_and(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Set the bits that are set in both inputs. Page bitwise/bitwise-and-13."""

    def bitwise_left_shift(
        self,
        data: Value,
        shifts: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Shift the bits up by ``shifts`` positions; bits that leave the type are lost. Page bitwise/bitwise-left-shift-15."""

    def bitwise_not(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Invert all bits. Page bitwise/bitwise-not-13."""

    def bitwise_or(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Set the bits that are set in at least one input. Page bitwise/bitwise-or-13."""

    def bitwise_right_shift(
        self,
        data: Value,
        shifts: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Shift the bits down by ``shifts`` positions, with the sign for signed integers. Page bitwise/bitwise-right-shift-15."""

    def bitwise_xor(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Set the bits that are set in exactly one input. Page bitwise/bitwise-xor-13."""

    def broadcast(
        self,
        data: Value,
        target_shape: Value,
        axes_mapping: Value | None = None,
        /,
        *,
        mode: Literal["numpy", "explicit", "bidirectional", "pdpd"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Replicate ``data`` to ``target_shape`` [n]. Page movement/broadcast-3."""

    def bucketize(
        self,
        data: Value,
        boundaries: Value,
        /,
        *,
        output_type: ElementTypeLike = "i64",
        with_right_bound: bool = True,
        name: str = "",
    ) -> Tensor:
        """Return for each element the number of its bucket between the sorted boundaries. Page condition/bucketize-3."""

    def ceiling(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return the least integer not below each element. Page arithmetic/ceiling-1."""

    def clamp(
        self,
        data: Value,
        /,
        *,
        min: float,
        max: float,
        name: str = "",
    ) -> Tensor:
        """Clip each element to the interval from ``min`` to ``max``. Page activation/clamp-1."""

    def col2im(
        self,
        data: Value,
        output_size: Value,
        kernel_size: Value,
        /,
        *,
        strides: int | Iterable[int] = (1, 1),
        dilations: int | Iterable[int] = (1, 1),
        pads_begin: int | Iterable[int] = (0, 0),
        pads_end: int | Iterable[int] = (0, 0),
        name: str = "",
    ) -> Tensor:
        """Sum blocks at their positions in an image. Page movement/col2im-15."""

    def concat(
        self,
        *inputs: Value | Iterable[Value],
        axis: int,
        name: str = "",
    ) -> Tensor:
        """Join the tensors along ``axis``; all other lengths are equal. Page movement/concat-1."""

    def convert(
        self,
        data: Value,
        /,
        *,
        destination_type: ElementTypeLike,
        name: str = "",
    ) -> Tensor:
        """Convert the values to the type ``destination_type``. Page type/convert-1."""

    def convert_like(
        self,
        data: Value,
        like: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Convert the values of the first tensor to the element type of the second. Page type/convert-like-1."""

    def convert_promote_types(
        self,
        left: Value,
        right: Value,
        /,
        *,
        promote_unsafe: bool = False,
        pytorch_scalar_promotion: bool = False,
        u64_integer_promotion_target: ElementTypeLike = "f32",
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Convert both tensors to one type that holds the values of both. Page type/convert-promote-types-14."""

    def convolution(
        self,
        data: Value,
        filters: Value,
        /,
        *,
        strides: int | Iterable[int] = (),
        pads_begin: int | Iterable[int] = (),
        pads_end: int | Iterable[int] = (),
        dilations: int | Iterable[int] = (),
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        name: str = "",
    ) -> Tensor:
        """Correlate 1 to 3 spatial axes with filters. Page convolution/convolution-1."""

    def convolution_backprop_data(
        self,
        data: Value,
        filters: Value,
        output_shape: Value | None = None,
        /,
        *,
        strides: int | Iterable[int] = (),
        pads_begin: int | Iterable[int] = (),
        pads_end: int | Iterable[int] = (),
        dilations: int | Iterable[int] = (),
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        output_padding: int | Iterable[int] = (),
        name: str = "",
    ) -> Tensor:
        """Convolve transposed over 1 to 3 spatial axes. Page convolution/convolution-backprop-data-1."""

    def cos(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the cosine of each element, in radians. Page arithmetic/cos-1."""

    def cosh(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the hyperbolic cosine of each element. Page arithmetic/cosh-1."""

    def ctc_greedy_decoder(
        self,
        data: Value,
        mask: Value,
        /,
        *,
        ctc_merge_repeated: bool = True,
        name: str = "",
    ) -> Tensor:
        """Return the likeliest classes without blanks (the last class). Page sequence/ctc-greedy-decoder-1."""

    def ctc_greedy_decoder_seq_len(
        self,
        data: Value,
        lengths: Value,
        blank_index: Value | None = None,
        /,
        *,
        merge_repeated: bool = True,
        classes_index_type: ElementTypeLike = "i32",
        sequence_length_type: ElementTypeLike = "i32",
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Return the likeliest classes without blanks, with their number. Page sequence/ctc-greedy-decoder-seq-len-6."""

    def ctc_loss(
        self,
        logits: Value,
        logit_length: Value,
        labels: Value,
        label_length: Value,
        blank_index: Value | None = None,
        /,
        *,
        preprocess_collapse_repeated: bool = False,
        ctc_merge_repeated: bool = True,
        unique: bool = False,
        name: str = "",
    ) -> Tensor:
        """Return the negative logarithm of the probability of all paths that decode to the labels. Page sequence/ctc-loss-4."""

    def cum_sum(
        self,
        data: Value,
        axis: Value | None = None,
        /,
        *,
        exclusive: bool = False,
        reverse: bool = False,
        name: str = "",
    ) -> Tensor:
        """Sum all elements before and including each one along an axis. Page arithmetic/cumsum-3."""

    def deformable_convolution(
        self,
        data: Value,
        offsets: Value,
        filters: Value,
        mask: Value | None = None,
        /,
        *,
        strides: int | Iterable[int] = (),
        pads_begin: int | Iterable[int] = (),
        pads_end: int | Iterable[int] = (),
        dilations: int | Iterable[int] = (),
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        group: int = 1,
        deformable_group: int = 1,
        bilinear_interpolation_pad: bool = False,
        name: str = "",
    ) -> Tensor:
        """Convolve samples at positions shifted by ``offsets`` and weighted by ``mask``. Page convolution/deformable-convolution-8."""

    def deformable_psroi_pooling(
        self,
        features: Value,
        regions: Value,
        offsets: Value | None = None,
        /,
        *,
        output_dim: int,
        spatial_scale: float,
        group_size: int = 1,
        spatial_bins_x: int = 1,
        spatial_bins_y: int = 1,
        mode: Literal["bilinear_deformable"] = "bilinear_deformable",
        trans_std: float = 1.0,
        part_size: int = 1,
        name: str = "",
    ) -> Tensor:
        """Pool as PSROIPooling with bilinear samples, and with each bin shifted by its offset. Page detection/deformable-psroi-pooling-1."""

    def depth_to_space(
        self,
        data: Value,
        /,
        *,
        mode: Literal["blocks_first", "depth_first"],
        block_size: int = 1,
        name: str = "",
    ) -> Tensor:
        """Move depth into space: [N, C * b^k, D1, ..., Dk] to [N, C, D1 * b, ..., Dk * b]. Page movement/depth-to-space-1."""

    def detection_output(
        self,
        offsets: Value,
        confidences: Value,
        priors: Value,
        objectness: Value | None = None,
        first_offsets: Value | None = None,
        /,
        *,
        keep_top_k: int | Iterable[int],
        nms_threshold: float,
        background_label_id: int = 0,
        top_k: int = -1,
        variance_encoded_in_target: bool = False,
        code_type: Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"] = "caffe.PriorBoxParameter.CORNER",
        share_location: bool = True,
        confidence_threshold: float = 0.0,
        clip_after_nms: bool = False,
        clip_before_nms: bool = False,
        decrease_label_id: bool = False,
        normalized: bool = False,
        input_height: int = 1,
        input_width: int = 1,
        objectness_score: float = 0.0,
        name: str = "",
    ) -> Tensor:
        """Return rows [1, 1, n, 7] of image, class, score and corners of the detections. Page detection/detectionoutput-8."""

    def dft(
        self,
        data: Value,
        axes: Value,
        signal_size: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the discrete Fourier transform along ``axes``. Page signals/dft-7."""

    def divide(
        self,
        left: Value,
        right: Value,
        /,
        *,
        m_pythondiv: bool = True,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Divide two tensors; integers are rounded down, or towards zero if ``m_pythondiv`` is false. Page arithmetic/divide-1."""

    def einsum(
        self,
        *inputs: Value | Iterable[Value],
        equation: str,
        name: str = "",
    ) -> Tensor:
        """Sum products over labelled axes, such as ``bij,bjk->bik``. Page matrix/einsum-7."""

    def elu(
        self,
        data: Value,
        /,
        *,
        alpha: float,
        name: str = "",
    ) -> Tensor:
        """Return x where x >= 0, ``alpha`` (e^x - 1) elsewhere. Page activation/elu-1."""

    def embedding_bag_offsets(
        self,
        emb_table: Value,
        indices: Value,
        offsets: Value,
        default_index: Value | None = None,
        per_sample_weights: Value | None = None,
        /,
        *,
        reduction: Literal["sum", "mean"] = "sum",
        name: str = "",
    ) -> Tensor:
        """Reduce rows of ``emb_table`` at ``indices`` [n] within bags. Page sparse/embedding-bag-offsets-15."""

    def embedding_bag_offsets_sum(
        self,
        emb_table: Value,
        indices: Value,
        offsets: Value,
        default_index: Value | None = None,
        per_sample_weights: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Reduce rows of ``emb_table`` at ``indices`` [n] within bags. Page sparse/embedding-bag-offsets-sum-3."""

    def embedding_bag_packed(
        self,
        emb_table: Value,
        indices: Value,
        per_sample_weights: Value | None = None,
        /,
        *,
        reduction: Literal["sum", "mean"] = "sum",
        name: str = "",
    ) -> Tensor:
        """Reduce rows of ``emb_table`` at ``indices`` [batch, per bag] within each bag. Page sparse/embedding-bag-packed-15."""

    def embedding_bag_packed_sum(
        self,
        emb_table: Value,
        indices: Value,
        per_sample_weights: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Reduce rows of ``emb_table`` at ``indices`` [batch, per bag] within each bag. Page sparse/embedding-bag-packed-sum-3."""

    def embedding_segments_sum(
        self,
        emb_table: Value,
        indices: Value,
        segment_ids: Value,
        num_segments: Value,
        default_index: Value | None = None,
        per_sample_weights: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Sum rows of ``emb_table`` at ``indices`` [n] within segments. Page sparse/embedding-segments-sum-3."""

    def equal(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return True where two tensors are equal. Page comparison/equal-1."""

    def erf(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the Gauss error function of each element. Page arithmetic/erf-1."""

    def erfinv(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the inverse of the Gauss error function of each element. Page arithmetic/erfinv-17."""

    def exp(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Raise e to the power of each element. Page activation/exp-1."""

    def experimental_detectron_detection_output(
        self,
        regions: Value,
        deltas: Value,
        scores: Value,
        image_info: Value,
        /,
        *,
        score_threshold: float,
        nms_threshold: float,
        max_delta_log_wh: float,
        num_classes: int,
        post_nms_count: int,
        max_detections_per_image: int,
        deltas_weights: float | Iterable[float],
        class_agnostic_box_regression: bool = False,
        name: str = "",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return boxes [m, 4], classes [m] and scores [m] of the detections of one image. Page detection/experimental-detectron-detection-output-6."""

    def experimental_detectron_generate_proposals_single_image(
        self,
        image_info: Value,
        anchors: Value,
        deltas: Value,
        scores: Value,
        /,
        *,
        min_size: float,
        nms_threshold: float,
        pre_nms_count: int,
        post_nms_count: int,
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Return regions [post_nms_count, 4] and scores of one image, with zeros at the end. Page detection/experimental-detectron-generate-proposals-single-image-6."""

    def experimental_detectron_prior_grid_generator(
        self,
        priors: Value,
        features: Value,
        image: Value,
        /,
        *,
        flatten: bool = True,
        h: int = 0,
        w: int = 0,
        stride_x: float = 0.0,
        stride_y: float = 0.0,
        name: str = "",
    ) -> Tensor:
        """Move priors [n, 4] to the centre of every cell of a feature map. Page detection/experimental-detectron-prior-grid-generator-6."""

    def experimental_detectron_roi_feature_extractor(
        self,
        *inputs: Value | Iterable[Value],
        output_size: int,
        sampling_ratio: int,
        pyramid_scales: int | Iterable[int],
        aligned: bool = False,
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Return features [n, C, size, size] of regions [n, 4], and the regions. Page detection/experimental-detectron-roi-feature-extractor-6."""

    def experimental_detectron_top_kro_is(
        self,
        regions: Value,
        probabilities: Value,
        /,
        *,
        max_rois: int = 0,
        name: str = "",
    ) -> Tensor:
        """Return the ``max_rois`` rows of ``regions`` [n, 4] with the greatest ``probabilities`` [n], best first, filled up with zeros. Page sort/experimental-detectron-top-krois-6."""

    def extract_image_patches(
        self,
        data: Value,
        /,
        *,
        sizes: int | Iterable[int],
        strides: int | Iterable[int],
        rates: int | Iterable[int],
        auto_pad: Literal["valid", "same_upper", "same_lower"],
        name: str = "",
    ) -> Tensor:
        """Extract patches from images: [N, C, H, W] to [N, rows * columns * C, H', W']. Page movement/extract-image-patches-3."""

    def eye(
        self,
        rows: Value,
        columns: Value,
        diagonal: Value,
        batch: Value | None = None,
        /,
        *,
        output_type: ElementTypeLike,
        name: str = "",
    ) -> Tensor:
        """Return zeros with ones on one diagonal, shape (*batch, rows, columns). Page generation/eye-9."""

    def fake_convert(
        self,
        data: Value,
        scale: Value,
        shift: Value | None = None,
        /,
        *,
        destination_type: ElementTypeLike = "f8e4m3",
        name: str = "",
    ) -> Tensor:
        """Round ``data * scale - shift`` to an 8-bit float type, and convert back. Page quantization/fake-convert-13."""

    def fake_quantize(
        self,
        data: Value,
        input_low: Value,
        input_high: Value,
        output_low: Value,
        output_high: Value,
        /,
        *,
        levels: int,
        auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Round each element to the nearest of ``levels`` evenly spaced values, in its own type. Page quantization/fake-quantize-1."""

    def floor(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return the greatest integer not above each element. Page arithmetic/floor-1."""

    def floor_mod(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return the remainder of a division rounded down, with the sign of the divisor. Page arithmetic/floormod-1."""

    def gated_delta_net(
        self,
        query: Value,
        key: Value,
        value: Value,
        state: Value,
        gate: Value,
        beta: Value,
        /,
        *,
        fuse_qk_l2norm: bool = False,
        q_l2_norm_eps: float = 1e-06,
        k_l2_norm_eps: float = 1e-06,
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Update a state of each head with each token, and read it with the token's query. Page GatedDeltaNet."""

    def gather(
        self,
        data: Value,
        indices: Value,
        axis: Value,
        /,
        *,
        batch_dims: int = 0,
        name: str = "",
    ) -> Tensor:
        """Select slices of ``data`` along ``axis`` (scalar) at ``indices``. Page movement/gather-8."""

    def gather_elements(
        self,
        data: Value,
        indices: Value,
        /,
        *,
        axis: int,
        name: str = "",
    ) -> Tensor:
        """Select for each element of ``indices`` an element of ``data``. Page movement/gather-elements-6."""

    def gather_nd(
        self,
        data: Value,
        indices: Value,
        /,
        *,
        batch_dims: int = 0,
        name: str = "",
    ) -> Tensor:
        """Select the slices of ``data`` at the tuples in the last axis of ``indices``. Page movement/gather-nd-8."""

    def gather_tree(
        self,
        step_ids: Value,
        parent_ids: Value,
        max_seq_len: Value,
        end_token: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Reconstruct the beams of a beam search from the last step backwards along ``parent_ids``. Page movement/gather-tree-1."""

    def gelu(
        self,
        data: Value,
        /,
        *,
        approximation_mode: Literal["erf", "tanh"] = "erf",
        name: str = "",
    ) -> Tensor:
        """Return x times the normal distribution function at x, or its approximation by tanh. Page activation/gelu-7."""

    def generate_proposals(
        self,
        image_info: Value,
        anchors: Value,
        deltas: Value,
        scores: Value,
        /,
        *,
        min_size: float,
        nms_threshold: float,
        pre_nms_count: int,
        post_nms_count: int,
        normalized: bool = True,
        nms_eta: float = 1.0,
        roi_num_type: ElementTypeLike = "i64",
        name: str = "",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return regions [n, 4] of all images, scores [n] and counts [N]. Page detection/generate-proposals-9."""

    def greater(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return True where the first tensor is greater than the second. Page comparison/greater-1."""

    def greater_equal(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return True where the first tensor is greater than or equal to the second. Page comparison/greater-equal-1."""

    def grid_sample(
        self,
        data: Value,
        grid: Value,
        /,
        *,
        align_corners: bool = False,
        mode: Literal["bilinear", "bicubic", "nearest"] = "bilinear",
        padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
        name: str = "",
    ) -> Tensor:
        """Sample an image [N, C, H, W] at grid points [N, H', W', 2] (x, then y, from -1 to 1). Page image/grid-sample-9."""

    def grn(
        self,
        data: Value,
        /,
        *,
        bias: float,
        name: str = "",
    ) -> Tensor:
        """Divide each element by the root of ``bias`` plus the sum of squares over the channels. Page normalization/grn-1."""

    def group_convolution(
        self,
        data: Value,
        filters: Value,
        /,
        *,
        strides: int | Iterable[int] = (),
        pads_begin: int | Iterable[int] = (),
        pads_end: int | Iterable[int] = (),
        dilations: int | Iterable[int] = (),
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        name: str = "",
    ) -> Tensor:
        """Correlate within each group of channels. Page convolution/group-convolution-1."""

    def group_convolution_backprop_data(
        self,
        data: Value,
        filters: Value,
        output_shape: Value | None = None,
        /,
        *,
        strides: int | Iterable[int] = (),
        pads_begin: int | Iterable[int] = (),
        pads_end: int | Iterable[int] = (),
        dilations: int | Iterable[int] = (),
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        output_padding: int | Iterable[int] = (),
        name: str = "",
    ) -> Tensor:
        """Convolve transposed within each group of channels. Page convolution/group-convolution-backprop-data-1."""

    def group_normalization(
        self,
        data: Value,
        scale: Value,
        bias: Value,
        /,
        *,
        num_groups: int,
        epsilon: float,
        name: str = "",
    ) -> Tensor:
        """Normalise each group of channels to mean 0 and variance 1, then scale and shift each channel. Page normalization/group-normalization-12."""

    def grouped_matmul(
        self,
        first: Value,
        second: Value,
        offsets: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute one matrix product for each group of tokens; ``offsets`` are the ends of the groups. Page matrix/grouped-matmul-17."""

    def gru_cell(
        self,
        data: Value,
        hidden: Value,
        weights: Value,
        recurrence: Value,
        bias: Value | None = None,
        /,
        *,
        hidden_size: int,
        activations: str | Iterable[str] = ("sigmoid", "tanh"),
        activations_alpha: float | Iterable[float] = (),
        activations_beta: float | Iterable[float] = (),
        clip: float = ...,
        linear_before_reset: bool = False,
        name: str = "",
    ) -> Tensor:
        """Compute one step of a gated recurrent unit. Page sequence/gru-cell-3."""

    def gru_sequence(
        self,
        data: Value,
        hidden: Value,
        lengths: Value,
        weights: Value,
        recurrence: Value,
        bias: Value,
        /,
        *,
        hidden_size: int,
        direction: Literal["forward", "reverse", "bidirectional"],
        activations: str | Iterable[str] = ("sigmoid", "tanh"),
        activations_alpha: float | Iterable[float] = (),
        activations_beta: float | Iterable[float] = (),
        clip: float = ...,
        linear_before_reset: bool = False,
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Run GRU cells over time, in one or both directions. Page sequence/gru-sequence-5."""

    def hard_sigmoid(
        self,
        data: Value,
        alpha: Value,
        beta: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return ``alpha`` x + ``beta`` clipped to 0 .. 1; both are scalars. Page activation/hard-sigmoid-1."""

    def hsigmoid(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return x + 3 clipped to 0 .. 6, divided by 6. Page activation/hsigmoid-5."""

    def hswish(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return x times (x + 3 clipped to 0 .. 6), divided by 6. Page activation/hswish-4."""

    def i420_to_bgr(
        self,
        input_0: Value,
        input_1: Value | None = None,
        input_2: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Convert I420 to a frame [N, H, W, 3]. Page image/i420-to-bgr-8."""

    def i420_to_rgb(
        self,
        input_0: Value,
        input_1: Value | None = None,
        input_2: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Convert I420 to a frame [N, H, W, 3]. Page image/i420-to-rgb-8."""

    def identity(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return the input unchanged. Page activation/identity-16."""

    def idft(
        self,
        data: Value,
        axes: Value,
        signal_size: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the inverse of DFT: ``[..., 2] -> [..., 2]``. Page signals/idft-7."""

    def interpolate(
        self,
        image: Value,
        scales_or_sizes: Value,
        axes: Value | None = None,
        /,
        *,
        mode: Literal["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"],
        shape_calculation_mode: Literal["sizes", "scales"],
        coordinate_transformation_mode: Literal["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"] = "half_pixel",
        nearest_mode: Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"] = "round_prefer_floor",
        antialias: bool = False,
        pads_begin: int | Iterable[int] = (),
        pads_end: int | Iterable[int] = (),
        cube_coeff: float = -0.75,
        name: str = "",
    ) -> Tensor:
        """Resize some axes of an image to given sizes or by given scales. Page image/interpolate-11."""

    def inverse(
        self,
        matrices: Value,
        /,
        *,
        adjoint: bool = False,
        name: str = "",
    ) -> Tensor:
        """Invert the square matrices in the last two axes, transposed if ``adjoint``. Page matrix/inverse-14."""

    def irdft(
        self,
        data: Value,
        axes: Value,
        signal_size: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the inverse of RDFT; the missing half makes the result real. Page signals/irdft-9."""

    def is_finite(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return True for each element that is neither infinite nor NaN. Page comparison/isfinite-10."""

    def is_inf(
        self,
        data: Value,
        /,
        *,
        detect_negative: bool = True,
        detect_positive: bool = True,
        name: str = "",
    ) -> Tensor:
        """Return True for each element that is an infinity of a requested sign. Page comparison/isinf-10."""

    def is_nan(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return True for each element that is NaN. Page comparison/isnan-10."""

    def istft(
        self,
        data: Value,
        window: Value,
        frame_size: Value,
        frame_step: Value,
        signal_length: Value | None = None,
        /,
        *,
        center: bool,
        normalized: bool,
        name: str = "",
    ) -> Tensor:
        """Reconstruct the signal whose overlapping, weighted frames have these transforms. Page signals/istft-16."""

    def less(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return True where the first tensor is less than the second. Page comparison/less-1."""

    def less_equal(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return True where the first tensor is less than or equal to the second. Page comparison/lessequal-1."""

    def log(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the natural logarithm of each element. Page arithmetic/log-1."""

    def log_softmax(
        self,
        data: Value,
        /,
        *,
        axis: int = 1,
        name: str = "",
    ) -> Tensor:
        """Return x minus the logarithm of the sum of e^x along ``axis``. Page activation/log-soft-max-5."""

    def logical_and(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return True where both are true. Page logical/logical-and-1."""

    def logical_not(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return True for each element that is false. Page logical/logical-not-1."""

    def logical_or(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return True where at least one is true. Page logical/logical-or-1."""

    def logical_xor(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return True where exactly one is true. Page logical/logical-xor-1."""

    def lrn(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        alpha: float,
        beta: float,
        bias: float,
        size: int,
        name: str = "",
    ) -> Tensor:
        """Divide each element by a power of the mean square of its neighbourhood along ``axes``. Page normalization/lrn-1."""

    def lstm_cell(
        self,
        data: Value,
        hidden: Value,
        cell: Value,
        weights: Value,
        recurrence: Value,
        bias: Value | None = None,
        /,
        *,
        hidden_size: int,
        activations: str | Iterable[str] = ("sigmoid", "tanh", "tanh"),
        activations_alpha: float | Iterable[float] = (),
        activations_beta: float | Iterable[float] = (),
        clip: float = ...,
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Compute one step of a long short-term memory. Page sequence/lstm-cell-1."""

    def lstm_sequence(
        self,
        data: Value,
        hidden: Value,
        cell: Value,
        lengths: Value,
        weights: Value,
        recurrence: Value,
        bias: Value,
        /,
        *,
        hidden_size: int,
        direction: Literal["forward", "reverse", "bidirectional"],
        activations: str | Iterable[str] = ("sigmoid", "tanh", "tanh"),
        activations_alpha: float | Iterable[float] = (),
        activations_beta: float | Iterable[float] = (),
        clip: float = ...,
        name: str = "",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run LSTM cells over time, in one or both directions. Page sequence/lstm-sequence-5."""

    def matmul(
        self,
        first: Value,
        second: Value,
        /,
        *,
        transpose_a: bool = False,
        transpose_b: bool = False,
        name: str = "",
    ) -> Tensor:
        """Multiply the matrices in the last two axes, with batches broadcast. Page matrix/matmul-1."""

    def matrix_nms(
        self,
        boxes: Value,
        scores: Value,
        /,
        *,
        sort_result_type: Literal["classid", "class", "score", "none"] = "none",
        sort_result_across_batch: bool = False,
        output_type: ElementTypeLike = "i64",
        score_threshold: float = 0.0,
        nms_top_k: int = -1,
        keep_top_k: int = -1,
        background_class: int = -1,
        normalized: bool = True,
        decay_function: Literal["gaussian", "linear"] = "linear",
        gaussian_sigma: float = 2.0,
        post_threshold: float = 0.0,
        name: str = "",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Select boxes [batch, n, 4] by scores [batch, classes, n]; each score is lowered by the overlaps with better boxes of its class. Page sort/matrix-non-max-suppression-8."""

    def max_pool(
        self,
        data: Value,
        /,
        *,
        kernel: int | Iterable[int],
        strides: int | Iterable[int] = (),
        pads_begin: int | Iterable[int] = (),
        pads_end: int | Iterable[int] = (),
        auto_pad: Literal["explicit", "same_upper", "same_lower", "valid"] = "explicit",
        rounding_type: Literal["floor", "ceil", "ceil_torch"] = "floor",
        dilations: int | Iterable[int] = (),
        index_element_type: ElementTypeLike = "i64",
        axis: int = 0,
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Return the largest element of each window, and the index of the first such element. Page pooling/max-pool-14."""

    def maximum(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return the greater of two tensors; NaN where either is NaN. Page arithmetic/maximum-1."""

    def minimum(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return the lesser of two tensors; NaN where either is NaN. Page arithmetic/minimum-1."""

    def mish(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return x tanh(ln(1 + e^x)). Page activation/mish-4."""

    def mod(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return the remainder of a division rounded towards zero, with the sign of the dividend. Page arithmetic/mod-1."""

    def multiclass_nms(
        self,
        boxes: Value,
        scores: Value,
        roisnum: Value | None = None,
        /,
        *,
        sort_result_type: Literal["classid", "class", "score", "none"] = "none",
        sort_result_across_batch: bool = False,
        output_type: ElementTypeLike = "i64",
        score_threshold: float = 0.0,
        nms_top_k: int = -1,
        keep_top_k: int = -1,
        background_class: int = -1,
        normalized: bool = True,
        iou_threshold: float = 0.0,
        nms_eta: float = 1.0,
        name: str = "",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Select boxes greedily within each class. The threshold is multiplied by ``nms_eta`` with each selected box while it is above 0.5. Page sort/multiclass-non-max-suppression-9."""

    def multinomial(
        self,
        probabilities: Value,
        samples: Value,
        /,
        *,
        convert_type: ElementTypeLike,
        with_replacement: bool,
        log_probs: bool,
        global_seed: int = 0,
        op_seed: int = 0,
        name: str = "",
    ) -> Tensor:
        """Draw class numbers, shape (batch, samples), by probabilities of shape (batch, classes). Page generation/multinomial-13."""

    def multiply(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Multiply two tensors. Page arithmetic/multiply-1."""

    def mvn(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        normalize_variance: bool,
        eps: float,
        eps_mode: Literal["inside_sqrt", "outside_sqrt"],
        name: str = "",
    ) -> Tensor:
        """Shift to mean 0 and, with ``normalize_variance``, scale to variance 1 along ``axes``. Page normalization/mvn-6."""

    def negative(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Negate each element; unsigned integers wrap. Page arithmetic/negative-1."""

    def nms_rotated(
        self,
        boxes: Value,
        scores: Value,
        max_output_boxes_per_class: Value,
        iou_threshold: Value,
        score_threshold: Value,
        /,
        *,
        sort_result_descending: bool = True,
        output_type: ElementTypeLike = "i64",
        clockwise: bool = True,
        name: str = "",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Select as NonMaxSuppression-9, for boxes [batch, n, 5] of center x and y, width, height, and an angle in radians. Page sort/nms-rotated-13."""

    def non_max_suppression(
        self,
        boxes: Value,
        scores: Value,
        max_output_boxes_per_class: Value | None = None,
        iou_threshold: Value | None = None,
        score_threshold: Value | None = None,
        soft_nms_sigma: Value | None = None,
        /,
        *,
        box_encoding: Literal["corner", "center"] = "corner",
        sort_result_descending: bool = True,
        output_type: ElementTypeLike = "i64",
        name: str = "",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Select boxes [batch, n, 4] by scores [batch, classes, n]. Return rows of batch, class and box; rows of batch, class and score; and their number. Page sort/non-max-suppression-9."""

    def non_zero(
        self,
        data: Value,
        /,
        *,
        output_type: ElementTypeLike = "i64",
        name: str = "",
    ) -> Tensor:
        """Return the indices of the nonzero elements, one column each, in row-major order. Page condition/nonzero-3."""

    def normalize_l2(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        eps: float,
        eps_mode: Literal["add", "max"],
        name: str = "",
    ) -> Tensor:
        """Divide each element by the root of the sum of squares along ``axes``. Page normalization/normalize-l2-1."""

    def not_equal(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return True where two tensors differ. Page comparison/notequal-1."""

    def nv12_to_bgr(
        self,
        input_0: Value,
        input_1: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Convert NV12 to a frame [N, H, W, 3]. Page image/nv12-to-bgr-8."""

    def nv12_to_rgb(
        self,
        input_0: Value,
        input_1: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Convert NV12 to a frame [N, H, W, 3]. Page image/nv12-to-rgb-8."""

    def one_hot(
        self,
        indices: Value,
        depth: Value,
        on_value: Value,
        off_value: Value,
        /,
        *,
        axis: int,
        negative_indices_mode: Literal["ignore_negative", "ignore-negative", "normalize"] = "ignore_negative",
        name: str = "",
    ) -> Tensor:
        """Set ``on_value`` where the position along the new axis is the index, ``off_value`` elsewhere. Page sequence/one-hot-16."""

    def pad(
        self,
        data: Value,
        pads_begin: Value,
        pads_end: Value,
        pad_value: Value | None = None,
        /,
        *,
        pad_mode: Literal["constant", "edge", "reflect", "symmetric"],
        name: str = "",
    ) -> Tensor:
        """Add ``pads_begin`` and ``pads_end`` [rank] elements on each axis of ``data``. Page movement/pad-12."""

    def power(
        self,
        base: Value,
        exponent: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Raise the first tensor to the power of the second; integers are truncated. Page arithmetic/power-1."""

    def prelu(
        self,
        data: Value,
        slope: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return x where x >= 0, ``slope`` x elsewhere. Page activation/prelu-1."""

    def print(
        self,
        *inputs: Value | Iterable[Value],
        message: str = "",
        first_n: int = -1,
        summarize: int = 3,
        name: str = "",
    ) -> Tensor:
        """Return the first input unchanged. Page ."""

    def prior_box(
        self,
        output_size: Value,
        image_size: Value,
        /,
        *,
        offset: float,
        min_size: float | Iterable[float] = (),
        max_size: float | Iterable[float] = (),
        aspect_ratio: float | Iterable[float] = (),
        flip: bool = False,
        clip: bool = False,
        step: float = 0.0,
        variance: float | Iterable[float] = (),
        scale_all_sizes: bool = True,
        fixed_ratio: float | Iterable[float] = (),
        fixed_size: float | Iterable[float] = (),
        density: float | Iterable[float] = (),
        min_max_aspect_ratios_order: bool = True,
        name: str = "",
    ) -> Tensor:
        """Return prior boxes and their variances, as fractions of the image. Page detection/prior-box-8."""

    def prior_box_clustered(
        self,
        output_size: Value,
        image_size: Value,
        /,
        *,
        offset: float,
        width: float | Iterable[float] = (1.0,),
        height: float | Iterable[float] = (1.0,),
        clip: bool = True,
        step: float = 0.0,
        step_w: float = 0.0,
        step_h: float = 0.0,
        variance: float | Iterable[float] = (),
        name: str = "",
    ) -> Tensor:
        """Return boxes of given widths and heights with their variances, as fractions of the image. Page detection/prior-box-clustered-1."""

    def proposal(
        self,
        scores: Value,
        deltas: Value,
        image_info: Value,
        /,
        *,
        base_size: int,
        pre_nms_topn: int,
        post_nms_topn: int,
        nms_thresh: float,
        feat_stride: int,
        min_size: int,
        ratio: float | Iterable[float],
        scale: float | Iterable[float],
        clip_before_nms: bool = True,
        clip_after_nms: bool = False,
        normalize: bool = False,
        box_size_scale: float = 1.0,
        box_coordinate_scale: float = 1.0,
        framework: Literal["", "tensorflow"] = "",
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Return regions [N * post_nms_topn, 5] (image, x1, y1, x2, y2) and their scores. Page detection/proposal-4."""

    def psroi_pooling(
        self,
        features: Value,
        regions: Value,
        /,
        *,
        output_dim: int,
        spatial_scale: float,
        group_size: int = 1,
        spatial_bins_x: int = 1,
        spatial_bins_y: int = 1,
        mode: Literal["average", "bilinear"] = "average",
        name: str = "",
    ) -> Tensor:
        """Pool each bin of a region [n, 5] from its own channels of the features [N, C, H, W]. Page detection/psroi-pooling-1."""

    def random_uniform(
        self,
        shape: Value,
        least: Value,
        most: Value,
        /,
        *,
        output_type: ElementTypeLike,
        global_seed: int = 0,
        op_seed: int = 0,
        alignment: Literal["TENSORFLOW", "PYTORCH"] = "TENSORFLOW",
        name: str = "",
    ) -> Tensor:
        """Draw random numbers from ``least`` to below ``most``, both scalars or of one element. Page generation/random-uniform-8."""

    def range(
        self,
        start: Value,
        stop: Value,
        step: Value,
        /,
        *,
        output_type: ElementTypeLike,
        name: str = "",
    ) -> Tensor:
        """Return the numbers from ``start`` up or down to ``stop`` (excluded). Page generation/range-4."""

    def rdft(
        self,
        data: Value,
        axes: Value,
        signal_size: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the Fourier transform of real numbers, without the redundant half. Page signals/rdft-9."""

    def read_value(
        self,
        initial: Value | None = None,
        /,
        *,
        variable_id: str,
        variable_type: Literal["f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "nf4", "i64", "i32", "i16", "i8", "i4", "u64", "u32", "u16", "u8", "u6", "u4", "u3", "u2", "u1", "boolean", "string", "dynamic", "undefined"],
        variable_shape: Shape,
        name: str = "",
    ) -> Tensor:
        """ReadValue-6. Page infrastructure/read-value-6."""

    def reduce_l1(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        keep_dims: bool = False,
        name: str = "",
    ) -> Tensor:
        """Sum the magnitudes along axes. Page reduction/reduce-l1-4."""

    def reduce_l2(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        keep_dims: bool = False,
        name: str = "",
    ) -> Tensor:
        """Compute the square root of the sum of squares along axes. Page reduction/reduce-l2-4."""

    def reduce_logical_and(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        keep_dims: bool = False,
        name: str = "",
    ) -> Tensor:
        """Return True where all elements along axes are true. Page reduction/reduce-logical-and-1."""

    def reduce_logical_or(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        keep_dims: bool = False,
        name: str = "",
    ) -> Tensor:
        """Return True where any element along axes is true. Page reduction/reduce-logical-or-1."""

    def reduce_max(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        keep_dims: bool = False,
        name: str = "",
    ) -> Tensor:
        """Return the largest element along axes. Page reduction/reduce-max-1."""

    def reduce_mean(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        keep_dims: bool = False,
        name: str = "",
    ) -> Tensor:
        """Compute the mean along axes; for integers, truncated. Page reduction/reduce-mean-1."""

    def reduce_min(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        keep_dims: bool = False,
        name: str = "",
    ) -> Tensor:
        """Return the smallest element along axes. Page reduction/reduce-min-1."""

    def reduce_prod(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        keep_dims: bool = False,
        name: str = "",
    ) -> Tensor:
        """Multiply the elements along axes. Page reduction/reduce-prod-1."""

    def reduce_sum(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        keep_dims: bool = False,
        name: str = "",
    ) -> Tensor:
        """Sum the elements along axes. Page reduction/reduce-sum-1."""

    def region_yolo(
        self,
        data: Value,
        /,
        *,
        axis: int,
        end_axis: int,
        coords: int,
        classes: int,
        num: int,
        do_softmax: bool = True,
        mask: int | Iterable[int] = (),
        anchors: float | Iterable[float] = (),
        name: str = "",
    ) -> Tensor:
        """Convert raw predictions [N, regions * (coords + 1 + classes), H, W] into numbers from 0 to 1. Page detection/region-yolo-1."""

    def relu(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return the greater of x and 0. Page activation/relu-1."""

    def reorg_yolo(
        self,
        data: Value,
        /,
        *,
        stride: int | Iterable[int],
        name: str = "",
    ) -> Tensor:
        """Move space to channels, in Darknet's order of elements. Page detection/reorg-yolo-1."""

    def reshape(
        self,
        data: Value,
        shape: Value,
        /,
        *,
        special_zero: bool,
        name: str = "",
    ) -> Tensor:
        """Return the elements of ``data`` in the shape in ``shape`` [n]. Page shape/reshape-1."""

    def reverse(
        self,
        data: Value,
        axes: Value | None = None,
        /,
        *,
        mode: Literal["index", "mask"],
        name: str = "",
    ) -> Tensor:
        """Reverse ``data`` along ``axes``. Page movement/reverse-1."""

    def reverse_sequence(
        self,
        data: Value,
        seq_lengths: Value,
        /,
        *,
        batch_axis: int = 0,
        seq_axis: int = 1,
        name: str = "",
    ) -> Tensor:
        """Reverse the first ``seq_lengths[b]`` elements along ``seq_axis`` for each batch index b. Page movement/reverse-sequence-1."""

    def rgb_to_nv12(
        self,
        image: Value,
        /,
        *,
        single_plane: bool = True,
        name: str = "",
    ) -> tuple[Tensor, ...]:
        """Convert a frame [N, H, W, 3] with even H and W to NV12. Page image/rgb-to-nv12-17."""

    def rnn_cell(
        self,
        data: Value,
        hidden: Value,
        weights: Value,
        recurrence: Value,
        bias: Value | None = None,
        /,
        *,
        hidden_size: int,
        activations: str | Iterable[str] = ("tanh",),
        activations_alpha: float | Iterable[float] = (),
        activations_beta: float | Iterable[float] = (),
        clip: float = ...,
        name: str = "",
    ) -> Tensor:
        """Compute one step of a plain recurrent network. Page sequence/rnn-cell-3."""

    def rnn_sequence(
        self,
        data: Value,
        hidden: Value,
        lengths: Value,
        weights: Value,
        recurrence: Value,
        bias: Value,
        /,
        *,
        hidden_size: int,
        direction: Literal["forward", "reverse", "bidirectional"],
        activations: str | Iterable[str] = ("tanh",),
        activations_alpha: float | Iterable[float] = (),
        activations_beta: float | Iterable[float] = (),
        clip: float = ...,
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Run RNN cells over time, in one or both directions. Page sequence/rnn-sequence-5."""

    def roi_align(
        self,
        features: Value,
        regions: Value,
        batches: Value,
        /,
        *,
        pooled_h: int,
        pooled_w: int,
        sampling_ratio: int,
        spatial_scale: float,
        mode: Literal["avg", "max"],
        aligned_mode: Literal["asymmetric", "half_pixel_for_nn", "half_pixel"] = "asymmetric",
        name: str = "",
    ) -> Tensor:
        """Pool features [N, C, H, W] in regions [n, 4] (x1, y1, x2, y2) of images ``batches`` [n]. Page detection/roi-align-9."""

    def roi_align_rotated(
        self,
        features: Value,
        regions: Value,
        batches: Value,
        /,
        *,
        pooled_h: int,
        pooled_w: int,
        sampling_ratio: int,
        spatial_scale: float,
        clockwise_mode: bool = False,
        name: str = "",
    ) -> Tensor:
        """Pool as ROIAlign with mode avg, in rotated regions [n, 5]. Page detection/roi-align-rotated-15."""

    def roi_pooling(
        self,
        features: Value,
        regions: Value,
        /,
        *,
        pooled_h: int,
        pooled_w: int,
        spatial_scale: float,
        method: Literal["max", "bilinear"] = "max",
        name: str = "",
    ) -> Tensor:
        """Pool features [N, C, H, W] in regions [n, 5] (image, x1, y1, x2, y2). Page detection/roi-pooling-1."""

    def roll(
        self,
        data: Value,
        shift: Value,
        axes: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Rotate ``data`` by ``shift`` along ``axes``; repeated axes add up. Page movement/roll-7."""

    def round(
        self,
        data: Value,
        /,
        *,
        mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even",
        name: str = "",
    ) -> Tensor:
        """Round each element to the nearest integer; ``mode`` is the direction for halves. Page arithmetic/round-5."""

    def round_to(
        self,
        data: Value,
        /,
        *,
        to: Literal["bf16", "f16", "f8e4m3", "f8e5m2", "int8", "int4"],
        name: str = "",
    ) -> Tensor:
        """Round each number to the nearest value of the type ``to``; the element type stays. Page ."""

    def sampled_token(
        self,
        scores: Value,
        state: Value,
        /,
        *,
        top_p: float,
        filter_value: float,
        min_tokens_to_keep: int = 0,
        from_the_top: int = 0,
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Draw a token for each row of scores ``[batch, words]``. Page ."""

    def scaled_dot_product_attention(
        self,
        query: Value,
        key: Value,
        value: Value,
        mask: Value | None = None,
        scale: Value | None = None,
        sink: Value | None = None,
        /,
        *,
        causal: bool,
        name: str = "",
    ) -> Tensor:
        """Compute ``softmax(query x keyT * scale + mask) x value``, with batches broadcast. Page sequence/scaled-dot-product-attention."""

    def scatter_elements_update(
        self,
        data: Value,
        indices: Value,
        updates: Value,
        axis: Value,
        /,
        *,
        reduction: Literal["none", "sum", "prod", "min", "max", "mean"] = "none",
        use_init_val: bool = True,
        name: str = "",
    ) -> Tensor:
        """Put, or reduce, each element of ``updates`` into ``data``. Page movement/scatter-elements-update-12."""

    def scatter_nd_update(
        self,
        data: Value,
        indices: Value,
        updates: Value,
        /,
        *,
        reduction: Literal["none", "sum", "sub", "prod", "min", "max"] = "none",
        name: str = "",
    ) -> Tensor:
        """Put, or reduce, slices into ``data`` at the tuples in the last axis of ``indices``. Page movement/scatter-nd-update-15."""

    def scatter_update(
        self,
        data: Value,
        indices: Value,
        updates: Value,
        axis: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Replace the slices of ``data`` along ``axis`` at ``indices``. Page movement/scatter-update-3."""

    def search_sorted(
        self,
        sorted_sequence: Value,
        values: Value,
        /,
        *,
        right_mode: bool = False,
        output_type: ElementTypeLike = "i64",
        name: str = "",
    ) -> Tensor:
        """Return the position at which each of ``values`` [..., m] would be inserted in its row of ``sorted_sequence`` ([..., n], or [n] for all rows). Page sort/search-sorted-15."""

    def segment_max(
        self,
        data: Value,
        segment_ids: Value,
        num_segments: Value | None = None,
        /,
        *,
        fill_mode: Literal["zero", "lowest"],
        name: str = "",
    ) -> Tensor:
        """Return the largest element of each segment of rows of ``data``. Page arithmetic/segment-max-16."""

    def select(
        self,
        condition: Value,
        then: Value,
        otherwise: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Select elements of the second tensor where the first is true, of the third elsewhere. Page condition/select-1."""

    def selu(
        self,
        data: Value,
        alpha: Value,
        scale: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return ``scale`` x where x > 0, ``scale alpha`` (e^x - 1) elsewhere. Page activation/selu-1."""

    def shape_of(
        self,
        data: Value,
        /,
        *,
        output_type: ElementTypeLike = "i64",
        name: str = "",
    ) -> Tensor:
        """Return the shape of ``data``, [rank]. Page shape/shape-of-3."""

    def shuffle_channels(
        self,
        data: Value,
        /,
        *,
        axis: int = 1,
        group: int = 1,
        name: str = "",
    ) -> Tensor:
        """Split ``axis`` into ``group`` groups and interleave their elements. Page movement/shuffle-channels-1."""

    def sigmoid(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return 1 / (1 + e^-x). Page activation/sigmoid-1."""

    def sign(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return -1, 0 or 1 for each element; NaN stays NaN. Page arithmetic/sign-1."""

    def sin(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the sine of each element, in radians. Page arithmetic/sin-1."""

    def sinh(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the hyperbolic sine of each element. Page arithmetic/sinh-1."""

    def slice(
        self,
        data: Value,
        start: Value,
        stop: Value,
        step: Value,
        axes: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Select the elements of ``data`` from ``start`` to before ``stop`` by ``step`` along ``axes``. Page movement/slice-8."""

    def slice_scatter(
        self,
        data: Value,
        updates: Value,
        start: Value,
        stop: Value,
        step: Value,
        axes: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Replace the slice that Slice-8 would select by ``updates``, which has the slice's shape. Page movement/slice-scatter-15."""

    def softmax(
        self,
        data: Value,
        /,
        *,
        axis: int = 1,
        name: str = "",
    ) -> Tensor:
        """Divide e^x by the sum of e^x along ``axis``. Page activation/softmax-8."""

    def softplus(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return ln(1 + e^x), without overflow. Page activation/softplus-4."""

    def softsign(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return x / (1 + |x|). Page activation/softsign-9."""

    def space_to_batch(
        self,
        data: Value,
        block_shape: Value,
        pads_begin: Value,
        pads_end: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Pad with zeros and move blocks of the spatial axes into the batch axis. Page movement/space-to-batch-2."""

    def space_to_depth(
        self,
        data: Value,
        /,
        *,
        mode: Literal["blocks_first", "depth_first"],
        block_size: int = 1,
        name: str = "",
    ) -> Tensor:
        """Move space into depth: [N, C, D1 * b, ..., Dk * b] to [N, C * b^k, D1, ..., Dk]. Page movement/space-to-depth-1."""

    def sparse_fill_empty_rows(
        self,
        values: Value,
        dense_shape: Value,
        indices: Value,
        default_value: Value,
        /,
        *,
        name: str = "",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Put ``default_value`` into column 0 of each empty row of a sparse matrix. Page sparse/fill-empty-rows-16."""

    def split(
        self,
        data: Value,
        axis: Value,
        /,
        *,
        num_splits: int,
        name: str = "",
    ) -> tuple[Tensor, ...]:
        """Split ``data`` into ``num_splits`` equal parts along ``axis`` (scalar). Page movement/split-1."""

    def sqrt(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the square root of each element. Page arithmetic/sqrt-1."""

    def squared_difference(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Square the difference of two tensors. Page arithmetic/squared-difference-1."""

    def squeeze(
        self,
        data: Value,
        axes: Value | None = None,
        /,
        *,
        allow_axis_skip: bool = False,
        name: str = "",
    ) -> Tensor:
        """Return ``data`` without those of ``axes`` that have length 1. Page shape/squeeze-15."""

    def stft(
        self,
        signal: Value,
        window: Value,
        frame_size: Value,
        frame_step: Value,
        /,
        *,
        transpose_frames: bool,
        name: str = "",
    ) -> Tensor:
        """Compute Fourier transforms of overlapping frames, each weighted by the window. Page signals/stft-15."""

    def strided_slice(
        self,
        data: Value,
        begin: Value,
        end: Value,
        stride: Value | None = None,
        /,
        *,
        begin_mask: int | Iterable[int],
        end_mask: int | Iterable[int],
        new_axis_mask: int | Iterable[int] = (),
        shrink_axis_mask: int | Iterable[int] = (),
        ellipsis_mask: int | Iterable[int] = (),
        name: str = "",
    ) -> Tensor:
        """Select slices of ``data`` by ``begin``, ``end`` and ``stride`` (each [n]). Page movement/strided-slice-1."""

    def string_tensor_pack(
        self,
        begins: Value,
        ends: Value,
        symbols: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Decode the strings from ``begins`` to before ``ends`` (of equal shape) in UTF-8 bytes. Page type/string-tensor-pack-15."""

    def string_tensor_unpack(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the begin and end of each string, and all strings joined as UTF-8 bytes. Page type/string-tensor-unpack-15."""

    def subtract(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Subtract the second tensor from the first. Page arithmetic/subtract-1."""

    def swish(
        self,
        data: Value,
        beta: Value | None = None,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return x / (1 + e^(-beta x)); ``beta`` is a scalar or one element, 1 by default. Page activation/swish-4."""

    def tan(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the tangent of each element, in radians. Page arithmetic/tan-1."""

    def tanh(
        self,
        data: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Compute the hyperbolic tangent of each element. Page arithmetic/tanh-1."""

    def tile(
        self,
        data: Value,
        repeats: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Repeat ``data`` ``repeats`` [n] times along each axis. Page movement/tile-1."""

    def topk(
        self,
        data: Value,
        k: Value,
        /,
        *,
        axis: int,
        mode: Literal["max", "min"],
        sort: Literal["value", "index", "none"],
        stable: bool = False,
        index_element_type: ElementTypeLike = "i32",
        name: str = "",
    ) -> tuple[Tensor, Tensor]:
        """Return values and positions of the ``k`` (scalar) largest or smallest elements along ``axis``, ordered by value or position. Page sort/top-k-11."""

    def transpose(
        self,
        data: Value,
        order: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Permute the axes: axis i of the result is axis ``order[i]``. Page movement/transpose-1."""

    def unique(
        self,
        data: Value,
        axis: Value | None = None,
        /,
        *,
        sorted: bool = True,
        index_element_type: ElementTypeLike = "i64",
        count_element_type: ElementTypeLike = "i64",
        name: str = "",
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the distinct elements (slices along ``axis``), with their positions and counts. Page movement/unique-10."""

    def unsqueeze(
        self,
        data: Value,
        axes: Value,
        /,
        *,
        name: str = "",
    ) -> Tensor:
        """Return ``data`` with new axes of length 1. Page shape/unsqueeze-1."""

    def variadic_split(
        self,
        data: Value,
        axis: Value,
        split_lengths: Value,
        /,
        *,
        name: str = "",
    ) -> tuple[Tensor, ...]:
        """Split ``data`` along ``axis`` into parts of ``split_lengths`` [n]; one -1 takes the rest. Page movement/variadic-split-1."""

    def xor(
        self,
        left: Value,
        right: Value,
        /,
        *,
        auto_broadcast: Literal["numpy", "none", "pdpd", "explicit"] = "numpy",
        name: str = "",
    ) -> Tensor:
        """Return True where exactly one is true. Page logical/logical-xor-1."""
