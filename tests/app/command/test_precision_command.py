"""``loopscope precision`` as a user calls it."""

from __future__ import annotations

import json

import pytest

import loopscope
from loopscope_app import cli
from loopscope_samples import FOLDER

WORDS = [
    "precision", str(FOLDER / "linear_attention" / "model.xml"), "--to", "int8",
    "--inputs", str(FOLDER / "linear_attention" / "inputs" / "sixty_tokens.npz"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tolerance", "stay", "scope"),
    [("0.1", [], []), ("0.005", ["main/for_each_token/body/S"], [])],
)
def test_what_has_to_stay(
    tolerance: str, stay: list[str], scope: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*WORDS, "--tolerance", tolerance, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["stay"], told["ignored_scope"]) == (stay, scope)
    assert told["error"] <= float(tolerance)
    assert cli.main([*WORDS, "--tolerance", tolerance]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == told["sentence"]
    assert (f"nncf.IgnoredScope(names={json.dumps(scope)})" in lines) == bool(scope)
    assert (
        lines[-1].startswith(
            "1 of those that must not be rounded is inside loops or branches: NNCF compresses"
        )
    ) == bool(stay)


def test_the_scope_has_the_names_that_nncf_knows(capsys: pytest.CaptureFixture[str]) -> None:
    """NNCF refuses a scope with a name that the outermost graph does not have."""
    folder = FOLDER / "hybrid_stack"
    words = ["precision", str(folder / "model.xml"), "--to", "int8", "--tolerance", "0.005"]
    words += ["--inputs", str(folder / "inputs" / "twelve_tokens.npz")]
    assert cli.main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert any(address.count("/") > 1 for address in told["stay"])
    assert told["ignored_scope"]
    assert set(told["ignored_scope"]) <= {
        node.name for node in loopscope.read_model(folder / "model.xml").graph.nodes
    }


def test_a_type_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([*WORDS[:3], "fp3"])
    assert "bf16" in capsys.readouterr().err
