"""Reading a repeated block once gives the Model that reading it every time gives, whatever
stands in and between the blocks.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.errors import ReadError
from loopscope.ir.model import Model, Node
from loopscope.read import read_model
from loopscope.read.openvino import repeated_blocks
from tests.engine.read.documents import ADDITION, WEIGHTS

LAYER = (
    '<layer id="{}" name="relu" type="Relu" version="opset1">\n<input><port id="0" precision="FP32"><dim>3</dim></port></input>\n'
    '<output><port id="1" precision="FP32"><dim>3</dim></port></output>\n</layer>\n'
)
REPEATED = ADDITION.replace(
    "</layers>", "".join(LAYER.format(layer) for layer in range(4, 8)) + "</layers>"
)
TAGS = [match.start() for match in re.finditer("<", REPEATED)]
ODD = st.sampled_from(
    [
        "<input/>",
        "<output></output>",
        "<layer/>",
        "<!-- </input> -->",
        "<!-- </layer> -->",
        "<![CDATA[</layer>]]>",
        "<rt_info><input/><layer/></rt_info>",
        "text > text",
    ]
)
PIECE = st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)).map(
    lambda ends: REPEATED[min(ends) : min(ends) + abs(ends[0] - ends[1]) % 700]
)


def read(document: str) -> Model | str:
    try:
        return read_model(document.encode(), WEIGHTS)
    except ReadError as error:
        return str(error)


def everything(node: Node) -> tuple[object, ...]:
    return node.id, node.name, node.attributes, node.inputs, node.outputs, node.rt_info, node.line


@given(st.lists(st.tuples(st.sampled_from(TAGS), ODD | PIECE), max_size=4))
def test_reading_once_is_reading_every_time(changes: list[tuple[int, str]]) -> None:
    document = REPEATED
    for place, text in sorted(changes, reverse=True):
        document = document[:place] + text + document[place:]
    once = read(document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated_blocks, "_MAX_BLOCK_BYTES", 0)
        every = read(document)
    if isinstance(once, str) or isinstance(every, str):
        assert once == every
    else:
        assert [everything(node) for node in once.graph.nodes] == [
            everything(node) for node in every.graph.nodes
        ]
        assert once.graph.edges == every.graph.edges
