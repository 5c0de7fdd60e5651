"""OpenVINO IR, versions 10 and 11: an XML document and a file of weights become a Model."""

from __future__ import annotations

from loopscope.errors import ReadError, Where
from loopscope.ir.collecting import no_garbage_collection
from loopscope.ir.model import Model
from loopscope.read.address_length import check_addresses
from loopscope.read.file_limits import ReadLimits
from loopscope.read.openvino.bare_layers import MalformedLayers, are_bare_layers, whole_document
from loopscope.read.openvino.document import Document
from loopscope.read.openvino.legacy import with_layer_names
from loopscope.read.weights import WeightsFile


def read_openvino(document: bytes, weights: WeightsFile, file: str, limits: ReadLimits) -> Model:
    """The Model of an IR document; ``file`` names it in messages (empty for bytes that came from
    nowhere).

    ``ReadError`` when no Model can be made of it. What still makes a Model that can be looked at
    (unknown operations, edges to nothing, repeated ids, cycles, port maps to nothing) is left to
    the checks.
    """
    notes: tuple[str, ...] = ()
    if are_bare_layers(document):
        document, notes = _surrounded(document, file, limits)
    reading = Document(document, file, weights, limits)
    with no_garbage_collection():
        reading.read()
    try:
        check_addresses(reading.graph, limits)
    except ValueError as error:
        raise ReadError(str(error), Where(file)) from None
    version, meta_data = reading.version, reading.meta_data
    graph = reading.graph if version > 10 else with_layer_names(reading.graph)
    # Its parser and its tables refer back to it: it would keep the model, and the mapped weights,
    # until a collection comes by.
    vars(reading).clear()
    return Model(
        graph,
        graph.name,
        version,
        file=file,
        rt_info=graph.rt_info,
        meta_data=meta_data,
        notes=notes,
    )


def _surrounded(document: bytes, file: str, limits: ReadLimits) -> tuple[bytes, tuple[str, ...]]:
    """Bare layers as a document, and notes on what was put there."""
    if len(document) > limits.layer_bytes:
        limit = f"the limit 'layer_bytes' of {limits.layer_bytes:,}"
        raise ReadError(
            f"these are bare layers of {len(document):,} bytes, more than {limit}: give a whole <net>",
            Where(file),
        )
    try:
        return whole_document(document)
    except MalformedLayers as error:
        raise ReadError(str(error), Where(file, error.line)) from None
