"""Files of which no Model can be made: each is refused with one sentence that says what, where
and what to do.
"""

from __future__ import annotations

import gc
import io
from pathlib import Path
from typing import IO, cast

import pytest

from loopscope.errors import ReadError
from loopscope.read import ReadLimits, open_archive, read_model
from tests.engine.read.documents import ADDITION, NESTED_WEIGHTS, WEIGHTS, nested_loops

CONST = 'element_type="f32" shape="3" offset="0" size="12"'

BROKEN = {
    "no end": ("</net>", "", "line 63: this is not well-formed XML: the file ends too early"),
    "a stray tag": (
        "</layers>",
        "</layer>",
        "line 50: this is not well-formed XML: mismatched tag in column 4",
    ),
    "old": (
        'version="11"',
        'version="7"',
        "line 2: <net> has version '7', expected 10 or 11: convert the original model again with a current OpenVINO",
    ),
    "no version": (' version="11"', "", "line 2: <net> has no version, expected 10 or 11"),
    "another root": (
        "net",
        "model",
        "line 2: the outermost element is <model>, expected <net> as in an OpenVINO IR of version 10 or 11",
    ),
    "no layers": (
        "layers",
        "lawyers",
        "line 62: <layers> is missing, expected <layers> and <edges>",
    ),
    "no id": (
        'layer id="2"',
        "layer",
        "line 21: <layer> lacks the required attribute 'id'",
    ),
    "id no number": (
        'layer id="2"',
        'layer id="two"',
        "attribute 'id' of <layer> is 'two', expected a whole number",
    ),
    "id negative": (
        'layer id="2"',
        'layer id="-2"',
        "attribute 'id' of <layer> is -2, expected 0 or more",
    ),
    "id endless": (
        'layer id="2"',
        f'layer id="{"9" * 5000}"',
        "attribute 'id' of <layer> is '9999999999",
    ),
    "id of other digits": (
        'layer id="2"',
        'layer id="²"',
        "attribute 'id' of <layer> is '²', expected a whole number",
    ),
    "no type": (' type="Add"', "", "line 21: <layer> lacks the required attribute 'type'"),
    "no opset": (
        'type="Add" version="opset1"',
        'type="Add"',
        "line 21: <layer> lacks the required attribute 'version'",
    ),
    "no name": ('name="sum" ', "", "line 21: <layer> lacks the required attribute 'name'"),
    "output without precision": (
        '<port id="2" precision="FP32"',
        '<port id="2"',
        "line 39, main/sum (Add opset1): <port> lacks the required attribute 'precision'",
    ),
    "output of no type": (
        '<port id="2" precision="FP32"',
        '<port id="2" precision="FP99"',
        "main/sum (Add opset1): attribute 'precision' of <port> is 'FP99', expected a type such as FP32, I64 or BOOL",
    ),
    "port without id": (
        '<port id="2" precision="FP32" names="y">',
        "<port>",
        "line 39, main/sum (Add opset1): <port> lacks the required attribute 'id'",
    ),
    "dim no length": (
        "<dim>3</dim>",
        "<dim>nan</dim>",
        "main/x (Parameter opset1): <dim> is 'nan', expected a length or -1",
    ),
    "dim negative": ("<dim>3</dim>", "<dim>-3</dim>", "<dim> is '-3', expected a length or -1"),
    "dim endless": (
        "<dim>3</dim>",
        f"<dim>{'9' * 30}</dim>",
        "<dim> is '999999999999999999999999999999', expected a length or -1",
    ),
    "parameter shape": (
        'shape="?,3"',
        'shape="?,x"',
        "main/x (Parameter opset1): 'x' is not a dimension: expected a length, '?'",
    ),
    "parameter shape empty": (
        'shape="?,3"',
        'shape="5..2"',
        "main/x (Parameter opset1): a dimension from 5 to 2 is empty",
    ),
    "edge half": (
        ' to-layer="3"',
        "",
        "line 54: <edge> lacks the required attribute 'to-layer'",
    ),
    "edge no number": (
        ' to-layer="3"',
        ' to-layer="x"',
        "attribute 'to-layer' of <edge> is 'x', expected a whole number",
    ),
    "const bare": (
        f"<data {CONST} />",
        "",
        "main/c (Const opset1): it has no <data>, expected element_type, shape, offset and size",
    ),
    "const type": (
        CONST,
        CONST.replace("f32", "FP32"),
        "line 14, main/c (Const opset1): element_type is 'FP32', expected one such as 'f32'",
    ),
    "const shape": (
        CONST,
        CONST.replace('"3"', '"?"'),
        "shape is '?', expected lengths such as '4, 3'",
    ),
    "const negative": (
        CONST,
        CONST.replace('"3"', '"-3"'),
        "shape is '-3', expected lengths such as '4, 3'",
    ),
    "const no size": (
        CONST,
        CONST.replace(' size="12"', ""),
        "<data> lacks the required attribute 'size'",
    ),
    "const small": (
        CONST,
        CONST.replace('"12"', '"11"'),
        "size is 11 bytes, but 3 elements of f32 take 12",
    ),
    "const terabyte": (
        CONST,
        'element_type="f32" shape="250000000000" offset="0" size="1000000000000"',
        "its data is declared as bytes 0 to 1000000000000 of the weights, which have 12 bytes: the weights file is cut short",
    ),
    "const absurd": (
        CONST,
        CONST.replace('"3"', f'"0,{"9" * 18},{"9" * 18}"'),
        "larger than any array: at most 64 dimensions and 2^58 elements",
    ),
    "const many dimensions": (
        CONST,
        CONST.replace('"3"', f'"{"1," * 70}1"'),
        "larger than any array",
    ),
    "const outside": (
        CONST,
        CONST.replace('offset="0"', 'offset="1"'),
        "bytes 1 to 13 of the weights, which have 12 bytes",
    ),
    "const far outside": (
        CONST,
        CONST.replace('offset="0"', f'offset="{2**62}"'),
        "of the weights, which have 12 bytes",
    ),
    **{
        f"const at {name}": (CONST, CONST.replace('offset="0"', f'offset="{offset}"'), message)
        for name, offset, message in (
            (
                "2^63 - 1",
                2**63 - 1,
                f"bytes {2**63 - 1} to {2**63 + 11} of the weights, which have 12 bytes",
            ),
            ("2^63", 2**63, "of the weights, which have 12 bytes"),
            (
                "2^64 - 12",
                2**64 - 12,
                f"attribute 'offset' of <data> is '{2**64 - 12}', expected a whole number",
            ),
            ("-2^63", -(2**63), f"attribute 'offset' of <data> is {-(2**63)}, expected 0 or more"),
        )
    },
    "const long": (
        CONST,
        CONST.replace('size="12"', f'size="{2**63 - 1}"'),
        f"bytes 0 to {2**63 - 1} of the weights, which have 12 bytes",
    ),
    "const longer": (
        CONST,
        CONST.replace('"12"', '"13"'),
        "bytes 0 to 13 of the weights, which have 12 bytes",
    ),
    "const before": (
        CONST,
        CONST.replace('offset="0"', 'offset="-1"'),
        "attribute 'offset' of <data> is -1, expected 0 or more",
    ),
    "port map number": (
        "<data auto",
        '<port_map><input external_port_id="x" internal_layer_id="0"/></port_map><data auto',
        "main/sum (Add opset1): attribute 'external_port_id' of <input> is 'x', expected a whole number",
    ),
    "port map half": (
        "<data auto",
        "<port_map><output external_port_id='1'/></port_map><data auto",
        "<output> lacks the required attribute 'internal_layer_id'",
    ),
    "port map below": (
        "<data auto",
        "<port_map><output external_port_id='-2' internal_layer_id='0'/></port_map><data auto",
        "external_port_id of <output> is -2, expected a port number, or -1 for none",
    ),
    "back edge half": (
        "<data auto",
        "<back_edges><edge from-layer='1'/></back_edges><data auto",
        "<edge> lacks the required attribute 'to-layer'",
    ),
    "body empty": (
        "<data auto",
        "<body/><data auto",
        "main/sum/body (Add opset1): <layers> is missing",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_document_is_refused_in_one_sentence(old: str, new: str, message: str) -> None:
    assert old in ADDITION
    with pytest.raises(ReadError) as caught:
        read_model(ADDITION.replace(old, new).encode(), WEIGHTS)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 400


DOCTYPES = {
    "entity": '<!DOCTYPE net [<!ENTITY a "b">]>',
    "laughs": '<!DOCTYPE net [<!ENTITY a "b"><!ENTITY c "&a;&a;&a;">]>',
    "file": '<!DOCTYPE net [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
    "parameter entity": '<!DOCTYPE net [<!ENTITY % a SYSTEM "http://127.0.0.1/x.dtd"> %a;]>',
    "element": "<!DOCTYPE net [<!ELEMENT net ANY>]>",
    "attribute default": '<!DOCTYPE net [<!ATTLIST net version CDATA "11">]>',
    "external": '<!DOCTYPE net SYSTEM "http://127.0.0.1/net.dtd">',
    "public": '<!DOCTYPE net PUBLIC "-//A//B" "net.dtd">',
}


@pytest.mark.parametrize("doctype", DOCTYPES.values(), ids=DOCTYPES.keys())
def test_whatever_a_dtd_declares_is_refused(doctype: str) -> None:
    with pytest.raises(ReadError, match=r"the DOCTYPE .* remove the DOCTYPE"):
        read_model(ADDITION.replace("<net", doctype + "<net").encode(), WEIGHTS)


def test_an_entity_that_nobody_declared_is_refused() -> None:
    with pytest.raises(ReadError, match="undefined entity"):
        read_model(ADDITION.replace('name="sum"', 'name="&sum;"').encode(), WEIGHTS)


@pytest.mark.parametrize("depth", [1001, 10_000])
def test_bodies_deeper_than_the_limit_are_refused(depth: int) -> None:
    with pytest.raises(
        ReadError,
        match=r"main/loop/body/loop/body/loop/\.\.\./.*: bodies are nested deeper than 1000, the limit 'depth'",
    ):
        read_model(nested_loops(depth).encode(), NESTED_WEIGHTS)
    assert gc.isenabled()


def test_information_deeper_than_the_limit_is_refused() -> None:
    deep = "<a>" * 100_000 + "</a>" * 100_000
    with pytest.raises(ReadError, match="nested deeper than 64, the limit 'information_depth'"):
        read_model(
            ADDITION.replace("<conversion_parameters>", deep + "<conversion_parameters>").encode(),
            WEIGHTS,
        )


def test_unknown_elements_of_any_depth_are_passed_over() -> None:
    deep = "<a>" * 100_000 + "</a>" * 100_000
    assert read_model(ADDITION.replace("<edges>", deep + "<edges>").encode(), WEIGHTS).graph.edges


LONG = "n" * 2**20


@pytest.mark.parametrize(
    "place",
    [
        'name="sum"',
        'type="Add"',
        'name="addition"',
        'names="y"',
        'auto_broadcast="numpy"',
        'value="pytorch"',
    ],
)
def test_a_text_of_a_megabyte_is_refused_in_a_short_sentence(place: str) -> None:
    name, _, _ = place.partition("=")
    with pytest.raises(
        ReadError, match=r"has \d+ characters.* more than the limit '(name|text)'"
    ) as caught:
        read_model(ADDITION.replace(place, f'{name}="{LONG}"').encode(), WEIGHTS)
    assert len(str(caught.value)) < 400


def test_limits_can_be_raised_and_lowered() -> None:
    text = ADDITION.replace('name="sum"', f'name="{LONG}"').encode()
    assert read_model(text, WEIGHTS, limits=ReadLimits(name=2**21)).graph.nodes[2].name == LONG
    with pytest.raises(
        ReadError, match=r"the file has .* bytes, more than the limit 'file_bytes' of 1000"
    ):
        read_model(text, WEIGHTS, limits=ReadLimits(file_bytes=1000))


def test_odd_names_are_only_names() -> None:
    odd = "&lt;script>alert('x')&lt;/script>&#10;&quot;\u202egnp.exe"
    assert read_model(
        ADDITION.replace('name="sum"', f'name="{odd}"').encode(), WEIGHTS
    ).graph.nodes[2].name == ("<script>alert('x')</script>\n\"\u202egnp.exe")


FOREIGN = {
    "empty": (b"", "this is an empty file; OpenVINO IR"),
    "words": (b"not a model\n", "this is text that is not XML"),
    "zip": (b"PK\x03\x04" + bytes(60), "this is a zip archive"),
    "pickle": (b"\x80\x04\x95" + bytes(60), "this is a Python pickle"),
    "tflite": (b"\x1c\0\0\0TFL3" + bytes(60), "this is a TensorFlow Lite model"),
    "zeros": (bytes(1000), "this is binary data of an unknown kind"),
}


@pytest.mark.parametrize(("content", "message"), FOREIGN.values(), ids=FOREIGN.keys())
def test_what_is_no_model_is_called_by_its_name(
    content: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.xml"
    path.write_bytes(content)
    for source in (content, path):
        with pytest.raises(ReadError) as caught:
            read_model(source)
        assert message in str(caught.value)


def test_what_cannot_be_opened_says_so(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "none.xml", "No such file"),
        (tmp_path, "this is a folder"),
        ("a\0b", "null"),
    ):
        with pytest.raises(ReadError, match=message):
            read_model(path)


@pytest.mark.parametrize(
    "name", ["none", "idna", "base64", "utf-7", "utf-32", "shift_jis", "unicode_escape"]
)
def test_strange_encodings_are_refused(name: str) -> None:
    text = ADDITION.replace('version="1.0"', f'version="1.0" encoding="{name}"')
    with pytest.raises(
        ReadError, match=f"line 1: the encoding '{name}' is not read, expected UTF-8"
    ):
        read_model(text.encode(), WEIGHTS)


def test_a_document_cut_anywhere_is_refused() -> None:
    whole = ADDITION.rstrip().encode()
    for length in range(0, len(whole), 29):
        with pytest.raises(ReadError):
            read_model(whole[:length], WEIGHTS)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("text", ["<data ", "<layer ", "<input>", "<layer a='>' ", "<input></inpu"])
def test_what_repeats_without_end_takes_no_longer_than_it_is_long(text: str) -> None:
    with pytest.raises(ReadError, match="well-formed"):
        read_model(ADDITION.replace("</edges>", text * 200_000).encode(), WEIGHTS)


def test_deep_bodies_with_long_names_are_refused() -> None:
    text = nested_loops(300).replace('name="loop"', f'name="{"n" * 2000}"').encode()
    with pytest.raises(ReadError, match="more than 50000000 characters, the limit 'addresses'"):
        read_model(text, NESTED_WEIGHTS)
    assert read_model(nested_loops(300).encode(), NESTED_WEIGHTS).graph.nodes


class _Endless(io.RawIOBase):
    """A device that gives zero bytes for ever, such as the path ``/dev/zero``."""

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "all of it was asked for"
        return bytes(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return 0

    def tell(self) -> int:
        return 0


def test_a_device_without_end_is_no_archive() -> None:
    with (
        pytest.raises(ValueError, match="its directory has more than"),
        open_archive(cast(IO[bytes], _Endless())),
    ):
        pass
