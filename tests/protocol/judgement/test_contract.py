"""The contract of a loss, and the settings that let it happen, by its cause."""

import pytest

from replication.protocol.folding.fold import new_state
from replication.protocol.ground.story import Recorded
from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.histories.filters.windows import Window
from replication.protocol.judgement.cause import Cause
from replication.protocol.judgement.contract import allowed_by, contract_of


def under(**settings: object) -> State:
    """A partition of which the settings alone are known."""
    state = new_state("c", "t", "", 0)
    for name, value in settings.items():
        setattr(state.settings, name, value)
    return state


@pytest.mark.parametrize(
    ("permitted", "contract", "settings"),
    [
        (True, "not_promised", [("unclean.leader.election.enable", "true")]),
        (False, "broken", []),
        (None, "unknown", []),
    ],
)
def test_an_unclean_election_is_judged_by_the_setting_of_its_time(
    permitted: bool | None, contract: str, settings: list[tuple[str, str]]
) -> None:
    cause = Cause("unclean_election", window=Window(1, leader=2, kind="unclean"))
    term, state = LeaderTerm(1, 2, unclean_permitted=permitted), under()
    for tier in ("acknowledged_by_isr", "committed", "consumed"):
        found = contract_of(state, cause, tier, term, may_be_committed=True)
        assert found == contract
    assert allowed_by(state, cause, "committed", term, may_be_committed=True) == settings


@pytest.mark.parametrize(
    ("needed", "contract"), [(2, "broken"), (1, "not_promised"), (None, "unknown")]
)
def test_disks_may_lose_what_fewer_than_min_insync_replicas_lost(
    needed: int | None, contract: str
) -> None:
    cause, state = Cause("storage_loss", lossy=frozenset({1})), under(min_insync_replicas=needed)
    assert contract_of(state, cause, "committed", None, may_be_committed=True) == contract


def test_acks_one_promises_one_copy_of_what_no_history_commits() -> None:
    cause = Cause("acks_one_failover")
    tier = "acknowledged_by_leader"
    assert contract_of(under(), cause, tier, None, may_be_committed=False) == "not_promised"
    assert contract_of(under(), cause, tier, None, may_be_committed=True) == "unknown"
    assert allowed_by(under(), cause, tier, None, may_be_committed=False) == [("acks", "1")]


def test_of_a_loss_whose_cause_is_not_known_nothing_is_promised() -> None:
    assert contract_of(under(), Cause("unknown"), "committed", None, may_be_committed=True) == (
        "unknown"
    )


@pytest.mark.parametrize(
    ("version", "assigned_then", "contract"),
    [
        ("3.9.1", (1, 2), "not_promised"),
        # Three replicas, when the records were acknowledged; two are left since.
        ("3.9.1", (1, 2, 3), "broken"),
        # Before 3.7 acks=all needs three members, which two replicas never are.
        ("2.8.2", (1, 2), "broken"),
    ],
)
def test_min_insync_replicas_counts_no_more_than_the_replicas_of_that_time(
    version: str, assigned_then: tuple[int, ...], contract: str
) -> None:
    """min.insync.replicas is 3, and the setting is named as it is."""
    state = under(min_insync_replicas=3, assigned_replicas=(1, 2), kafka_version=version)
    state.story.recorded += [
        Recorded(0, 0, 1, (1, 2), "initial", "a", assigned_then),
        Recorded(1, 1, 1, (1,), "clean", "b", (1, 2)),
    ]
    cause, term = Cause("storage_loss", lossy=frozenset({1, 2})), LeaderTerm(1, 1)
    assert contract_of(state, cause, "committed", term, may_be_committed=True) == contract
    named = allowed_by(state, cause, "committed", term, may_be_committed=True)
    assert named == ([("min.insync.replicas", "3")] if contract == "not_promised" else [])
