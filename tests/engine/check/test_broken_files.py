"""Whatever a file says, a check reports and never fails."""

from __future__ import annotations

import random
import re

import pytest

from engine.check.check import check, checked
from engine.check.diagnostic import InvalidModel, Report
from engine.check.text import data, render
from engine.errors import ReadError
from engine.ir.model import Model
from engine.ops.catalogue import CATALOGUE
from engine.read import read_model
from tests.engine.check.documents import BASES, WEIGHTS

_VALUE = re.compile(r'"([^"\n]{0,20})"')
_ODD = ["", "-1", "0", "1", "2", "3", "4", "5", "8", "99", "-2", "9223372036854775807", "f32", "i64", "boolean", "string", "u1", "?", "..."]
_TYPES = [
    "Add",
    "Concat",
    "Reshape",
    "Loop",
    "If",
    "TensorIterator",
    "Parameter",
    "Result",
    "Range",
    "Broadcast",
    "TopK",
    "Split",
    "Gather",
]


def _mutated(text: str, chance: random.Random) -> str:
    """A few values replaced by others of the file, odd ones or operation types; a few lines removed, repeated or moved."""
    values = _VALUE.findall(text)
    for _ in range(chance.randint(1, 4)):
        match = chance.choice(list(_VALUE.finditer(text)))
        new = chance.choice([chance.choice(values), chance.choice(_ODD), chance.choice(_TYPES)])
        text = f'{text[: match.start()]}"{new}"{text[match.end() :]}'
    lines = text.split("\n")
    for _ in range(chance.randint(0, 2)):
        index, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        if chance.random() < 0.5:
            lines[index], lines[other] = lines[other], lines[index]
        else:
            lines.insert(other, lines[index])
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(60))
def test_a_check_never_fails(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        text = _mutated(chance.choice(list(BASES.values())), chance)
        try:
            model = read_model(text.encode(), WEIGHTS)
        except ReadError:
            continue
        report = check(model, CATALOGUE)
        assert isinstance(report, Report)
        assert render(report)
        assert data(report)["runnable"] is report.ok
        assert _refused(model) <= {one.code for one in report.errors}


def _refused(model: Model) -> set[str]:
    """The codes for which a model is not run."""
    try:
        checked(model, CATALOGUE)
    except InvalidModel as refused:
        return {one.code for one in refused.report.errors}
    return set()


def test_a_million_faults_make_a_report_that_can_be_read() -> None:
    edge = '<edge from-layer="9" from-port="0" to-layer="2" to-port="1"/>'
    text = BASES["flat"].replace("</edges>", edge * 20_000 + "</edges>")
    report = check(read_model(text.encode(), WEIGHTS), CATALOGUE)
    assert len(report.diagnostics) < 2_000
    rest = [one.code for one in report.errors if one.message.startswith("There are more than 1000 findings")]
    assert rest == ["LS103"]


def test_names_cannot_touch_a_terminal() -> None:
    text = BASES["flat"].replace('name="c"', 'name="&#9;\u202ex&quot;"').replace('name="x"', 'name="&#9;\u202ex&quot;"')
    shown = render(check(read_model(text.encode(), WEIGHTS), CATALOGUE))
    assert "LS109" in shown
    assert "\u202e" not in shown
    assert "\t" not in shown


def test_a_result_has_one_output() -> None:
    """Others would be asked for and never come."""
    text = re.sub(
        r'type="Add"(.*?)</output>', r'type="Result"\1<port id="3" precision="FP32"/></output>', BASES["flat"], count=1, flags=re.S
    )
    found = check(read_model(text.encode(), WEIGHTS), CATALOGUE)
    assert "LS305" in [one.code for one in found.diagnostics]
