"""Protobuf classes for the part of TensorFlow's graph messages that Loopscope reads and writes.

The classes are built from a table, because no small package ships them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "tensorflow"
# A field is "name number type"; a type is a scalar of protobuf, a message, or the enum below.
# Before it, "*" stands for repeated and "%" for a map from strings.
_MESSAGES = {
    "SavedModel": "saved_model_schema_version 1 int64, meta_graphs 2 *MetaGraphDef",
    "MetaGraphDef": "meta_info_def 1 MetaInfoDef, graph_def 2 GraphDef, "
    "signature_def 5 %SignatureDef",
    "MetaInfoDef": "tags 4 *string, tensorflow_version 5 string",
    "SignatureDef": "inputs 1 %TensorInfo, outputs 2 %TensorInfo, method_name 3 string",
    "TensorInfo": "name 1 string, dtype 2 DataType, tensor_shape 3 TensorShapeProto",
    "GraphDef": "node 1 *NodeDef, library 2 FunctionDefLibrary, version 3 int32, "
    "versions 4 VersionDef",
    "VersionDef": "producer 1 int32, min_consumer 2 int32, bad_consumers 3 *int32",
    "NodeDef": "name 1 string, op 2 string, input 3 *string, device 4 string, attr 5 %AttrValue",
    "AttrValue": "list 1 ListValue, s 2 bytes, i 3 int64, f 4 float, b 5 bool, "
    "type 6 DataType, shape 7 TensorShapeProto, "
    "tensor 8 TensorProto, placeholder 9 string, func 10 NameAttrList",
    "ListValue": "s 2 *bytes, i 3 *int64, f 4 *float, b 5 *bool, type 6 *DataType, "
    "shape 7 *TensorShapeProto, tensor 8 *TensorProto, func 9 *NameAttrList",
    "NameAttrList": "name 1 string, attr 2 %AttrValue",
    "TensorShapeProto": "dim 2 *Dim, unknown_rank 3 bool",
    "Dim": "size 1 int64, name 2 string",
    "TensorProto": "dtype 1 DataType, tensor_shape 2 TensorShapeProto, version_number 3 int32, "
    "tensor_content 4 bytes, half_val 13 *int32, float_val 5 *float, double_val 6 *double, "
    "int_val 7 *int32, string_val 8 *bytes, scomplex_val 9 *float, int64_val 10 *int64, "
    "bool_val 11 *bool, dcomplex_val 12 *double, uint32_val 16 *uint32, uint64_val 17 *uint64, "
    "float8_val 18 bytes",
    "FunctionDefLibrary": "function 1 *FunctionDef",
    "FunctionDef": "signature 1 OpDef, attr 5 %AttrValue, node_def 3 *NodeDef, "
    "ret 4 %string, control_ret 6 %string",
    "OpDef": "name 1 string, input_arg 2 *ArgDef, output_arg 3 *ArgDef, is_stateful 17 bool, "
    "control_output 20 *string",
    "ArgDef": "name 1 string, description 2 string, type 3 DataType, type_attr 4 string, "
    "number_attr 5 string, type_list_attr 6 string",
}
_DATA_TYPES = (
    "INVALID FLOAT DOUBLE INT32 UINT8 INT16 INT8 STRING COMPLEX64 INT64 BOOL QINT8 QUINT8 "
    "QINT32 BFLOAT16 QINT16 QUINT16 UINT16 COMPLEX128 HALF RESOURCE VARIANT UINT32 UINT64 "
    "FLOAT8_E5M2 FLOAT8_E4M3FN FLOAT8_E4M3FNUZ FLOAT8_E4M3B11FNUZ FLOAT8_E5M2FNUZ "
    "INT4 UINT4 INT2 UINT2"
)
DATA_TYPES: Mapping[str, int] = {
    "DT_" + name: number for number, name in enumerate(_DATA_TYPES.split())
}
_REFERENCE = 100
"""Offset of the type number of a reference to a v1 variable (not to its value)."""


def _file_descriptor() -> Any:
    """Return the file descriptor, in proto2 syntax.

    Proto2 records for every field whether it is present. The wire format equals TensorFlow's
    proto3.
    """
    descriptor = descriptor_pb2.FileDescriptorProto(
        name="graph.proto", package=_PACKAGE, syntax="proto2"
    )
    enum = descriptor.enum_type.add(name="DataType")
    for name, number in _with_references():
        enum.value.add(name=name, number=number)
    for message, fields in _MESSAGES.items():
        _add_message(descriptor, message, fields)
    return descriptor


def _with_references() -> Iterator[tuple[str, int]]:
    for name, number in DATA_TYPES.items():
        yield name, number
        if number:
            yield f"{name}_REF", number + _REFERENCE


def _add_message(file: Any, message: str, fields: str) -> None:
    descriptor = file.message_type.add(name=message)
    for field in fields.split(", "):
        name, number, kind = field.split()
        member = descriptor.field.add(
            name=name, number=int(number), label=3 if kind[0] in "*%" else 1
        )
        if kind[0] == "%":
            entry = descriptor.nested_type.add(name=name.title().replace("_", "") + "Entry")
            entry.options.map_entry = True
            _set_type(entry.field.add(name="key", number=1, label=1), "string")
            _set_type(entry.field.add(name="value", number=2, label=1), kind[1:])
            member.type = member.TYPE_MESSAGE
            member.type_name = f".{_PACKAGE}.{message}.{entry.name}"
        else:
            _set_type(member, kind.lstrip("*"))


def _set_type(field: Any, kind: str) -> None:
    scalar = getattr(field, f"TYPE_{kind.upper()}", None)
    if scalar is not None:
        field.type = scalar
    else:
        field.type = field.TYPE_ENUM if kind == "DataType" else field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"


def _classes() -> Mapping[str, Any]:
    # A pool of our own: the default pool has these names if TensorFlow is installed too.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file_descriptor())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


MESSAGES = _classes()
