"""Rows of ONNX's spectra and window functions."""

from __future__ import annotations

from loopscope.ops.derivative import WithGaps, flat
from loopscope.ops.onnx import derivatives_of_spectra as spectrum_rules
from loopscope.ops.onnx import spectra
from loopscope.ops.onnx.row import OnnxRow, row

ROWS: tuple[OnnxRow, ...] = (
    row("BlackmanWindow", spectra.blackman_window, convert=True),
    row("DFT", spectra.dft, convert=True, gradient=WithGaps(spectrum_rules.dft)),
    row("HammingWindow", spectra.hamming_window, convert=True),
    row("HannWindow", spectra.hann_window, convert=True),
    row("MelWeightMatrix", gradient=flat),
    row("STFT", spectra.stft, convert=True, gradient=WithGaps(spectrum_rules.stft)),
)
