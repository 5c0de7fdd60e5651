"""Addresses as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.ir import readable, readable_steps
from loopscope.ir.address import encode


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("main", "main"),
        ("main/Add", "Add"),
        ("Add", "Add"),
        ("main/layers.0%2Fattn%2FGather_0", "layers.0/attn › Gather_0"),
        ("main/%2Fmodel%2FMatMul_1", "model › MatMul_1"),
        ("main/loop[0]/body", "loop · iteration 0"),
        ("main/loop/body/Add:1", "loop › Add · output 1"),
        ("main/loop[*]/body/if/else/Add", "loop · every iteration › if · else › Add"),
        ("main/s%2Floop[7]/body/s%2Fq", "s › loop · iteration 7 › q"),
        ("main/s%2Floop[7]/body/s%2Finner%2Fq", "s › loop · iteration 7 › inner › q"),
        ("main/s%2Floop[7]/body/t%2Fq", "s › loop · iteration 7 › t › q"),
        ("main/body/body/then", "body › then"),
        ("main/scope%2F", "scope/"),
        ("main/%2F", "/"),
        ("main/Add~12", "Add~12"),
        ("main/custom[1]/graph_of_it/x", "custom · iteration 1 · graph_of_it › x"),
    ],
)
def test_an_address_in_words(address: str, words: str) -> None:
    assert readable(address) == words


@given(st.text(min_size=1, max_size=20))
def test_every_name_can_be_read(name: str) -> None:
    assert (
        "".join(readable_steps(f"main/{encode(name)}/body/x")).replace("/", "")
        == name.replace("/", "") + "x"
    )
