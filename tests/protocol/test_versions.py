"""Holds the flags against the published boundaries: where each is off, and where on.

The rows are written out by hand, release by release, so that a changed boundary in versions.py
cannot pass by being compared with itself.
"""

import pytest

from replication.protocol.ground import versions
from replication.protocol.ground.boundaries import BOUNDARIES
from replication.protocol.ground.versions import GENERATIONS, NEWEST_KNOWN, behaviour, flag_table

# flag, releases without it, releases with it
CODE_BOUNDARIES = [
    ("leader_epoch_in_record_batches", "0.10.2.2 0.9.0.1", "0.11.0.0 1.0.0 4.3.0"),
    ("epoch_cached_at_election", "0.11.0.3 1.1.1 2.0.0", "2.0.1 2.1.0 3.0.0"),
    ("epoch_before_cache_has_end", "1.1.1 2.0.0", "2.0.1 2.1.0"),
    (
        "undefined_epoch_has_no_end",
        "0.11.0.0 0.11.0.2 1.0.0 1.0.1 1.1.0",
        "0.11.0.3 1.0.2 1.1.1 2.0.0 2.1.0",
    ),
    ("retruncates_after_missed_epoch", "1.1.1 2.0.0", "2.0.1 2.1.0"),
    ("retruncates_on_every_leader_epoch", "2.0.0 2.0.1", "2.1.0 2.2.0"),
    ("isr_expansion_waits_for_epoch_start", "2.0.0", "2.0.1 2.1.0"),
    ("survives_out_of_range", "2.0.0", "2.0.1 2.1.0"),
    ("fetch_carries_leader_epoch", "2.0.1", "2.1.0 3.9.1"),
    ("high_watermark_kept_within_log", "2.3.1", "2.4.0 2.5.0"),
    ("high_watermark_reset_by_full_truncation", "2.3.1 2.4.0", "2.4.1 2.5.0"),
    ("maximal_isr", "2.6.3", "2.7.0 2.8.0"),
    ("empty_epoch_dropped_at_log_end", "2.5.1 2.6.0", "2.6.1 2.6.3 2.7.0"),
    ("leader_answers_diverging_epoch", "2.6.3", "2.7.0"),
    ("truncates_on_fetch", "2.7.0 2.7.2", "2.8.0 4.3.0"),
    ("diverging_fetch_is_no_progress", "2.7.0 2.7.1 2.8.0", "2.7.2 2.8.1 3.0.0"),
    ("log_start_checked_before_divergence", "2.7.1 2.8.0", "2.7.2 2.8.1 3.0.0"),
    ("truncates_before_high_watermark", "2.8.0 3.3.2 3.4.0", "3.4.1 3.5.0 4.0.0"),
    ("high_watermark_counts_eligible_only", "3.5.2", "3.6.0"),
    ("isr_shrink_keeps_leader_epoch", "3.5.2", "3.6.0"),
    ("high_watermark_waits_for_min_insync_replicas", "3.6.2", "3.7.0 4.1.1"),
    ("min_insync_replicas_capped", "3.6.2", "3.7.0"),
    ("eligible_leader_replicas_known", "3.9.1", "4.0.0 4.3.0"),
    ("high_watermark_counts_caught_up_outsiders", "0.10.1.1", "0.10.2.0"),
    ("caught_up_by_previous_fetch", "0.10.1.1 0.9.0.1", "0.10.2.0"),
    ("isr_by_time_alone", "0.8.2.2", "0.9.0.0"),
    (
        "fetch_answers_high_watermark_after_update",
        "0.11.0.3 1.0.2 1.1.1 2.0.0",
        "1.0.0 1.0.1 1.1.0",
    ),
    ("fetch_answers_at_once_for_new_high_watermark", "2.3.1 2.6.0", "2.4.0 2.4.1 2.5.0 2.5.1"),
    ("last_isr_member_always_kept", "0.11.0.3 1.0.2", "1.1.0 2.0.0"),
    ("truncates_to_leader_end_offset", "0.10.2.2", "0.11.0.0 1.1.1"),
    ("truncates_by_common_epoch", "1.1.1", "2.0.0 2.0.1"),
    ("epoch_end_offset_names_epoch", "1.1.1", "2.0.0"),
    ("latest_offset_waits_for_epoch_start", "2.1.1", "2.2.0"),
    ("consumers_may_fetch_from_followers", "2.3.1", "2.4.0"),
    ("lag_limit_is_30_seconds", "2.4.1", "2.5.0"),
    ("acks_all_by_default", "2.8.2", "3.0.0"),
    ("unclean_leader_is_recovering", "3.1.2", "3.2.0"),
    ("isr_needs_unfenced_broker", "3.2.3", "3.3.0"),
    ("isr_request_ahead_is_not_controller", "3.2.3", "3.3.0"),
    ("ineligible_replica_has_error", "3.2.3", "3.3.0"),
    ("isr_commit_raises_high_watermark", "2.8.2 3.0.2", "3.1.0"),
    ("restart_is_noticed", "1.1.1 2.1.1", "2.2.0 3.9.1"),
    ("preferred_read_replica_is_in_isr", "2.4.1 3.2.3 3.3.1", "3.3.2 3.4.0"),
    ("last_known_leader_must_be_active", "4.0.0", "4.1.0 4.3.0"),
    ("log_end_is_in_sync", "0.9.0.1 2.0.1", "2.1.0"),
    ("leading_on_keeps_followers", "0.8.2.2", "0.9.0.0"),
    ("reassignment_waits_for_whole_target", "3.7.1", "3.8.0"),
    ("reassignment_waits_for_added_alone", "3.9.1 4.1.1 4.2.0", "4.3.0"),
    ("late_fetch_response_dropped", "2.7.2 2.8.0 3.8.1 3.9.0 4.0.0", "3.9.1 4.0.1 4.1.0"),
    ("isr_needs_broker_epoch", "3.4.1", "3.5.0"),
    ("kraft_heeds_unclean_setting", "3.3.2 3.6.0 3.8.1", "3.9.0 4.3.0"),
]

# flag, release, inter-broker versions that are too old for it, ones that suffice
SPOKEN_BOUNDARIES = [
    ("truncates_to_leader_end_offset", "1.1.1", "0.10.2 0.11.0-IV1", "0.11.0-IV2 0.11.0 1.0"),
    ("truncates_by_common_epoch", "2.0.1", "0.11.0-IV1", "0.11.0-IV2 2.0-IV0"),
    ("epoch_end_offset_names_epoch", "2.0.1", "1.1 1.1-IV0", "2.0-IV0 2.0"),
    ("fetch_carries_leader_epoch", "3.0.0", "2.0 2.1-IV0", "2.1-IV1 2.1"),
    ("latest_offset_waits_for_epoch_start", "3.0.0", "2.1 2.2-IV0", "2.2-IV1"),
    ("consumers_may_fetch_from_followers", "2.8.2", "2.2 2.3-IV0", "2.3-IV1 2.4"),
    ("leader_answers_diverging_epoch", "2.8.2", "2.6 2.7-IV0", "2.7-IV1 2.8"),
    ("truncates_on_fetch", "2.8.2", "2.6 2.7-IV0", "2.7-IV1 2.8"),
    ("maximal_isr", "2.8.2", "2.6 2.7-IV1", "2.7-IV2 2.7"),
    ("unclean_leader_is_recovering", "3.9.1", "3.1", "3.2-IV0"),
    ("ineligible_replica_has_error", "3.9.1", "2.7", "2.8-IV0 2.8"),
    ("isr_needs_broker_epoch", "3.9.1", "3.4 3.5-IV0", "3.5-IV1"),
    ("isr_shrink_keeps_leader_epoch", "3.9.1", "3.5", "3.6-IV0"),
    ("eligible_leader_replicas_known", "4.1.1", "3.9 4.0-IV0", "4.0-IV1 4.0"),
]

TRUNCATION_PRESETS = [
    ("0.8.2.2", None, "truncate_to_high_watermark"),
    ("0.10.2.2", None, "truncate_to_high_watermark"),
    ("3.9.1", "0.11.0-IV1", "truncate_to_high_watermark"),
    ("0.11.0.0", None, "truncate_to_leader_end_offset"),
    ("1.1.1", None, "truncate_to_leader_end_offset"),
    ("2.0.0", None, "truncate_by_common_epoch"),
    ("2.0.1", "1.1", "truncate_by_common_epoch"),
    ("2.7.2", None, "truncate_by_common_epoch"),
    ("2.8.0", "2.7-IV0", "truncate_by_common_epoch"),
    ("2.8.0", None, "truncate_on_fetch"),
    ("4.3.0", None, "truncate_on_fetch"),
]

# release, lag limit ms, lag limit messages, unclean election, producer acks
DEFAULTS = [
    ("0.8.2.2", 10_000, 4_000, True, "1"),
    ("0.10.2.2", 10_000, None, True, "1"),
    ("0.11.0.0", 10_000, None, False, "1"),
    ("2.4.1", 10_000, None, False, "1"),
    ("2.5.0", 30_000, None, False, "1"),
    ("2.8.2", 30_000, None, False, "1"),
    ("3.0.0", 30_000, None, False, "all"),
]


@pytest.mark.parametrize(("flag", "without", "with_it"), CODE_BOUNDARIES)
def test_a_flag_turns_on_at_its_release_on_every_branch(
    flag: str, without: str, with_it: str
) -> None:
    for release in without.split():
        assert not behaviour(release).has(flag), release
    for release in with_it.split():
        assert behaviour(release).has(flag), release


@pytest.mark.parametrize(("flag", "release", "without", "with_it"), SPOKEN_BOUNDARIES)
def test_a_flag_needs_its_inter_broker_version(
    flag: str, release: str, without: str, with_it: str
) -> None:
    for spoken in without.split():
        assert not behaviour(release, spoken).has(flag), spoken
    for spoken in with_it.split():
        assert behaviour(release, spoken).has(flag), spoken


def test_every_flag_is_held_by_a_row_here() -> None:
    assert {row[0] for row in CODE_BOUNDARIES} == {b.flag for b in BOUNDARIES}
    spoken = {b.flag for b in BOUNDARIES if b.inter_broker_version}
    assert {row[0] for row in SPOKEN_BOUNDARIES} == spoken


@pytest.mark.parametrize(("release", "spoken", "rule"), TRUNCATION_PRESETS)
def test_the_truncation_rule_of_a_release(release: str, spoken: str | None, rule: str) -> None:
    assert behaviour(release, spoken).truncation == rule


@pytest.mark.parametrize(("release", "lag_ms", "lag_messages", "unclean", "acks"), DEFAULTS)
def test_defaults(
    release: str, lag_ms: int, lag_messages: int | None, unclean: bool, acks: str
) -> None:
    b = behaviour(release)

    assert b.replica_lag_time_max_ms == lag_ms
    assert b.replica_lag_max_messages == lag_messages
    assert b.unclean_leader_election is unclean
    assert b.acks == acks


def test_eligible_leader_replicas_are_off_in_4_0_and_on_from_4_1() -> None:
    assert not behaviour("4.0.0").eligible_leader_replicas
    assert behaviour("4.0.0", eligible_leader_replicas=True).eligible_leader_replicas
    assert behaviour("4.1.0").eligible_leader_replicas
    assert not behaviour("4.1.0", "3.9").eligible_leader_replicas
    assert not behaviour("4.1.0", eligible_leader_replicas=False).eligible_leader_replicas


def test_a_remedy_is_in_no_release() -> None:
    for remedy in versions.REMEDIES:
        assert not any(behaviour(v).has(remedy.flag) for v in ("0.9.0.0", "2.8.2", "4.3.0"))
        assert versions.with_remedy(behaviour("4.3.0"), remedy.flag).has(remedy.flag)
    with pytest.raises(ValueError, match="no remedy"):
        versions.with_remedy(behaviour("4.3.0"), "maximal_isr")


def test_each_generation_has_a_release_and_they_differ() -> None:
    flags = [behaviour(release).flags for release in GENERATIONS.values()]

    assert len(set(flags)) == len(GENERATIONS)


def test_the_flag_table_has_every_flag_once() -> None:
    rows = flag_table()

    assert sorted(r.flag for r in rows) == sorted(b.flag for b in BOUNDARIES)
    assert all(r.since and r.source and r.means for r in rows)


@pytest.mark.parametrize(
    ("version", "spoken", "says"),
    [
        ("7.5.0-ccs", None, "not an Apache Kafka version"),
        ("2.8.1-amzn-1", None, "not an Apache Kafka version"),
        ("3", None, "not an Apache Kafka version"),
        ("0.11", None, "not an Apache Kafka version"),
        ("3.6.0.1", None, "not an Apache Kafka version"),
        ("", None, "not an Apache Kafka version"),
        (
            "3.10.0",
            None,
            f"rules of Kafka 3.10.0 are not known here; those of 0.8.0 to {NEWEST_KNOWN} are. Get",
        ),
        ("7.5.0", None, "not known here"),
        ("2.8.0", "IV2", "not an inter-broker"),
        ("2.8.0", "3.0", "newer than Kafka 2.8.0"),
    ],
)
def test_an_unknown_version_is_refused_in_words(
    version: str, spoken: str | None, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        behaviour(version, spoken)


def test_a_controller_that_the_release_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="no ZooKeeper mode"):
        behaviour("4.0.0", controller="zookeeper")
    with pytest.raises(ValueError, match="no KRaft mode"):
        behaviour("2.7.0", controller="kraft")
    with pytest.raises(ValueError, match="eligible leader replicas"):
        behaviour("3.9.1", controller="kraft", eligible_leader_replicas=True)


def test_an_unknown_flag_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError):
        behaviour("3.9.1").has("no_such_flag")


def test_short_forms_of_versions() -> None:
    assert versions.parse_version("0.10.2") == (0, 10, 2, 0)
    assert versions.parse_version("2.8") == (2, 8, 0)
    assert versions.parse_version("3.9.1-SNAPSHOT") == (3, 9, 1)
    assert versions.parse_inter_broker_version("2.0.1") > versions.parse_inter_broker_version(
        "2.0-IV1"
    )
