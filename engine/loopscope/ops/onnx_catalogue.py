"""Catalogue of ONNX models: the operations of all domains (ai.onnx, ai.onnx.ml, com.microsoft) by
type and opset.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Literal

import onnx

from loopscope.ops.catalogue import CATALOGUE, Catalogue
from loopscope.ops.declare import Operation, Role
from loopscope.ops.microsoft import DOMAIN as MICROSOFT_DOMAIN
from loopscope.ops.microsoft import IN_ONNX, MICROSOFT
from loopscope.ops.onnx.reference import Schema, since
from loopscope.ops.onnx.row import LAST
from loopscope.ops.onnx.schemas import operation_of
from loopscope.ops.onnx.table import find_row
from loopscope.ops.own_operations import OPSET

_OWN: Mapping[str, Operation] = {
    "Parameter": Operation(
        name="Parameter", version=1, opsets=(1, LAST), page="", inputs=(0, 0), role=Role.PARAMETER
    ),
    "Result": Operation(name="Result", version=1, opsets=(1, LAST), page="", role=Role.RESULT),
    "Const": Operation(
        name="Const", version=1, opsets=(1, LAST), page="", inputs=(0, 0), role=Role.CONSTANT
    ),
}


class OnnxCatalogue(Catalogue):
    """The operations of ONNX; ``categories`` contains only those that a user adds (or replaces) by
    name.
    """

    def find(self, type: str, opset: str) -> Operation | None:
        """Return the operation for the opset of a node, such as ``ai.onnx 18`` or ``function
        my.domain``; None if unknown.
        """
        own = super().versions(type)
        if own:
            return own[-1]
        return (
            CATALOGUE.find(type, opset)
            if opset == OPSET or opset.startswith("opset")
            else _find(type, opset)
        )

    def elsewhere(self, type: str, opset: str) -> tuple[Operation, ...]:
        """Return the versions of the type in all opsets of the same domain."""
        return super().versions(type) or _versions(type, opset.partition(" ")[0])


ONNX = OnnxCatalogue({})


class CompanionOperations(Catalogue):
    """OpenVINO's operations for building nodes in an ONNX graph.

    The opset of a node decides between OpenVINO and ONNX.
    """

    def find(self, type: str, opset: str) -> Operation | None:
        """Return the operation of OpenVINO or ONNX."""
        return ONNX.find(type, opset)

    @property
    def dialect(self) -> Literal["openvino", "onnx"]:
        """Dialect of the models that are built with the catalogue."""
        return "onnx"


BESIDE = CompanionOperations(CATALOGUE.categories)


def with_own(catalogue: Catalogue) -> Catalogue:
    """Return ONNX's operations and those that a user has added to a catalogue."""
    added = catalogue.categories.get("custom", ())
    return OnnxCatalogue({"custom": added}) if added else ONNX


@lru_cache(maxsize=8192)
def _find(type: str, opset: str) -> Operation | None:
    if not opset:
        return _OWN.get(type)
    domain, _, version = opset.rpartition(" ")
    if domain == "function":
        return Operation(
            name=type,
            version=1,
            opsets=(1, LAST),
            page="",
            inputs=(0, None),
            outputs=None,
            role=Role.REGION,
        )
    if not version.isdigit() or len(version) > 6:
        return None
    if domain == MICROSOFT_DOMAIN:
        return MICROSOFT.get(type) if int(version) else None
    schema = since("" if domain == "ai.onnx" else domain, type, int(version))
    if schema is None:
        if domain != "ai.onnx":
            return None
        row = find_row("", type, int(version))
        if row is not None and row.attributes is not None:
            return row.operation
        return IN_ONNX.get(type)
    return operation_of(schema)


@lru_cache(maxsize=8192)
def _versions(type: str, domain: str) -> tuple[Operation, ...]:
    if domain == MICROSOFT_DOMAIN:
        return (MICROSOFT[type],) if type in MICROSOFT else ()
    matching = (
        schema
        for schema in _all_schemas()
        if schema.name == type and (schema.domain or "ai.onnx") == domain
    )
    schemas = sorted(matching, key=lambda schema: int(schema.since_version))
    operations = (operation_of(schema) for schema in schemas)
    return tuple(operation for operation in operations if operation is not None)


def domain_of(type: str) -> str:
    """Return the domain that has an operation of this type, the standard one first; empty if there
    is none.

    >>> domain_of("Sigmoid"), domain_of("TreeEnsemble"), domain_of("QGemm"), domain_of("Mine")
    ('ai.onnx', 'ai.onnx.ml', 'com.microsoft', '')
    """
    domains = {schema.domain or "ai.onnx" for schema in _all_schemas() if schema.name == type}
    domains |= {"ai.onnx"} if type in IN_ONNX or type in _OWN else set()
    domains |= {MICROSOFT_DOMAIN} if type in MICROSOFT else set()
    return min(domains, default="")


@cache
def _all_schemas() -> tuple[Schema, ...]:
    return tuple(onnx.defs.get_all_schemas_with_history())
