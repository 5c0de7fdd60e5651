"""Small IR documents as text, to read whole or broken."""

from __future__ import annotations

import struct

WEIGHTS = struct.pack("<3f", 1.0, 2.0, 3.0)

ADDITION = """<?xml version="1.0"?>
<net name="addition" version="11">
	<layers>
		<layer id="0" name="x" type="Parameter" version="opset1">
			<data shape="?,3" element_type="f32" />
			<output>
				<port id="0" precision="FP32" names="x,input\\,1">
					<dim>-1</dim>
					<dim>3</dim>
				</port>
			</output>
		</layer>
		<layer id="1" name="c" type="Const" version="opset1">
			<data element_type="f32" shape="3" offset="0" size="12" />
			<output>
				<port id="0" precision="FP32">
					<dim>3</dim>
				</port>
			</output>
		</layer>
		<layer id="2" name="sum" type="Add" version="opset1">
			<data auto_broadcast="numpy" />
			<rt_info>
				<attribute name="fused_names" version="0" value="a,b" />
			</rt_info>
			<input>
				<port id="0" precision="FP32">
					<dim>-1</dim>
					<dim>3</dim>
				</port>
				<port id="1" precision="FP32">
					<dim>3</dim>
				</port>
			</input>
			<output>
				<port id="2" precision="FP32" names="y">
					<dim>-1</dim>
					<dim>3</dim>
				</port>
			</output>
		</layer>
		<layer id="3" name="y" type="Result" version="opset1" output_names="y">
			<input>
				<port id="0" precision="FP32">
					<dim>-1</dim>
					<dim>3</dim>
				</port>
			</input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="2" to-port="0" />
		<edge from-layer="1" from-port="0" to-layer="2" to-port="1" />
		<edge from-layer="2" from-port="2" to-layer="3" to-port="0" />
	</edges>
	<rt_info>
		<info name="OpenVINO Runtime" value="2026" />
		<conversion_parameters>
			<framework value="pytorch" />
		</conversion_parameters>
	</rt_info>
</net>
"""

_BODY = """<layers>
<layer id="0" name="a" type="Parameter" version="opset1"><data shape="" element_type="f32"/>
<output><port id="0" precision="FP32"/></output></layer>
<layer id="1" name="go" type="Const" version="opset1"><data element_type="boolean" shape="" offset="0" size="1"/>
<output><port id="0" precision="BOOL"/></output></layer>
INSIDE
<layer id="3" name="next" type="Result" version="opset1"><input><port id="0" precision="FP32"/></input></layer>
<layer id="4" name="condition" type="Result" version="opset1"><input><port id="0" precision="BOOL"/></input></layer>
</layers>
<edges>
EDGES
<edge from-layer="1" from-port="0" to-layer="4" to-port="0"/>
</edges>"""
_LOOP = """<layer id="2" name="loop" type="Loop" version="opset5">
<port_map>
<input external_port_id="2" internal_layer_id="0"/>
<output external_port_id="3" internal_layer_id="3"/>
<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/>
</port_map>
<back_edges><edge from-layer="3" to-layer="0"/></back_edges>
<input><port id="0" precision="I64"/><port id="1" precision="BOOL"/><port id="2" precision="FP32"/></input>
<output><port id="3" precision="FP32"/></output>
<body>
"""


def nested_loops(depth: int) -> str:
    """Loops inside loops; what comes before and after the innermost body is written once per
    level, so no recursion here either.
    """
    trips = (
        '<layer id="5" name="trips" type="Const" version="opset1"><data element_type="i64" shape="" offset="1" size="8"/>'
        '<output><port id="0" precision="I64"/></output></layer>'
    )
    edges = (
        '<edge from-layer="5" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>'
        '<edge from-layer="0" from-port="0" to-layer="2" to-port="2"/><edge from-layer="2" from-port="3" to-layer="3" to-port="0"/>'
    )
    outer = _BODY.replace("EDGES", edges)
    before, after = outer.split("INSIDE")
    inner = _BODY.replace("INSIDE", "").replace(
        "EDGES", '<edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>'
    )
    opening = before + trips + _LOOP
    closing = "</body></layer>" + after
    return f'<net name="nested" version="11">{opening * depth}{inner}{closing * depth}</net>'


NESTED_WEIGHTS = b"\x01" + struct.pack("<q", 2)
