"""What a failed run says stands on the page to its last word, however long the sentence is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from onnx import parser
from streamlit.testing.v1 import AppTest


def test_a_failure_is_told_to_its_end(opened: Callable[..., AppTest], tmp_path: Path) -> None:
    names = [f"x{number}" for number in range(60)]
    text = f"""<ir_version: 9, opset_import: ["" : 18]> one ({", ".join(f"float[3] {name}" for name in names)})
        => (float[M] y) {{ longer = Concat <axis = 0> (x0, x0) y = Sum ({", ".join(names)}, longer) }}"""
    (tmp_path / "m.onnx").write_bytes(parser.parse_model(text).SerializeToString())
    app = opened(model=str(tmp_path / "m.onnx"))
    app.button("transport_run").click().run()
    found = " ".join(str(one.proto.body) for one in app.get("html"))
    told = re.search(r"It stopped.*?failed: [^<]*", found)
    assert told is not None
    assert told[0].count("f32[3] = [") == 60
    assert "f32[6] = [" in told[0].rpartition(";")[2], "the last of the inputs, which is the odd one"
    assert "…" not in told[0]
