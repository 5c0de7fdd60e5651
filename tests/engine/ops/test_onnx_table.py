"""The rows of ONNX's table: no version has two, and each kernel takes the attributes that the onnx
package declares.
"""

from __future__ import annotations

import inspect

import onnx
import pytest

from loopscope.ops.onnx.row import OnnxRow
from loopscope.ops.onnx.table import ROWS, find_row

ALL_ROWS = [(domain, row) for domain, rows in ROWS.items() for row in rows]
SCHEMAS = onnx.defs.get_all_schemas_with_history()


@pytest.mark.parametrize(("domain", "row"), ALL_ROWS)
def test_no_two_rows_hold_the_same_version(domain: str, row: OnnxRow) -> None:
    assert row.since <= row.until
    others = [other for other in ROWS[domain] if other.name == row.name and other is not row]
    assert all(row.until < other.since or other.until < row.since for other in others)


@pytest.mark.parametrize(("domain", "row"), ALL_ROWS)
def test_a_row_holds_a_version_that_onnx_declares(domain: str, row: OnnxRow) -> None:
    """Experimental operations declare their attributes themselves."""
    versions = [
        schema.since_version
        for schema in SCHEMAS
        if (schema.domain, schema.name) == (domain, row.name)
    ]
    declared = any(row.since <= version <= row.until for version in versions)
    assert declared is (row.attributes is None)


@pytest.mark.parametrize(("domain", "row"), ALL_ROWS)
def test_a_kernel_takes_all_attributes(domain: str, row: OnnxRow) -> None:
    if not inspect.isfunction(row.kernel):
        return
    parameters = inspect.signature(row.kernel).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    keywords = {item.name for item in parameters if item.kind is item.KEYWORD_ONLY}
    for schema in SCHEMAS:
        if (schema.domain, schema.name) == (domain, row.name) and (
            find_row(domain, row.name, schema.since_version) is row
        ):
            assert set(schema.attributes) <= keywords, schema.since_version
