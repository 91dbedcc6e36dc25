"""Which settings were in force when an election was made, by the controllers' own records."""

from replication.evidence.joining.changed_settings import described_by
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished, identified
from replication.evidence.joining.partition_settings import changes_of, settings_of
from replication.evidence.joining.registrations import Recorded
from replication.evidence.joining.settings_in_time import InForce, in_time
from replication.evidence.metadata_log.history import ConfigChange
from replication.evidence.zookeeper.history import SettingsWritten, ZooKeeperHistory
from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import State
from tests.evidence.joining.history import history
from tests.protocol.judgement.told import told as folded

UNCLEAN, MINIMUM = "unclean.leader.election.enable", "min.insync.replicas"


def written(*changes: tuple[int, str, str | None]) -> tuple[ConfigChange, ...]:
    """(metadata offset, name, value), a second apart."""
    return tuple(ConfigChange(place * 1000, place, name, value) for place, name, value in changes)


def values(found: list[InForce], name: str) -> list[str | None]:
    return [state.values[name] for state in found]


def test_what_a_topic_has_of_its_own_counts_until_it_is_taken_back() -> None:
    told = history(
        cluster_configs={"": written((3, UNCLEAN, "true"))},
        topic_configs={"t": written((1, UNCLEAN, "false"), (5, UNCLEAN, None))},
    )

    found = in_time((UNCLEAN,), "t", {}, told, None)

    assert values(found, UNCLEAN) == [None, "false", "true"]
    assert [state.metadata_offset for state in found] == [None, 1, 5]


def test_what_was_taken_back_is_not_in_force_at_the_end() -> None:
    """Once it stayed: unclean elections were then called permitted."""
    told = history(topic_configs={"t": written((1, UNCLEAN, "true"), (5, UNCLEAN, None))})

    assert settings_of("t", {UNCLEAN: "false"}, told, None) == {UNCLEAN: "false"}
    assert settings_of("t", {}, told, None) == {}


def test_a_znode_holds_all_settings_of_its_scope() -> None:
    kept = [
        SettingsWritten("", 1, {MINIMUM: "2"}),
        SettingsWritten("t", 2, {UNCLEAN: "true", MINIMUM: "3"}),
        SettingsWritten("u", 3, {MINIMUM: "9"}),
        SettingsWritten("t", 4, {UNCLEAN: "true"}),
    ]

    found = in_time((MINIMUM,), "t", {}, None, ZooKeeperHistory(settings_written=kept))

    assert values(found, MINIMUM) == [None, "2", "3", "2"]


def elections(*changes: tuple[int, str, str | None]) -> State:
    """Elections at offsets 2, 4 and 6 of the metadata log; the broker's file forbids unclean."""
    told = history(topic_configs={"t": written(*changes)})
    recorded = [
        Recorded(
            ev.LeadershipRecorded(1 + n % 2, n, (1 + n % 2,), n, "unclean", (1, 2)),
            place * 1000,
            ev.Source("__cluster_metadata-0", None, place),
        )
        for n, place in enumerate((2, 4, 6))
    ]
    of_brokers = {UNCLEAN: "false", MINIMUM: "1"}
    evidence = PartitionEvidence(
        "c", "t", "", 0, recorded=recorded, history_complete=True,
        settings=settings_of("t", of_brokers, told, None),
        settings_in_time=changes_of("t", of_brokers, told, None),
    )  # fmt: skip
    return folded(identified(finished(evidence), "trace", 0))


def test_an_election_is_judged_by_what_was_in_force_then() -> None:
    state = elections((3, UNCLEAN, "true"), (3, MINIMUM, "2"), (5, UNCLEAN, None))

    terms = state.history.terms
    assert [t.unclean_permitted for t in terms] == [False, True, False]
    assert [t.min_insync_replicas for t in terms] == [1, 2, 2]
    assert state.settings.unclean_leader_election is False
    assert state.settings.min_insync_replicas == 2


def test_what_was_in_force_before_the_first_state_is_no_change() -> None:
    state = elections((1, UNCLEAN, "true"))

    assert [t.unclean_permitted for t in state.history.terms] == [True, True, True]
    assert state.applied == 6  # Description, coverage, three states, the end.


def test_a_setting_of_no_number_is_not_known() -> None:
    assert described_by({MINIMUM: "two", UNCLEAN: None}) == ev.PartitionDescribed()
    assert described_by({MINIMUM: "2", UNCLEAN: "TRUE"}) == ev.PartitionDescribed(
        min_insync_replicas=2, unclean_leader_election=True
    )
