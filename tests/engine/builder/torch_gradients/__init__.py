"""What torch's autograd says of the loops and branches in ``walked_back.py``; ``make.py`` is how
it was asked.
"""

from __future__ import annotations

from pathlib import Path

TABLE = Path(__file__).with_name("gradients.npz")
