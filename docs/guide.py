"""The page of ``guide.md``."""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).with_name("guide.md")

__all__: list[str] = []
__doc__ = FILE.read_text(encoding="utf-8")
