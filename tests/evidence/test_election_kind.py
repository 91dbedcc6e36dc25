"""How a leader came to lead, by the state just before it; lines and records ask the same rule."""

from typing import Any

import pytest

from replication.evidence.metadata_log.election_kind import Before, election_kind

GONE = Before(None, (), (), (3,))


@pytest.mark.parametrize(
    ("leader", "before", "told", "kind"),
    [
        (1, Before(1, (1, 2)), {}, "same_leader"),
        (2, Before(1, (1, 2)), {}, "clean"),
        (2, Before(1, (1, 2)), {"is_preferred": True}, "preferred"),
        # A second unclean election in a row carries no mark; a marked one is unclean anyhow.
        (3, Before(1, (1, 2)), {}, "unclean"),
        (2, Before(1, (1, 2)), {"marked_unclean": True, "is_preferred": True}, "unclean"),
        (3, Before(None, (), (3,)), {}, "eligible_leader_replica"),
        (3, Before(None, (), (3,)), {"marked_unclean": True}, "unclean"),
        (3, GONE, {}, "last_known_leader"),
        (3, GONE, {"unclean_allowed": True}, "last_known_leader"),
        (3, Before(None, (), (2,), (3,)), {}, "last_known_leader"),
        (3, Before(None, (), (2,), (3,)), {"unclean_allowed": True}, "unclean"),
        # A reassignment ends with the old leader's word that took the new one into the ISR.
        (3, Before(1, (1, 2)), {"isr": (2, 3)}, "clean"),
        (3, Before(1, (1, 2)), {"isr": (3,)}, "unclean"),
        (3, Before(1, (1, 2)), {"isr": (2, 3), "marked_unclean": True}, "unclean"),
        # It may be alone: others of the target are away (KAFKA-19975).
        (3, Before(1, (1,), adding=(3,)), {"isr": (3,)}, "clean"),
        (3, Before(1, (1,), adding=(3,)), {"isr": (3,), "adding": (3,)}, "unclean"),
        (3, Before(1, (1,), adding=(3,)), {"isr": (3,), "marked_unclean": True}, "unclean"),
        # The controller elects the last known leader only where it is the only one.
        (3, Before(None, (), (), (2, 3)), {}, "unclean"),
    ],
)
def test_the_kind_is_told_by_where_the_leader_came_from(
    leader: int, before: Before, told: dict[str, Any], kind: str
) -> None:
    assert election_kind(leader, before, **told) == kind
