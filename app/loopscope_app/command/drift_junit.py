"""The result of ``loopscope drift`` as a JUnit suite: one case per pair of matching values."""

from __future__ import annotations

from loopscope.comparison import Drift, MatchedSlots
from loopscope.ir import significant
from loopscope_app.command.junit import JunitCase, JunitSuite

_MAX_CASES = 10_000


def drift_suite(result: Drift, name: str, limit: float) -> JunitSuite:
    """Return a case for each pair of values, which fails if its largest error is over ``limit``.

    Without pairs, the suite has one case, which fails.
    """
    pairs = result.pairs[:_MAX_CASES]
    if not pairs:
        return JunitSuite(name, [JunitCase("values to compare", "failed", result.sentence)])
    return JunitSuite(name, [_case(pair, limit) for pair in pairs])


def _case(pair: MatchedSlots, limit: float) -> JunitCase:
    name = f"{pair.one} beside {pair.other}"
    if pair.worst.relative <= limit:
        return JunitCase(name, "passed")
    return JunitCase(name, "failed", _message(pair, limit), pair.worst.address)


def _message(pair: MatchedSlots, limit: float) -> str:
    begins = "" if pair.first is None else f", begins at {pair.first.address}"
    growth = f", {pair.growth.words}" if pair.growth else ""
    return (
        f"relative error {significant(pair.worst.relative, 2)} at {pair.worst.address}, "
        f"expected at most "
        f"{significant(limit, 6)}{begins}{growth}"
    )
