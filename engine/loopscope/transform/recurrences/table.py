"""The table of operators that are loops over time, and its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loopscope.builder.tensor import Tensor
from loopscope.ir.model import Dialect, Node
from loopscope.transform.recurrences import (
    gated_delta_net,
    linear_attention,
    microsoft_lstms,
    recurrent_layers,
    sums_and_decoders,
)
from loopscope.transform.recurrences.opening import Opening


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """An operator that is a loop: its roles, and the function that builds the loop."""

    type: str
    domain: str
    """Domain of ONNX (``ai.onnx``, ``com.microsoft``); ``openvino`` for OpenVINO's opsets."""
    inputs: tuple[str, ...]
    """Roles of the inputs, in order."""
    build: Callable[[Opening], tuple[Tensor, ...]]
    """Builds the loop and returns a tensor for each output of the operator.

    It computes in f32 where the operator has a narrower float, as the kernel does.
    """
    states: tuple[str, ...]
    """Names of the carried values in the body."""
    gates: tuple[str, ...] = ()
    """Names of the nodes of the body that are the gates of the recurrence."""
    data: str = "input"
    """Role of the input whose axis of time determines the number of iterations."""
    time_axis: int | None = 0
    """Axis of time in ``data``; None if the operator must be opened to know it."""
    axis_role: str = ""
    """Role of the constant input that is the axis of time, instead of ``time_axis``."""


_LSTM_GATES = ("input_gate", "forget_gate", "cell_gate", "output_gate")
_GRU_GATES = ("update_gate", "reset_gate", "candidate")
_DELTA_GATES = ("decay_factor", "beta_by_head", "delta")
_ONNX, _MICROSOFT, _OPENVINO = "ai.onnx", "com.microsoft", "openvino"

ROWS: tuple[Recurrence, ...] = (
    Recurrence(
        type="LSTM",
        domain=_ONNX,
        inputs=recurrent_layers.ONNX_INPUTS,
        build=recurrent_layers.onnx_lstm,
        states=("hidden", "cell"),
        gates=_LSTM_GATES,
    ),
    Recurrence(
        type="GRU",
        domain=_ONNX,
        inputs=recurrent_layers.ONNX_INPUTS[:6],
        build=recurrent_layers.onnx_gru,
        states=("hidden",),
        gates=_GRU_GATES,
    ),
    Recurrence(
        type="RNN",
        domain=_ONNX,
        inputs=recurrent_layers.ONNX_INPUTS[:6],
        build=recurrent_layers.onnx_rnn,
        states=("hidden",),
    ),
    Recurrence(
        type="CumSum",
        domain=_ONNX,
        inputs=("input", "axis"),
        build=sums_and_decoders.cumulative_sum,
        states=("sum",),
        axis_role="axis",
    ),
    *(
        Recurrence(
            type="LinearAttention",
            domain=domain,
            inputs=linear_attention.INPUTS,
            build=linear_attention.linear_attention,
            states=("state",),
            gates=_DELTA_GATES,
            data="query",
            time_axis=1,
        )
        for domain in (_ONNX, _MICROSOFT)
    ),
    *(
        Recurrence(
            type="CausalConvWithState",
            domain=domain,
            inputs=linear_attention.CONVOLUTION_INPUTS,
            build=linear_attention.causal_convolution,
            states=("state",),
            time_axis=2,
        )
        for domain in (_ONNX, _MICROSOFT)
    ),
    Recurrence(
        type="VarlenCausalConvWithState",
        domain=_MICROSOFT,
        inputs=linear_attention.RAGGED_INPUTS,
        build=linear_attention.ragged_causal_convolution,
        states=("states",),
    ),
    Recurrence(
        type="GatedDeltaNet",
        domain=_MICROSOFT,
        inputs=gated_delta_net.INPUTS,
        build=gated_delta_net.gated_delta_net,
        states=("state",),
        gates=_DELTA_GATES,
        data="query",
        time_axis=None,
    ),
    Recurrence(
        type="GatedDeltaNetStateReplay",
        domain=_MICROSOFT,
        inputs=gated_delta_net.REPLAY_INPUTS,
        build=gated_delta_net.replayed_state,
        states=("state",),
        data="",
    ),
    Recurrence(
        type="DynamicQuantizeLSTM",
        domain=_MICROSOFT,
        inputs=microsoft_lstms.QUANTIZED_INPUTS,
        build=microsoft_lstms.quantized_lstm,
        states=("hidden", "cell"),
        gates=_LSTM_GATES,
    ),
    Recurrence(
        type="AttnLSTM",
        domain=_MICROSOFT,
        inputs=microsoft_lstms.ATTENTION_INPUTS,
        build=microsoft_lstms.attention_lstm,
        states=("hidden", "cell", "attention"),
        gates=(*_LSTM_GATES, "alignment"),
    ),
    Recurrence(
        type="LSTMSequence",
        domain=_OPENVINO,
        inputs=recurrent_layers.LSTM_INPUTS,
        build=recurrent_layers.lstm_sequence,
        states=("hidden", "cell"),
        gates=_LSTM_GATES,
        time_axis=1,
    ),
    Recurrence(
        type="GRUSequence",
        domain=_OPENVINO,
        inputs=recurrent_layers.ONE_STATE_INPUTS,
        build=recurrent_layers.gru_sequence,
        states=("hidden",),
        gates=_GRU_GATES,
        time_axis=1,
    ),
    Recurrence(
        type="AUGRUSequence",
        domain=_OPENVINO,
        inputs=recurrent_layers.AUGRU_INPUTS,
        build=recurrent_layers.augru_sequence,
        states=("hidden",),
        gates=(*_GRU_GATES, "attended_update"),
        time_axis=1,
    ),
    Recurrence(
        type="GatedDeltaNet",
        domain=_OPENVINO,
        inputs=gated_delta_net.OPENVINO_INPUTS,
        build=gated_delta_net.openvino_gated_delta_net,
        states=("state",),
        gates=_DELTA_GATES,
        data="query",
        time_axis=1,
    ),
    Recurrence(
        type="RNNSequence",
        domain=_OPENVINO,
        inputs=recurrent_layers.ONE_STATE_INPUTS,
        build=recurrent_layers.rnn_sequence,
        states=("hidden",),
        time_axis=1,
    ),
    Recurrence(
        type="CumSum",
        domain=_OPENVINO,
        inputs=("input", "axis"),
        build=sums_and_decoders.cumulative_sum,
        states=("sum",),
        axis_role="axis",
    ),
    Recurrence(
        type="CTCGreedyDecoder",
        domain=_OPENVINO,
        inputs=("input", "mask"),
        build=sums_and_decoders.greedy_decoder,
        states=("classes", "count", "previous"),
    ),
    Recurrence(
        type="CTCGreedyDecoderSeqLen",
        domain=_OPENVINO,
        inputs=("input", "lengths", "blank_index"),
        build=sums_and_decoders.greedy_decoder_with_lengths,
        states=("classes", "count", "previous"),
        time_axis=1,
    ),
)

_BY_NAME: Mapping[tuple[str, str], Recurrence] = {(row.domain, row.type): row for row in ROWS}


def recurrence_of(node: Node, dialect: Dialect) -> Recurrence | None:
    """Return the row of an operator; None if it is not a loop over time."""
    if node.bodies:
        return None
    domain = _OPENVINO
    if dialect == "onnx" and not node.opset.startswith("opset"):
        domain = node.opset.rpartition(" ")[0]
    return _BY_NAME.get((domain, node.type))
