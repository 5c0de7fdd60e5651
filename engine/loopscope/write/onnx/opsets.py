"""Opset imports of a written model or function."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import OperatorSetIdProto

from loopscope.errors import WriteError, shorten
from loopscope.ir.model import Node

ONNX = "ai.onnx"


class OpsetImports:
    """The imports of the source, and those that added nodes need."""

    def __init__(self, source: Iterable[OperatorSetIdProto]) -> None:
        self.protos = list(source)
        self._versions = {item.domain or ONNX: item.version for item in self.protos}

    def require(self, node: Node) -> None:
        """Import the opset of a node.

        ``WriteError`` if another version of its domain is imported.
        """
        domain, version = domain_and_version(node)
        if version is None or (domain == ONNX and version == 1 and ONNX not in self._versions):
            return  # a file without an import of ONNX has the first opset
        imported = self._versions.setdefault(domain, version)
        if imported != version:
            raise WriteError(
                f"{shorten(node.name, 60)!r} ({node.type}) is of opset {domain} {version}, and "
                f"the model imports {domain} {imported}: an ONNX graph has one version of a domain"
            )
        if all((item.domain or ONNX) != domain for item in self.protos):
            self.protos.append(OperatorSetIdProto(domain=written_domain(domain), version=version))


def domain_and_version(node: Node) -> tuple[str, int | None]:
    """Return the domain of a node, and its version; None if the file does not import the domain."""
    domain, _, version = node.opset.rpartition(" ")
    return (domain, int(version)) if domain and version.isdecimal() else (node.opset, None)


def written_domain(domain: str) -> str:
    """Return the domain as it is written: the ONNX domain is empty."""
    return "" if domain == ONNX else domain
