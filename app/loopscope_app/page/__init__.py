"""A run as one HTML file: the canvas with all moments of the run, tables and verdicts, which
opens offline by a double click.
"""

from __future__ import annotations

from loopscope_app.page.html_document import BytesBound, page_of, shared_assets

__all__ = ["BytesBound", "page_of", "shared_assets"]
