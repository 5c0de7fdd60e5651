"""Category sequence of the OpenVINO operation specs."""

from __future__ import annotations

from loopscope.ir.element_type import ANY_TYPE, INDEX_TYPES, REAL_FLOATS, ElementType
from loopscope.ops.declare import Attribute, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import matrix, recurrence, reduction
from loopscope.ops.kernel_arithmetic import COMPUTED_INTEGERS
from loopscope.ops.regular_tensors import infer_one_hot, one_hot
from loopscope.ops.sequence.attention import (
    gated_delta_net,
    infer_attention,
    infer_gated_delta_net,
    scaled_dot_product_attention,
)
from loopscope.ops.sequence.ctc import (
    ctc_greedy_decoder,
    ctc_greedy_decoder_with_lengths,
    ctc_loss,
    infer_ctc_greedy_decoder,
    infer_ctc_greedy_decoder_with_lengths,
    infer_ctc_loss,
)
from loopscope.ops.sequence.gru_and_rnn import (
    augru_sequence,
    gru_cell,
    gru_sequence,
    rnn_cell,
    rnn_sequence,
)
from loopscope.ops.sequence.lstm import lstm_cell, lstm_cell_with_peepholes, lstm_sequence
from loopscope.ops.sequence.recurrent import ACTIVATIONS, DIRECTIONS, infer_cell, infer_sequence


def _recurrent(*activations: str) -> tuple[Attribute, ...]:
    return (
        Attribute("hidden_size", "int", least=1),
        Attribute("activations", "strs", activations, allowed=ACTIVATIONS),
        Attribute("activations_alpha", "floats", ()),
        Attribute("activations_beta", "floats", ()),
        Attribute("clip", "float", float("inf"), least=0),
    )


_DIRECTION = Attribute("direction", "str", allowed=DIRECTIONS)
_LINEAR = Attribute("linear_before_reset", "bool", False)
_SEQUENCE_TYPES = (REAL_FLOATS, REAL_FLOATS, COMPUTED_INTEGERS, REAL_FLOATS)

_INDEX = (ElementType.I64, ElementType.I32)

row = family("sequence", types=(REAL_FLOATS,))

OPERATIONS: tuple[Operation, ...] = (
    row(
        "CTCGreedyDecoder",
        ctc_greedy_decoder,
        infer=infer_ctc_greedy_decoder,
        inputs=(2, 2),
        attributes=(Attribute("ctc_merge_repeated", "bool", True),),
    ),
    row(
        "CTCGreedyDecoderSeqLen",
        ctc_greedy_decoder_with_lengths,
        version=6,
        infer=infer_ctc_greedy_decoder_with_lengths,
        inputs=(2, 3),
        outputs=2,
        attributes=(
            Attribute("merge_repeated", "bool", True),
            Attribute("classes_index_type", "type", ElementType.I32, allowed=_INDEX),
            Attribute("sequence_length_type", "type", ElementType.I32, allowed=_INDEX),
        ),
        types=(REAL_FLOATS, INDEX_TYPES),
    ),
    row(
        "CTCLoss",
        ctc_loss,
        version=4,
        infer=infer_ctc_loss,
        inputs=(4, 5),
        attributes=(
            Attribute("preprocess_collapse_repeated", "bool", False),
            Attribute("ctc_merge_repeated", "bool", True),
            Attribute("unique", "bool", False),
        ),
        types=(REAL_FLOATS, INDEX_TYPES),
    ),
    row(
        "LSTMCell",
        lstm_cell_with_peepholes,
        opsets=(1, 3),
        infer=infer_cell(2),
        inputs=(5, 7),
        outputs=2,
        attributes=(
            *_recurrent("sigmoid", "tanh", "tanh"),
            Attribute("input_forget", "bool", False),
            Attribute(
                "weights_format", "str", "fico", allowed=("fico", "icof", "ifco", "ifoc", "iofc")
            ),
        ),
        gradient=recurrence.lstm_cell,
    ),
    row(
        "LSTMCell",
        lstm_cell,
        version=4,
        page="sequence/lstm-cell-1",
        infer=infer_cell(2),
        inputs=(5, 6),
        outputs=2,
        attributes=_recurrent("sigmoid", "tanh", "tanh"),
        gradient=recurrence.lstm_cell,
    ),
    row(
        "LSTMSequence",
        lstm_sequence,
        version=5,
        infer=infer_sequence(2),
        inputs=(7, 7),
        outputs=3,
        attributes=(*_recurrent("sigmoid", "tanh", "tanh"), _DIRECTION),
        types=(REAL_FLOATS, REAL_FLOATS, REAL_FLOATS, COMPUTED_INTEGERS, REAL_FLOATS),
        gradient=recurrence.through_cells("LSTMCell", recurrence.lstm_cell, states=2),
    ),
    row(
        "GRUCell",
        gru_cell,
        version=3,
        infer=infer_cell(1),
        inputs=(4, 5),
        attributes=(*_recurrent("sigmoid", "tanh"), _LINEAR),
        gradient=recurrence.gru_cell,
    ),
    row(
        "GRUSequence",
        gru_sequence,
        version=5,
        infer=infer_sequence(1),
        inputs=(6, 6),
        outputs=2,
        attributes=(*_recurrent("sigmoid", "tanh"), _DIRECTION, _LINEAR),
        types=_SEQUENCE_TYPES,
        gradient=recurrence.through_cells("GRUCell", recurrence.gru_cell, states=1),
    ),
    row(
        "AUGRUSequence",
        augru_sequence,
        page="AUGRUSequence",
        opset="ie_internal_opset",
        infer=infer_sequence(1),
        inputs=(7, 7),
        outputs=2,
        attributes=(
            *_recurrent("sigmoid", "tanh"),
            Attribute("direction", "str", "forward", allowed=("forward",)),
            _LINEAR,
        ),
        types=_SEQUENCE_TYPES,
    ),
    row(
        "GatedDeltaNet",
        gated_delta_net,
        page="GatedDeltaNet",
        opset="extension",
        infer=infer_gated_delta_net,
        inputs=(6, 6),
        outputs=2,
        attributes=(
            Attribute("fuse_qk_l2norm", "bool", False),
            Attribute("q_l2_norm_eps", "float", 1e-6),
            Attribute("k_l2_norm_eps", "float", 1e-6),
        ),
    ),
    row(
        "RNNCell",
        rnn_cell,
        page="sequence/rnn-cell-3",
        infer=infer_cell(1),
        inputs=(4, 5),
        attributes=_recurrent("tanh"),
        gradient=recurrence.rnn_cell,
    ),
    row(
        "RNNSequence",
        rnn_sequence,
        version=5,
        infer=infer_sequence(1),
        inputs=(6, 6),
        outputs=2,
        attributes=(*_recurrent("tanh"), _DIRECTION),
        types=_SEQUENCE_TYPES,
        gradient=recurrence.through_cells("RNNCell", recurrence.rnn_cell, states=1),
    ),
    row(
        "OneHot",
        one_hot,
        opsets=(1, 15),
        infer=infer_one_hot,
        inputs=(4, 4),
        attributes=(Attribute("axis", "int"),),
        types=(INDEX_TYPES, INDEX_TYPES, ANY_TYPE),
        gradient=reduction.one_hot,
    ),
    row(
        "OneHot",
        one_hot,
        version=16,
        infer=infer_one_hot,
        inputs=(4, 4),
        attributes=(
            Attribute("axis", "int"),
            # The page writes a hyphen, the runtime's files an underscore.
            Attribute(
                "negative_indices_mode",
                "str",
                "ignore_negative",
                allowed=("ignore_negative", "ignore-negative", "normalize"),
            ),
        ),
        types=(INDEX_TYPES, INDEX_TYPES, ANY_TYPE),
        gradient=reduction.one_hot,
    ),
    row(
        "ScaledDotProductAttention",
        scaled_dot_product_attention,
        version=13,
        page="sequence/scaled-dot-product-attention",
        infer=infer_attention,
        inputs=(3, 6),
        attributes=(Attribute("causal", "bool"),),
        types=(
            REAL_FLOATS,
            REAL_FLOATS,
            REAL_FLOATS,
            REAL_FLOATS | {ElementType.BOOLEAN},
            REAL_FLOATS,
        ),
        gradient=matrix.scaled_dot_product_attention,
    ),
)
