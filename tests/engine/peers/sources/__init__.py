"""Source programs with loops and branches, the files that they became, and what their frameworks
did: made by ``make.py``.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
