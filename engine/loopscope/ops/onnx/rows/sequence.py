"""Rows of ONNX's recurrent operations and attention."""

from __future__ import annotations

from loopscope.ops.derivative import WithGaps
from loopscope.ops.onnx import attention, causal_convolution, linear_attention, recurrent
from loopscope.ops.onnx import derivatives_of_attention as attention_rules
from loopscope.ops.onnx import derivatives_of_recurrence as recurrence_rules
from loopscope.ops.onnx.row import OnnxRow, row

ROWS: tuple[OnnxRow, ...] = (
    row(
        "Attention",
        attention.attention,
        since=23,
        counts_outputs=True,
        gradient=WithGaps(attention_rules.attention),
    ),
    row("CausalConvWithState", causal_convolution.causal_convolution, since=27, convert=True),
    row("GRU", recurrent.gru, until=6, convert=True),
    row("GRU", recurrent.gru, since=7, convert=True, gradient=WithGaps(recurrence_rules.gru)),
    row("LinearAttention", linear_attention.linear_attention, since=27, convert=True),
    row("LSTM", recurrent.lstm, until=6, convert=True),
    row("LSTM", recurrent.lstm, since=7, convert=True, gradient=WithGaps(recurrence_rules.lstm)),
    row("RNN", recurrent.rnn, until=6, convert=True),
    row("RNN", recurrent.rnn, since=7, convert=True, gradient=WithGaps(recurrence_rules.rnn)),
    row("RotaryEmbedding", gradient=WithGaps(attention_rules.rotary_embedding)),
)
