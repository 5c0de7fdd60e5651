"""Category sequence of the OpenVINO operation specs."""

from __future__ import annotations

from engine.ir.element_type import ANY_TYPE, INDEX_TYPES, REAL_FLOATS, ElementType
from engine.ops.declare import Attribute, Operation
from engine.ops.elements import COMPUTED_INTEGERS
from engine.ops.sequence.attention import infer_attention, scaled_dot_product_attention
from engine.ops.sequence.ctc import (
    ctc_greedy_decoder,
    ctc_greedy_decoder_with_lengths,
    ctc_loss,
    infer_ctc_greedy_decoder,
    infer_ctc_greedy_decoder_with_lengths,
    infer_ctc_loss,
)
from engine.ops.sequence.gru import gru_cell, gru_sequence
from engine.ops.sequence.lstm import lstm_cell, lstm_cell_with_peepholes, lstm_sequence
from engine.ops.sequence.one_hot import infer_one_hot, one_hot
from engine.ops.sequence.recurrent import ACTIVATIONS, DIRECTIONS, infer_cell, infer_sequence
from engine.ops.sequence.rnn import rnn_cell, rnn_sequence


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

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="CTCGreedyDecoder",
        version=1,
        opsets=(1, 16),
        page="sequence/ctc-greedy-decoder-1",
        kernel=ctc_greedy_decoder,
        infer=infer_ctc_greedy_decoder,
        inputs=(2, 2),
        attributes=(Attribute("ctc_merge_repeated", "bool", True),),
        types=(REAL_FLOATS,),
    ),
    Operation(
        name="CTCGreedyDecoderSeqLen",
        version=6,
        opsets=(6, 16),
        page="sequence/ctc-greedy-decoder-seq-len-6",
        kernel=ctc_greedy_decoder_with_lengths,
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
    Operation(
        name="CTCLoss",
        version=4,
        opsets=(4, 16),
        page="sequence/ctc-loss-4",
        kernel=ctc_loss,
        infer=infer_ctc_loss,
        inputs=(4, 5),
        attributes=(
            Attribute("preprocess_collapse_repeated", "bool", False),
            Attribute("ctc_merge_repeated", "bool", True),
            Attribute("unique", "bool", False),
        ),
        types=(REAL_FLOATS, INDEX_TYPES),
    ),
    Operation(
        name="LSTMCell",
        version=1,
        opsets=(1, 3),
        page="sequence/lstm-cell-1",
        kernel=lstm_cell_with_peepholes,
        infer=infer_cell(2),
        inputs=(5, 7),
        outputs=2,
        attributes=(
            *_recurrent("sigmoid", "tanh", "tanh"),
            Attribute("input_forget", "bool", False),
            Attribute("weights_format", "str", "fico", allowed=("fico", "icof", "ifco", "ifoc", "iofc")),
        ),
        types=(REAL_FLOATS,),
    ),
    Operation(
        name="LSTMCell",
        version=4,
        opsets=(4, 16),
        page="sequence/lstm-cell-1",
        kernel=lstm_cell,
        infer=infer_cell(2),
        inputs=(5, 6),
        outputs=2,
        attributes=_recurrent("sigmoid", "tanh", "tanh"),
        types=(REAL_FLOATS,),
    ),
    Operation(
        name="LSTMSequence",
        version=5,
        opsets=(5, 16),
        page="sequence/lstm-sequence-5",
        kernel=lstm_sequence,
        infer=infer_sequence(2),
        inputs=(7, 7),
        outputs=3,
        attributes=(*_recurrent("sigmoid", "tanh", "tanh"), _DIRECTION),
        types=(REAL_FLOATS, REAL_FLOATS, REAL_FLOATS, COMPUTED_INTEGERS, REAL_FLOATS),
    ),
    Operation(
        name="GRUCell",
        version=3,
        opsets=(3, 16),
        page="sequence/gru-cell-3",
        kernel=gru_cell,
        infer=infer_cell(1),
        inputs=(4, 5),
        attributes=(*_recurrent("sigmoid", "tanh"), _LINEAR),
        types=(REAL_FLOATS,),
    ),
    Operation(
        name="GRUSequence",
        version=5,
        opsets=(5, 16),
        page="sequence/gru-sequence-5",
        kernel=gru_sequence,
        infer=infer_sequence(1),
        inputs=(6, 6),
        outputs=2,
        attributes=(*_recurrent("sigmoid", "tanh"), _DIRECTION, _LINEAR),
        types=_SEQUENCE_TYPES,
    ),
    Operation(
        name="RNNCell",
        version=1,
        opsets=(1, 16),
        page="sequence/rnn-cell-3",
        kernel=rnn_cell,
        infer=infer_cell(1),
        inputs=(4, 5),
        attributes=_recurrent("tanh"),
        types=(REAL_FLOATS,),
    ),
    Operation(
        name="RNNSequence",
        version=5,
        opsets=(5, 16),
        page="sequence/rnn-sequence-5",
        kernel=rnn_sequence,
        infer=infer_sequence(1),
        inputs=(6, 6),
        outputs=2,
        attributes=(*_recurrent("tanh"), _DIRECTION),
        types=_SEQUENCE_TYPES,
    ),
    Operation(
        name="OneHot",
        version=1,
        opsets=(1, 15),
        page="sequence/one-hot-1",
        kernel=one_hot,
        infer=infer_one_hot,
        inputs=(4, 4),
        attributes=(Attribute("axis", "int"),),
        types=(INDEX_TYPES, INDEX_TYPES, ANY_TYPE),
    ),
    Operation(
        name="OneHot",
        version=16,
        opsets=(16, 16),
        page="sequence/one-hot-16",
        kernel=one_hot,
        infer=infer_one_hot,
        inputs=(4, 4),
        attributes=(
            Attribute("axis", "int"),
            # The page writes a hyphen, the runtime's files an underscore.
            Attribute("negative_indices_mode", "str", "ignore_negative", allowed=("ignore_negative", "ignore-negative", "normalize")),
        ),
        types=(INDEX_TYPES, INDEX_TYPES, ANY_TYPE),
    ),
    Operation(
        name="ScaledDotProductAttention",
        version=13,
        opsets=(13, 16),
        page="sequence/scaled-dot-product-attention",
        kernel=scaled_dot_product_attention,
        infer=infer_attention,
        inputs=(3, 6),
        attributes=(Attribute("causal", "bool"),),
        types=(REAL_FLOATS, REAL_FLOATS, REAL_FLOATS, REAL_FLOATS | {ElementType.BOOLEAN}, REAL_FLOATS),
    ),
)
