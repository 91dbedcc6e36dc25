"""The smallest world that a missed epoch breaks, and that either remedy mends.

`tests.protocol.remedies` explores more, under every KRaft release.
"""

from dataclasses import replace

import pytest

from tests.protocol.remedies import AS_RELEASED, TWO_ELECTIONS, VARIANTS
from tests.protocol.small_worlds import explore


@pytest.mark.parametrize("remedy", VARIANTS)
def test_either_remedy_leaves_nothing_broken_in_the_smallest_world(remedy: str) -> None:
    outcome = explore("4.1.1", replace(TWO_ELECTIONS, remedy=remedy))

    assert outcome.complete
    assert outcome.states > 2_000
    assert set(outcome.broken) == (
        {"isr_reaches_high_watermark"} if remedy == AS_RELEASED else set()
    )
