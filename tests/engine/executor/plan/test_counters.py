"""Iteration numbers in every element type that a body's Parameter may declare."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from loopscope.executor.plan.body_ports import Counter
from loopscope.executor.plan.slots import Slot
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope_app.cli import main

COLLATZ = Path("sample_models/collatz")
NUMBERS = [one for one in ElementType if one is not ElementType.STRING]


@pytest.mark.parametrize("element_type", NUMBERS, ids=lambda one: one.value)
@pytest.mark.parametrize("shape", [(), (1,), (2, 0)], ids=str)
def test_a_number_is_in_the_declared_type(
    element_type: ElementType, shape: tuple[int, ...]
) -> None:
    counter = Counter(Slot(0), element_type, shape, LayerId(0))
    for iteration in (0, 1, 2, 63, 64, 255, 256, 60_000):
        number = np.asarray(counter.number(iteration))
        assert (number.dtype, number.shape) == (element_type.dtype, shape)
        if element_type.is_integer and element_type.dtype.names and number.size:
            assert (
                number[element_type.dtype.names[0]] == iteration % (1 << element_type.bits)
            ).all()


@pytest.mark.parametrize("element_type", ["u6", "u3", "u1", "i4"])
def test_commands_take_a_loop_with_such_a_counter(
    element_type: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (COLLATZ / "model.xml").read_text(encoding="utf-8")
    declared, count = re.subn(
        r'(name="iteration".*?element_type=")i64(".*?precision=")I64',
        rf"\g<1>{element_type}\g<2>{element_type.upper()}",
        text,
        flags=re.DOTALL,
    )
    assert count == 1
    (tmp_path / "model.xml").write_text(declared, encoding="utf-8")
    (tmp_path / "model.bin").write_bytes((COLLATZ / "model.bin").read_bytes())
    model = str(tmp_path / "model.xml")
    assert main(["check", model]) == 0
    assert main(["run", model, "--inputs", "number=27"]) == 0
    assert main(["matrix", model, "main/while_not_one", "--inputs", "number=27"]) == 0
    assert "iteration" in capsys.readouterr().out
