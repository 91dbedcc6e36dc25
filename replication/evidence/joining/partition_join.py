"""The last step of joining: one partition's lines unpacked, its history and its copies' contents.

Needs nothing but what it is handed, so that partitions can be finished one after the other in
little memory, or on many machines.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.joining.changed_settings import changed_settings, described_by
from replication.evidence.joining.copies import identify_contents
from replication.evidence.joining.declared_coverage import is_traced
from replication.evidence.joining.epoch_misfits import doubted, leaderless, still_shown
from replication.evidence.joining.partition_events import events_of
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.payload_ids import Promise, naming_of
from replication.evidence.joining.promised_records import leaders_copy, unanswered, unplaced
from replication.evidence.joining.registrations import (
    COMPLETE_KINDS,
    ISR_KINDS,
    filled,
    from_lines,
    joined,
)
from replication.evidence.joining.repeated_lines import each_once
from replication.evidence.joining.replicas_own_lines import replicas_own_lines
from replication.evidence.joining.untold_records import untold_by
from replication.protocol.ground import events as ev
from replication.protocol.ground import wire
from replication.protocol.ground.versions import known_behaviour, parse_version

SETTING_NAMES = {
    "min.insync.replicas": "min_insync_replicas",
    "unclean.leader.election.enable": "unclean_leader_election",
    "cleanup.policy": "cleanup_policy",
}

ISR_UPDATED_PRINTED = "2.4.0"
# Only a controller with ZooKeeper, and who listens to it, prints these.
_OF_ZOOKEEPER = frozenset(("partition_state_changed", "leader_and_isr_received"))
# Lines about what a controller has registered.
_REGISTERED = COMPLETE_KINDS | ISR_KINDS


def file_rank(path: str) -> int:
    """Within one millisecond: the server's own log, then the state change log."""
    return 1 if "state-change" in path else 0


def in_file_order(fact: LogLineFact) -> tuple[int, int, int]:
    """By clock, then by file and line."""
    return (fact.at if fact.at is not None else 0, file_rank(fact.path), fact.line)


def finished(evidence: PartitionEvidence) -> PartitionEvidence:
    """The partition with its lines, described, its copies in order, their contents told apart."""
    lines = {broker: _unpacked(evidence, broker) for broker in evidence.packed}
    result = replace(evidence, lines=lines, copies=list(evidence.copies), notes=[])
    described = _described(result)
    if not result.history_complete or _outlives_history(result):
        facts = [
            f._replace(broker=f.broker if f.broker is not None else b)
            for b, mine in lines.items()
            for f in mine
            if f.topic is not None
        ]
        below = _eligible_below(described, facts)
        only_begin = () if result.by_zookeeper else _only_begin(lines, described.kafka_version)
        assigned, term = described.assigned_replicas, result.settled_term
        told = from_lines(facts, assigned, below, only_begin, term)
        join = filled if result.by_zookeeper and not result.history_complete else joined
        result.recorded = join(result.recorded, told)
        if described.assigned_replicas is None:
            named = [r.fact.assigned_replicas for r in result.recorded if r.fact.assigned_replicas]
            if named:
                described = replace(described, assigned_replicas=named[-1])
    result.described = _at_first(result, described)
    result.reassigned = _reassigned(result)
    result.truncates_by = _truncates_by(described)
    for copy in [c for c in result.copies if c.is_dump and is_traced(result, c.broker)]:
        # A dump has no place among steps that are all known; they tell of every moment.
        result.copies.remove(copy)
        result.notes.append(
            f"{copy.path}: the dump of {result.topic}-{result.partition} of broker {copy.broker} "
            "was not used: its log at TRACE tells every step"
        )
    result.bytes_verified = not any(c.is_dump for c in result.copies) and all(
        getattr(segment, "verify_crc", False)
        for copy in result.copies
        for segment in copy.directory.segments
    )
    result.copies.sort(key=lambda c: (-c.slot, c.broker, c.path))
    promises: list[Promise] = [*result.acknowledgements, *result.consumptions]
    result.naming = naming_of(result.copies, promises, result.payload_id_in)
    sequences = any(a.sequence is not None for a in result.acknowledgements)
    result.contents = identify_contents(
        result.copies,
        names=result.naming.names if result.naming.forms else None,
        with_sequences=sequences,
        untold=None if result.naming.unnamed else untold_by(result.acknowledgements),
    )
    unsure = list(doubted(result.copies, result.described, leaderless(result.recorded)))
    result.contents.unreadable += unsure
    result.contents.damaged.update(str(Path(place.path).parent) for place in unsure)
    if unsure:
        result.contents.places = still_shown(result.contents.places, result.copies)
    nowhere = unplaced(result)
    result.unplaced_by_isr = _of_unplaced(result, [a for a in nowhere if a.acks == "all"])
    result.unanswered = _of_unanswered(unanswered(result))
    shown = [text for text in (_untold(result), _of_unplaced(result, nowhere)) if text]
    if shown:
        result.missing = {"acknowledgements": "; ".join(shown), **result.missing}
    if result.naming.looked and result.naming.unnamed:
        clients = ", ".join(sorted({client for _, client in result.naming.unnamed}))
        result.notes.append(
            f"{result.topic}-{result.partition}: the payload ids of {clients} are not these "
            "records' keys, nor shown to be their values or a header: offsets alone count"
        )
    return result


def _of_unplaced(evidence: PartitionEvidence, nowhere: list[Acknowledgement]) -> str | None:
    """That acknowledged records have no place, if some have none."""
    if not nowhere:
        return None
    named = evidence.naming.looked and not evidence.naming.unnamed
    where = "no log here holds their ids" if named else "nothing shows where they are"
    return f"{len(nowhere)} acknowledged without an offset: {where}"


def _of_unanswered(sends: list[Acknowledgement]) -> str | None:
    """That records were sent of which neither an answer nor a copy tells, if some were."""
    if not sends:
        return None
    first = sends[0]
    where = f"{first.path} line {first.line}"
    return f"{len(sends)} without an answer whose records no log here holds, as of {where}"


def _untold(evidence: PartitionEvidence) -> str | None:
    """How it shows that acknowledgements are missing, if it does."""
    untold, leader = evidence.contents.untold, leaders_copy(evidence)
    if untold is None:
        return None
    if leader is None or evidence.described.cleanup_policy not in ("delete", "[delete]"):
        return untold.shows({}, (), None)
    end = leader.directory.log_end_offset if leader.clean and not leader.is_part else None
    return untold.shows(evidence.contents.places, leader.spans, end)


def identified(
    evidence: PartitionEvidence, trace_id: str, generation: int, incident: str = ""
) -> Iterator[ev.Event]:
    """A finished partition's events in sequence, with their content-derived ids."""
    for event in events_of(evidence, trace_id, generation):
        yield replace(event, event_id=wire.content_id(wire.to_row(event)), incident=incident)


def _unpacked(evidence: PartitionEvidence, broker: int) -> list[LogLineFact]:
    """One broker's lines about the partition and about its own process, in their order."""
    lines = list(evidence.processes.get(broker, ()))
    for packed in evidence.packed[broker]:
        lines.extend(packed)
    lines.sort(key=in_file_order)
    return list(each_once(replicas_own_lines(lines)))


def _outlives_history(evidence: PartitionEvidence) -> bool:
    """Whether lines name a leader or a partition epoch that the metadata log at hand has not
    reached: an ISR changes within a leader epoch."""
    facts = [r.fact for r in evidence.recorded]
    known = max((fact.leader_epoch for fact in facts), default=-1)
    registered = max((fact.partition_epoch or 0 for fact in facts), default=-1)
    return any(
        _names_above(f, "leader_epoch", known)
        if f.kind in ("became_leader", "became_follower")
        else f.kind in _REGISTERED and _names_above(f, "partition_epoch", registered)
        for lines in evidence.lines.values()
        for f in lines
    )


def _names_above(line: LogLineFact, what: str, known: int) -> bool:
    value = line.fields.get(what)
    return isinstance(value, int) and value > known


def _described(evidence: PartitionEvidence) -> ev.PartitionDescribed:
    """The partition's settings: the cluster's, then what was printed when logs were created, then
    what descriptions say. Where no controllers' record tells of changes and these differ, one was
    changed in use, and which value was in force when is not known."""
    values: dict[str, str | None] = dict(evidence.settings)
    printed = evidence.printed
    told: dict[str, set[str | None]] = {
        name: {None if value is None else _plain(value)} for name, value in (printed or {}).items()
    }
    for name, value in _told_of_topic(evidence):
        known = told.setdefault(name, set())
        known.add(value)
        values[name] = value if printed is None or len(known) == 1 else None
    assigned = None
    for recorded in evidence.recorded:
        assigned = recorded.fact.assigned_replicas or assigned
    said = described_by(values)
    return replace(
        evidence.described,
        assigned_replicas=assigned if assigned is not None else evidence.kafka_topics_replicas,
        min_insync_replicas=said.min_insync_replicas,
        unclean_leader_election=said.unclean_leader_election,
        cleanup_policy=said.cleanup_policy,
        leader=evidence.kafka_topics_leader,
    )


def _told_of_topic(evidence: PartitionEvidence) -> Iterator[tuple[str, str]]:
    """Each setting that a line tells which creates a log, then those of descriptions."""
    for lines in evidence.lines.values():
        for fact in lines:
            if fact.kind == "log_created":
                for name, value in fact.fields.get("settings", {}).items():
                    if name in SETTING_NAMES:
                        yield name, _plain(str(value))
    for name, value in evidence.kafka_topics_settings.items():
        yield name, _plain(value)


def _plain(value: str) -> str:
    """A setting's value, which lines print as a list or as it was given."""
    return value.strip("[]").replace(" ", "")


def _at_first(
    evidence: PartitionEvidence, described: ev.PartitionDescribed
) -> ev.PartitionDescribed:
    """With the settings before the first change that is told among the partition's states: the
    controllers tell which were in force when."""
    change = next(changed_settings(evidence), None)
    if change is None:
        return described
    place = evidence.settings_in_time.index(change)
    first = described_by(evidence.settings_in_time[place - 1].values)
    return replace(
        described,
        min_insync_replicas=first.min_insync_replicas,
        unclean_leader_election=first.unclean_leader_election,
        cleanup_policy=first.cleanup_policy,
    )


def _reassigned(evidence: PartitionEvidence) -> tuple[int, ...] | None:
    """The assignment that a description tells of, if it is newer than what the controllers' history
    and the brokers' lines name; None where it is not, or is the same.

    The metadata log, where it is whole, tells of every change of it.
    """
    named = [(r.at, r.fact.assigned_replicas) for r in evidence.recorded]
    named = [(at, replicas) for at, replicas in named if replicas]
    if evidence.kafka_topics_replicas is None or evidence.kafka_topics_at is None or not named:
        return None
    if not evidence.clocks_compare:
        return None
    at, replicas = named[-1]
    if evidence.history_complete and not _outlives_history(evidence):
        return None
    if (
        at is None
        or at >= evidence.kafka_topics_at
        or set(replicas or ()) == set(evidence.kafka_topics_replicas)
    ):
        return None
    return evidence.kafka_topics_replicas


def _eligible_below(described: ev.PartitionDescribed, facts: list[LogLineFact]) -> float:
    """Below how many members of the ISR who is outside may be eligible to lead (KIP-966)."""
    flags = known_behaviour(described.kafka_version, described.inter_broker_version)
    if described.controller == "zookeeper" or any(f.kind in _OF_ZOOKEEPER for f in facts):
        return 0
    if flags is not None and not flags.has("eligible_leader_replicas_known"):
        return 0
    needed = described.min_insync_replicas
    return math.inf if needed is None else needed


def _only_begin(lines: Mapping[int, list[LogLineFact]], kafka_version: str | None) -> set[int]:
    """Brokers of releases whose leaders print that they begin to change the ISR, not that it is
    done. kafka_version: of all of them, where their own lines are not kept for being several."""
    of_each = {
        broker: {str(f.fields["version"]) for f in mine if f.kind == "kafka_version"}
        for broker, mine in lines.items()
    }
    if not any(of_each.values()) and kafka_version is not None:
        of_each = {broker: {kafka_version} for broker in lines}
    return {
        broker
        for broker, versions in of_each.items()
        if versions and all(_is_before(v, ISR_UPDATED_PRINTED) for v in versions)
    }


def _is_before(version: str, release: str) -> bool:
    try:
        return parse_version(version) < parse_version(release)
    except ValueError:
        return False


def _truncates_by(described: ev.PartitionDescribed) -> str:
    """What an unexplained cut of a follower's log follows, by the version's rule."""
    flags = known_behaviour(described.kafka_version, described.inter_broker_version)
    if flags is None:
        return "unknown"
    return "high_watermark" if flags.truncation == "truncate_to_high_watermark" else "leader_epoch"
