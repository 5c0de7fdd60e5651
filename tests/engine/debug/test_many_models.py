"""All ways through a run agree on rich random models: of all types, with declared ports, all
roles of values, variables and chance.
"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.draws import draws
from tests.engine.drawn.agreement import WITHOUT_SHRINKING, Agreement


@settings(
    max_examples=draws(50),
    deadline=None,
    phases=WITHOUT_SHRINKING,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**40))
def test_all_ways_through_a_run_agree_in_any_order(seed: int) -> None:
    agreement = Agreement.of(seed)
    if agreement.is_short:
        agreement.check(6)
