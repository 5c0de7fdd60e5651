"""Draws models for a while: ``python -m tests.engine.drawn --seconds 600 --seed 1``. Each that
does not agree is told by its seed.
"""

from __future__ import annotations

from tests.engine.drawn.agreement import Agreement
from tests.engine.drawn.for_a_while import check_drawn, parser


def main() -> None:
    asked = parser(__doc__).parse_args()
    check_drawn(_agrees, asked.seconds, asked.seed)


def _agrees(seed: int) -> None:
    agreement = Agreement.of(seed)
    if agreement.is_short:
        agreement.check(8)


if __name__ == "__main__":
    main()
