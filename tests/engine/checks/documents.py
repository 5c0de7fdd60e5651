"""Small sound models as IR text, one layer to a line, that samples of faults are made from."""

from __future__ import annotations

import struct

WEIGHTS = struct.pack("<q??2x4f4q", 4, True, False, 1.0, 2.0, 3.0, 4.0, 0, -1, 2**32 + 2, 5)
"""At 0 the i64 4, at 8 true, at 9 false, at 12 four f32, at 28 the i64 0, -1, 2^32 + 2, 5."""

I64, BOOL, F32 = ("I64", ()), ("BOOL", ()), ("FP32", ())
Type = tuple[str, tuple[int, ...]]


def f32(*lengths: int) -> Type:
    return ("FP32", lengths)


def _port(number: int, kind: Type) -> str:
    return (
        f'<port id="{number}" precision="{kind[0]}">'
        + "".join(f"<dim>{length}</dim>" for length in kind[1])
        + "</port>"
    )


def layer(
    number: int,
    name: str,
    kind: str,
    data: str = "",
    takes: tuple[Type, ...] = (),
    gives: tuple[Type, ...] = (),
    inside: str = "",
) -> str:
    """A layer in one line: ports are numbered 0, 1, 2, ..., outputs after inputs."""
    opset = {"Loop": "opset5", "If": "opset8", "ReadValue": "opset6", "Assign": "opset6"}.get(
        kind, "opset1"
    )
    inputs = "".join(_port(index, one) for index, one in enumerate(takes))
    outputs = "".join(_port(index, one) for index, one in enumerate(gives, start=len(takes)))
    ports = (f"<input>{inputs}</input>" if takes else "") + (
        f"<output>{outputs}</output>" if gives else ""
    )
    return (
        f'<layer id="{number}" name="{name}" type="{kind}" version="{opset}">'
        + (f"<data {data}/>" if data else "")
        + ports
        + inside
        + "</layer>"
    )


def parameter(number: int, name: str, shape: str, kind: Type, element_type: str = "f32") -> str:
    return layer(
        number, name, "Parameter", f'shape="{shape}" element_type="{element_type}"', gives=(kind,)
    )


def constant(
    number: int,
    name: str,
    element_type: str,
    offset: int,
    kind: Type,
    shape: str = "",
    size: int = 0,
) -> str:
    size = size or {"i64": 8, "boolean": 1, "f32": 4}[element_type]
    return layer(
        number,
        name,
        "Const",
        f'element_type="{element_type}" shape="{shape}" offset="{offset}" size="{size}"',
        gives=(kind,),
    )


def result(number: int, name: str, kind: Type) -> str:
    return layer(number, name, "Result", takes=(kind,))


def edges(*ends: tuple[int, int, int, int]) -> str:
    return (
        "<edges>\n"
        + "\n".join(
            f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>'
            for a, b, c, d in ends
        )
        + "\n</edges>"
    )


def graph(layers: list[str], *ends: tuple[int, int, int, int]) -> str:
    return "<layers>\n" + "\n".join(layers) + "\n</layers>\n" + edges(*ends)


def net(name: str, content: str) -> str:
    return f'<?xml version="1.0"?>\n<net name="{name}" version="11">\n{content}\n</net>\n'


FLAT = net(
    "flat",
    graph(
        [
            parameter(0, "x", "2,3", f32(2, 3)),
            constant(1, "c", "f32", 12, f32(3), "3", 12),
            layer(2, "sum", "Add", 'auto_broadcast="numpy"', (f32(2, 3), f32(3)), (f32(2, 3),)),
            result(3, "y", f32(2, 3)),
        ],
        (0, 0, 2, 0),
        (1, 0, 2, 1),
        (2, 2, 3, 0),
    ),
)

_LOOP_BODY = graph(
    [
        parameter(0, "i", "", I64, "i64"),
        parameter(1, "part", "1,3", f32(1, 3)),
        parameter(2, "a", "1,3", f32(1, 3)),
        layer(3, "number", "Convert", 'destination_type="f32"', (I64,), (F32,)),
        layer(4, "more", "Add", "", (f32(1, 3), f32(1, 3)), (f32(1, 3),)),
        layer(5, "next", "Add", "", (f32(1, 3), F32), (f32(1, 3),)),
        constant(6, "go", "boolean", 8, BOOL),
        result(7, "again", BOOL),
        result(8, "carried", f32(1, 3)),
    ],
    (0, 0, 3, 0),
    (1, 0, 4, 0),
    (2, 0, 4, 1),
    (4, 2, 5, 0),
    (3, 1, 5, 1),
    (6, 0, 7, 0),
    (5, 2, 8, 0),
)

_LOOP_MAP = """
<port_map>
<input axis="0" external_port_id="2" internal_layer_id="1" start="0" end="-1" stride="1" part_size="1"/>
<input external_port_id="3" internal_layer_id="2"/>
<output external_port_id="4" internal_layer_id="8"/>
<output axis="0" external_port_id="5" internal_layer_id="8" start="0" end="-1" stride="1" part_size="1"/>
<input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/>
<output external_port_id="-1" internal_layer_id="7" purpose="execution_condition"/>
</port_map>
<back_edges>
<edge from-layer="8" to-layer="2"/>
</back_edges>
"""

LOOP = net(
    "loop",
    graph(
        [
            parameter(0, "x", "4,3", f32(4, 3)),
            parameter(1, "a0", "1,3", f32(1, 3)),
            constant(2, "trips", "i64", 0, I64),
            constant(3, "start", "boolean", 8, BOOL),
            layer(
                4,
                "loop",
                "Loop",
                "",
                (I64, BOOL, f32(4, 3), f32(1, 3)),
                (f32(1, 3), f32(4, 3)),
                f"{_LOOP_MAP}<body>\n{_LOOP_BODY}\n</body>\n",
            ),
            result(5, "last", f32(1, 3)),
            result(6, "all", f32(4, 3)),
        ],
        (2, 0, 4, 0),
        (3, 0, 4, 1),
        (0, 0, 4, 2),
        (1, 0, 4, 3),
        (4, 4, 5, 0),
        (4, 5, 6, 0),
    ),
)

_ITERATOR_BODY = graph(
    [
        parameter(0, "part", "1,3", f32(1, 3)),
        parameter(1, "h", "1,3", f32(1, 3)),
        layer(2, "next", "Add", "", (f32(1, 3), f32(1, 3)), (f32(1, 3),)),
        result(3, "carried", f32(1, 3)),
    ],
    (0, 0, 2, 0),
    (1, 0, 2, 1),
    (2, 2, 3, 0),
)

_ITERATOR_MAP = """
<port_map>
<input axis="0" external_port_id="0" internal_layer_id="0" start="0" end="-1" stride="1" part_size="1"/>
<input external_port_id="1" internal_layer_id="1"/>
<output external_port_id="2" internal_layer_id="3"/>
<output axis="0" external_port_id="3" internal_layer_id="3" start="0" end="-1" stride="1" part_size="1"/>
</port_map>
<back_edges>
<edge from-layer="3" to-layer="1"/>
</back_edges>
"""

ITERATOR = net(
    "iterator",
    graph(
        [
            parameter(0, "x", "4,3", f32(4, 3)),
            parameter(1, "h0", "1,3", f32(1, 3)),
            layer(
                2,
                "rnn",
                "TensorIterator",
                "",
                (f32(4, 3), f32(1, 3)),
                (f32(1, 3), f32(4, 3)),
                f"{_ITERATOR_MAP}<body>\n{_ITERATOR_BODY}\n</body>\n",
            ),
            result(3, "last", f32(1, 3)),
            result(4, "all", f32(4, 3)),
        ],
        (0, 0, 2, 0),
        (1, 0, 2, 1),
        (2, 2, 3, 0),
        (2, 3, 4, 0),
    ),
)

_NESTED_BODY = graph(
    [
        parameter(0, "row", "1,3", f32(1, 3)),
        layer(
            1,
            "inner",
            "TensorIterator",
            "",
            (f32(1, 3),),
            (f32(1, 3),),
            '\n<port_map><input axis="1" external_port_id="0" internal_layer_id="0"/>'
            '<output axis="1" external_port_id="1" internal_layer_id="2"/>'
            "</port_map>\n<body>\n"
            + graph(
                [
                    parameter(0, "cell", "1,1", f32(1, 1)),
                    layer(1, "twice", "Add", "", (f32(1, 1), f32(1, 1)), (f32(1, 1),)),
                    result(2, "doubled", f32(1, 1)),
                ],
                (0, 0, 1, 0),
                (0, 0, 1, 1),
                (1, 2, 2, 0),
            )
            + "\n</body>\n",
        ),
        result(2, "rows", f32(1, 3)),
    ],
    (0, 0, 1, 0),
    (1, 1, 2, 0),
)

NESTED = net(
    "nested",
    graph(
        [
            parameter(0, "x", "4,3", f32(4, 3)),
            layer(
                1,
                "outer",
                "TensorIterator",
                "",
                (f32(4, 3),),
                (f32(4, 3),),
                '\n<port_map><input axis="0" external_port_id="0" internal_layer_id="0"/>'
                '<output axis="0" external_port_id="1" internal_layer_id="2"/>'
                f"</port_map>\n<body>\n{_NESTED_BODY}\n</body>\n",
            ),
            result(2, "y", f32(4, 3)),
        ],
        (0, 0, 1, 0),
        (1, 1, 2, 0),
    ),
)


def _branch(name: str, operation: str) -> str:
    content = graph(
        [
            parameter(0, f"{name}_x", "3", f32(3)),
            layer(1, f"{name}_op", operation, "", (f32(3), f32(3)), (f32(3),)),
            result(2, f"{name}_y", f32(3)),
        ],
        (0, 0, 1, 0),
        (0, 0, 1, 1),
        (1, 2, 2, 0),
    )
    return f"<{name}_body>\n{content}\n</{name}_body>\n"


_BRANCH_MAPS = """
<else_port_map>
<input external_port_id="1" internal_layer_id="0"/>
<output external_port_id="2" internal_layer_id="2"/>
</else_port_map>
<then_port_map>
<input external_port_id="1" internal_layer_id="0"/>
<output external_port_id="2" internal_layer_id="2"/>
</then_port_map>
"""

BRANCH = net(
    "branch",
    graph(
        [
            parameter(0, "c", "", BOOL, "boolean"),
            parameter(1, "x", "3", f32(3)),
            layer(
                2,
                "choice",
                "If",
                "",
                (BOOL, f32(3)),
                (f32(3),),
                _BRANCH_MAPS + _branch("then", "Add") + _branch("else", "Multiply"),
            ),
            result(3, "y", f32(3)),
        ],
        (0, 0, 2, 0),
        (1, 0, 2, 1),
        (2, 2, 3, 0),
    ),
)

STATE = net(
    "state",
    graph(
        [
            parameter(0, "x", "2", f32(2)),
            layer(
                1,
                "read",
                "ReadValue",
                'variable_id="v" variable_type="f32" variable_shape="2"',
                (f32(2),),
                (f32(2),),
            ),
            layer(2, "sum", "Add", "", (f32(2), f32(2)), (f32(2),)),
            layer(3, "write", "Assign", 'variable_id="v"', (f32(2),), (f32(2),)),
            result(4, "y", f32(2)),
        ],
        (0, 0, 1, 0),
        (1, 1, 2, 0),
        (0, 0, 2, 1),
        (2, 2, 3, 0),
        (2, 2, 4, 0),
    ),
)

BASES = {
    "flat": FLAT,
    "loop": LOOP,
    "iterator": ITERATOR,
    "nested": NESTED,
    "branch": BRANCH,
    "state": STATE,
}
