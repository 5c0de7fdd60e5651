"""Where a runtime runs something else in place of a loop, and outputs differ while all inside
agrees, that is what is said.
"""

from __future__ import annotations

from pathlib import Path

import openvino as ov
import pytest

import loopscope
from loopscope.peers import ComparisonReport, against
from loopscope_samples.recipes import linear_attention


def compared(model: ov.Model, tokens: int, folder: Path) -> ComparisonReport:
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    inputs = linear_attention.inputs(tokens, seed=1)
    debugger = loopscope.Debugger(loopscope.read_model(folder / "model.xml"), inputs)
    debugger.run()
    return against(debugger, inputs)


@pytest.mark.parametrize(
    ("trips", "ran"), [(5, "5 iterations (trip count 5)"), (1, "1 iteration (trip count 1)")]
)
def test_a_fused_loop_reads_slices_that_the_loop_does_not(
    trips: int, ran: str, tmp_path: Path
) -> None:
    report = compared(linear_attention.model(trips), 16, tmp_path)
    assert not report.outputs_agree
    assert report.first is None
    runs, begins = report.replaced
    assert (
        runs
        == f"{report.runtime} runs 'for_each_token' as one GatedDeltaNet, which reads all 16 slices; the loop runs {ran}."
    )
    assert begins.startswith(
        f"What runs in place of 'for_each_token' begins to differ at iteration {trips}, along axis 2 of its output "
    )
    assert f"{runs} {begins}" in report.sentence
    assert "cannot be said" not in report.sentence


def test_a_fused_loop_that_visits_every_slice_is_no_finding(tmp_path: Path) -> None:
    report = compared(linear_attention.model(), 16, tmp_path)
    assert report.agrees
    assert report.replaced == ()
