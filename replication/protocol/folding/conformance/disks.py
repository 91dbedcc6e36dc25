"""Starts, stops and copies: what a replica comes back with, and whether its epoch file fits."""

from replication.protocol.folding.conformance import channels, told_lines, truncations
from replication.protocol.folding.conformance.expected import behaviour_of, exclude
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import EpochCache, assign
from replication.protocol.ground.model import Span, overlaps, same_record, uncovered
from replication.protocol.ground.topic_partition import Replica, State
from replication.protocol.ground.versions import Behaviour, known_behaviour
from replication.protocol.rules.start_up_recovery import OnDisk, start_up_recovery


def replica_stopped(state: State, event: ev.Event, fact: ev.ReplicaStopped) -> None:
    """A stopped broker fetches no more from where it was."""
    replica = state.replicas.get(fact.replica)
    if replica is None:
        return
    replica.claimed = None
    replica.answered = False
    left = fact.log_end_offset
    if left is not None and left < replica.log.log_end_offset and not replica.led_in_epoch:
        channels.fell_back(state, replica)


def replica_started(state: State, event: ev.Event, fact: ev.ReplicaStarted) -> None:
    """A start finds no high watermark past the log's end.

    It may find more than the last line named: a log goes silent before its broker is gone (kill,
    or the shutdown hook of log4j2), while it still appends.
    """
    replica = state.replicas.get(fact.replica)
    flags = known_behaviour(
        fact.kafka_version or state.settings.kafka_version, state.settings.inter_broker_version
    )
    if replica is None or flags is None:
        return
    replica.claimed = None
    replica.answered = False
    end = fact.log_end_offset
    if end is None:
        return
    _note_new_log(state, replica, end)
    what = f"broker {fact.replica} started"
    if fact.high_watermark is not None and fact.high_watermark > end:
        start = fact.log_start_offset or 0
        disk = OnDisk(end, start, start, fact.high_watermark)
        given = start_up_recovery(disk, flags).high_watermark
        if given < fact.high_watermark:
            exclude(state, event, "start_up_recovery", f"{what} with a high watermark",
                    f"at most {given}", fact.high_watermark)  # fmt: skip
    if behaviour_of(state, fact.replica) is None:
        return
    if not replica.led_in_epoch and end != replica.log.log_end_offset:
        channels.fell_back(state, replica)


def _note_new_log(state: State, leader: Replica, end: int) -> None:
    """Up to 0.10 the log of a new partition is made after its leader leads: from 0 on."""
    terms, leader_epoch = state.conformance.terms, leader.leader_epoch
    term = None if leader_epoch is None else terms.get(leader_epoch)
    new = end == 0 and leader.role == "leader" and leader.known_log_end_offset is None
    if new and term is not None and not term.high_watermarks:
        term.high_watermarks = [0]


def replica_log_observed(state: State, event: ev.Event, fact: ev.ReplicaLogObserved) -> None:
    """An epoch file names each epoch that its records have, at the first of them.

    In a copy that somebody took, epochs and base offsets are outside every check sum: a misfit
    proves damage as well as a wrong step.
    """
    _derive_cut(state, fact)
    told_lines.recovery_point(state, event, fact)
    flags = state.behaviour(fact.replica)
    entries = fact.epoch_entries
    if flags is None or entries is None or fact.copy != "current" or event.grade != "traced":
        return
    if not flags.has("leader_epoch_in_record_batches"):
        return
    wrong = _misplaced(fact, entries, flags)
    if wrong is not None:
        expected, observed = wrong
        what = f"broker {fact.replica}'s leader-epoch-checkpoint"
        exclude(state, event, "assign", what, expected, observed)


def _derive_cut(state: State, fact: ev.ReplicaLogObserved) -> None:
    """Notes the cut that a copy shows to have been made, where no line tells of it."""
    replica = state.replicas.get(fact.replica)
    if replica is None or fact.copy != "current" or not replica.log.spans:
        return
    if not (replica.stale or state.is_traced(fact.replica)):
        return  # What its log was when it began to follow, nobody saw.
    gone = [a for a, _, x, y in overlaps(replica.log.spans, list(fact.spans))
            if same_record(x, y) is False]  # fmt: skip
    if not gone:
        return
    cut = truncations.derived_cut(state, replica)
    if cut is not None and cut.offset == gone[0]:
        state.history.derived.append(cut)


def _misplaced(
    fact: ev.ReplicaLogObserved, entries: EpochCache, flags: Behaviour
) -> tuple[str, str] | None:
    """The first entry that the records contradict, as (expected, observed); None where they fit.

    Only a log without holes, whose epochs never fall, says where each of them begins. Entries of
    epochs without records are lawful between the records of others, and at the log's end.
    """
    spans, start, end = fact.spans, fact.log_start_offset, fact.log_end_offset
    if uncovered(start, end, spans) or not _rise(spans):
        return None
    implied: EpochCache = ()
    for span in spans:
        implied = assign(implied, span.leader_epoch or 0, span.first_offset, flags)
    firsts = {e.start_offset for e in implied}
    given = {e.leader_epoch: e.start_offset for e in entries}
    for entry in implied:
        told = given.get(entry.leader_epoch)
        at_start = entry.start_offset == start
        if told is None and not at_start:
            return f"epoch {entry.leader_epoch} at {entry.start_offset}", "no such epoch"
        if told is not None and told != entry.start_offset and not (at_start and told <= start):
            return f"epoch {entry.leader_epoch} at {entry.start_offset}", str(told)
    stamped = {e.leader_epoch for e in implied}
    for entry in entries:
        offset = entry.start_offset
        inside = start < offset < end and offset not in firsts
        if entry.leader_epoch not in stamped and inside:
            return f"no epoch that begins at {offset}", f"epoch {entry.leader_epoch} at {offset}"
    return None


def _rise(spans: tuple[Span, ...]) -> bool:
    """Whether every record's epoch is known, and none is below that of a record before it."""
    epochs = [s.leader_epoch for s in spans]
    known = [e for e in epochs if e is not None]
    return len(known) == len(epochs) and known == sorted(known)
