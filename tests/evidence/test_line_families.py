"""Every line family reads its own example lines, alone and inside a file of any layout."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact, read_broker_log
from replication.evidence.broker_logs.line_families import FAMILIES, INDEX, short_logger
from replication.evidence.broker_logs.line_families.family import Example, Found, LineFamily
from replication.evidence.unreadable import Unreadable

# What the importer is promised. `leader_appended` of older plans is `log_appended`: the line of a
# leader's append and that of a follower's are the same.
VOCABULARY = """
process_started kafka_version server_started process_signalled stopping stopped_cleanly settings
cluster_id clean_shutdown_found unclean_recovery log_dir_failed
log_loaded high_watermark_loaded high_watermark_missing segment_recovered corruption_found
corrupt_index_found log_created log_deleted log_marked_deleted log_marked_stray log_start_advanced
segments_deleted epoch_entry_added epoch_entries_cleared
became_leader became_follower leadership_kept leader_and_isr_received leadership_cached
truncated truncation_without_effect truncation_reason truncated_below_high_watermark
high_watermark_regressed fetch_out_of_range fetch_offset_reset truncation_refused fenced
fetcher_added fetcher_removed
isr_shrink_proposed isr_expanded isr_updated isr_update_refused
became_controller controller_resigned partition_state_changed leader_selected
unclean_leader_elected replica_removed_from_isr isr_changed_by_leader partition_changed
leader_elected broker_fenced broker_unfenced broker_registered brokers_changed
broker_unclean_shutdown
log_appended high_watermark_set log_end_offset_set leader_high_watermark_updated
high_watermark_not_updated follower_log_end_recorded fetch_sent fetch_response_received
follower_appended follower_high_watermark_set epoch_answer_received isr_change_enqueued
acks_awaited request_logged
"""

CASES = [
    pytest.param(family, example, id=f"{family.kind or 'ignored'}-{number}")
    for family in FAMILIES
    for number, example in enumerate(family.examples)
]
# Where the classes live; the reader must know a logger in any of Kafka's packages.
PACKAGES = ("kafka.server", "org.apache.kafka.storage.internals.log")


def full_names(family: LineFamily) -> Iterator[str]:
    for logger in family.loggers:
        if "." in logger:
            yield logger
        else:
            yield from (f"{package}.{logger}" for package in PACKAGES)


def as_found(facts: list[LogLineFact]) -> tuple[Found, ...]:
    return tuple(Found(fact.fields, fact.broker, fact.topic, fact.partition) for fact in facts)


@pytest.mark.parametrize(("family", "example"), CASES)
def test_example(family: LineFamily, example: Example) -> None:
    for logger in (*family.loggers, None):
        answer = INDEX.read(example.message, logger)
        assert answer is not None
        assert answer[0].kind == family.kind
        assert tuple(answer[1] or ()) == example.found


@pytest.mark.parametrize(("family", "example"), CASES)
def test_other_loggers_do_not_count(family: LineFamily, example: Example) -> None:
    assert INDEX.read(example.message, "GroupCoordinator") is None


def test_every_kind_of_the_vocabulary_has_an_example() -> None:
    shown = {family.kind for family in FAMILIES if any(item.found for item in family.examples)}
    assert set(VOCABULARY.split()) - shown == set()


def test_every_family_has_an_example_and_says_for_which_versions() -> None:
    assert [
        family.pattern for family in FAMILIES if not (family.examples and family.versions)
    ] == []


@pytest.mark.parametrize("layout", ["brackets", "brackets and thread", "logger first", "json"])
def test_every_example_is_found_in_a_file(layout: str, tmp_path: Path) -> None:
    """The search for beginnings of lines and the families must agree, with each logger."""
    path = tmp_path / "server.log"
    lines: list[str] = ["[2026-11-20 15:17:30,518] INFO Registered x (kafka.utils.Other)"]
    expected: dict[int, tuple[str, tuple[Found, ...]]] = {}
    if layout != "brackets":
        lines = []
    for family in FAMILIES:
        for item in family.examples:
            if "\n" in item.message and layout != "json":
                continue
            for logger in full_names(family):
                lines.append(line_of(layout, item.message, logger))
                expected[len(lines)] = (family.kind, item.found)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found: dict[int, list[LogLineFact]] = {}
    for fact in read_broker_log(path):
        assert isinstance(fact, LogLineFact), fact
        assert fact.at == 1795187850518
        found.setdefault(fact.line, []).append(fact)
    for number, (kind, wanted) in expected.items():
        facts = found.get(number, [])
        assert as_found(facts) == wanted, lines[number - 1]
        assert {fact.kind for fact in facts} <= {kind}, lines[number - 1]


def line_of(layout: str, message: str, logger: str) -> str:
    if layout == "brackets":
        return f"[2026-11-20 15:17:30,518] INFO {message} ({logger})"
    if layout == "brackets and thread":
        return f"2026-11-20 15:17:30,518 INFO {message} ({logger}) [data-plane-handler-0]"
    if layout == "logger first":
        return f"2026-11-20 15:17:30,518 INFO [main] {logger}:12 - {message}"
    time = {"timestamp": "2026-11-20T15:17:30.518Z", "level": "INFO"}
    return json.dumps({**time, "loggerName": logger, "message": message})


@pytest.mark.parametrize(("family", "example"), CASES)
def test_cut_lines_never_raise(family: LineFamily, example: Example) -> None:
    """A line cut anywhere is no line of ours, another wording, or (its end missing) still this."""
    for end in range(0, len(example.message), 7):
        INDEX.read(example.message[:end], family.loggers[0])
        INDEX.read(example.message[:end] + "\ufffd", None)


def test_a_family_that_claims_a_line_it_cannot_read_says_so(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text(
        "[2026-11-20 15:17:30,518] INFO [Partition t-0 broker=1] ISR updated to nobody "
        "(kafka.cluster.Partition)\n"
        "[2026-11-20 15:17:30,519] INFO [Partition t-0 broker=1] Something new about t-0 "
        "(kafka.cluster.Partition)\n",
        encoding="utf-8",
    )
    (only,) = read_broker_log(path)
    assert isinstance(only, Unreadable)
    assert only.where == "line 1"
    assert "isr_updated" in only.reason


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("kafka.log.UnifiedLog$", "UnifiedLog"),
        ("org.apache.kafka.storage.internals.log.UnifiedLog", "UnifiedLog"),
        ("kafka.controller.ReplicaStateMachine$BrokerChangeListener", "BrokerChangeListener"),
        ("state.change.logger", "state.change.logger"),
        ("kafka.request.logger", "kafka.request.logger"),
    ],
)
def test_short_logger(name: str, short: str) -> None:
    assert short_logger(name) == short
