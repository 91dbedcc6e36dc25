"""One observed event as one sentence to quote, and the rule that governs such a step."""

from collections.abc import Callable, Iterable
from typing import Any

from replication.protocol.ground import events as ev
from replication.protocol.ground.topic_partition import Registration, State
from replication.reports.inventory_words import moment

ELECTION_WORDS = {
    "initial": "the first leader",
    "clean": "a clean election, from the ISR",
    "preferred": "a preferred-leader election",
    "unclean": "an unclean election, from outside the ISR",
    "eligible_leader_replica": "an election from the eligible leader replicas",
    "last_known_leader": "an election of the last known leader",
    "same_leader": "the same leader, in a new leader epoch",
    "unknown": "whether cleanly is not shown",
}
STOP_WORDS = {
    "clean": "stops cleanly",
    "process_crash": "crashes",
    "power_loss": "loses power",
    "disk_loss": "loses its disk",
    "unknown": "stops; how is not shown",
}
CUT_WORDS = {
    "high_watermark": "to its own high watermark",
    "leader_epoch": "to where the leader says that epoch ended",
    "diverging_epoch": "to where the leader's fetch response says that the logs part",
    "out_of_range": "after an out-of-range answer",
    "full": "completely",
    "recovery": "while recovering the log",
}
START_WORDS = {"retention": "retention", "deletion": "record deletion", "leader": "its leader did"}
# The same as brokers print it.
PRINTED_STARTS = {
    "segment deletion": "retention",
    "client delete records request": "deletion",
    "leader offset increment": "leader",
}
SUBJECT_WORDS = {
    "acknowledgements": "the producers' acknowledgement log",
    "consumptions": "the consumers' log",
    "controller_history": "the controller's history",
    "controller_history_end": "the end of the controller's history",
    "broker_log": "the broker log",
    "replica_trace": "a step-by-step trace",
    "log_directory": "the log directory",
    "payloads": "the records' contents",
    "committed_records": "where committed records are",
    "sends": "what became of each send",
    "whole_log": "that no damaged records were dropped from its log",
    "clocks": "how the clocks of brokers and clients compare",
    "all_producers": "that no producer's acknowledgements are missing",
}
COPY_WORDS = {
    "current": "its log directory",
    "live": "its log directory, read beside it",
    "part": "a dump of its log",
    "stray": "a stray directory",
    "future": "a directory that was being moved",
    "failed": "a directory that was renamed to be deleted",
}
# Which rule of protocol/rules/ governs a step of that kind, where the kind alone says so.
RULES = {
    "replica_started": "start_up_recovery",
    "became_leader": "become_leader",
    "became_follower": "when_to_truncate",
    "leader_appended": "produce_admission",
    "follower_appended": "fetch_admission",
    "fetch_requested": "fetch_admission",
    "fetch_answered": "fetch_response_high_watermark",
    "log_start_advanced": "log_start",
    "records_acknowledged": "acknowledge",
    "records_consumed": "consumer_visibility",
}
CUT_RULES = {
    "high_watermark": "truncate_to_high_watermark",
    "diverging_epoch": "truncate_on_fetch",
    "out_of_range": "out_of_range_reset",
    "full": "out_of_range_reset",
    "recovery": "start_up_recovery",
}


def offset_range(first: int, end: int) -> str:
    """Offsets [first, end) in words; the end that is said is the last one inside."""
    return f"offset {first}" if end == first + 1 else f"offsets {first} to {end - 1}"


def _is(first: int, end: int) -> str:
    return "is" if end == first + 1 else "are"


def brokers(numbers: Iterable[int]) -> str:
    """A set of brokers as Kafka's tools print it."""
    return "{" + ", ".join(str(n) for n in numbers) + "}"


def sentence(event: ev.Event, before: State) -> str:
    """What happened, given the state just before it; one sentence, present tense."""
    words = WORDS[type(event.fact)](event.fact, before)
    if isinstance(event.fact, ev.ReplicaStopped) and event.fact.reason == "process_crash":
        words = _crashed(event, event.fact.replica, before) or words
    return words[:1].upper() + words[1:] + "."


def rule(event: ev.Event, before: State) -> str | None:
    """The name of the rule that governs this step in the Kafka version at hand, if one does."""
    fact = event.fact
    if isinstance(fact, ev.Truncated):
        return CUT_RULES.get(fact.reason) or _truncation_rule(before, fact.replica)
    if isinstance(fact, ev.LeadershipRecorded):
        return _registration_rule(fact, before)
    if isinstance(fact, ev.HighWatermarkAdvanced):
        known = before.replicas.get(fact.replica)
        leads = known is not None and known.role == "leader"
        return "high_watermark_of_leader" if leads else "high_watermark_of_follower"
    return RULES.get(fact.kind)


def _truncation_rule(before: State, replica: int) -> str | None:
    flags = before.behaviour(replica)
    return None if flags is None else flags.truncation


def _registration_rule(fact: ev.LeadershipRecorded, before: State) -> str | None:
    if fact.leader is not None and fact.election_kind is not None:
        controller = before.settings.controller
        return f"election_{controller}" if controller in ("kraft", "zookeeper") else None
    had, has = before.registration.isr, fact.isr
    if had is None or has is None or set(had) == set(has):
        return None
    return "isr_expand" if set(has) > set(had) else "isr_shrink"


def isr_changed(fact: ev.LeadershipRecorded, before: Registration) -> bool:
    """Whether this record changes the in-sync replicas, as far as both are known."""
    return fact.isr is not None and before.isr is not None and set(fact.isr) != set(before.isr)


def _known(name: str, value: Any) -> list[str]:
    return [] if value is None else [f"{name} {value}"]


def _described(fact: ev.PartitionDescribed, before: State) -> str:
    parts = []
    if fact.deleted:
        parts.append("the topic is deleted")
    if fact.assigned_replicas is not None:
        parts.append(f"replicas {brokers(fact.assigned_replicas)}")
    parts += _known("min.insync.replicas", fact.min_insync_replicas)
    if fact.unclean_leader_election is not None:
        allowed = "allowed" if fact.unclean_leader_election else "not allowed"
        parts.append(f"unclean elections {allowed}")
    parts += _known("cleanup.policy", fact.cleanup_policy)
    parts += _known("Kafka", fact.kafka_version)
    parts += _known("inter-broker protocol", fact.inter_broker_version)
    parts += [] if fact.leader is None else [f"kafka-topics named broker {fact.leader} as leader"]
    return "settings as found: " + ", ".join(parts) if parts else "settings: nothing is known"


def _recorded(fact: ev.LeadershipRecorded, before: State) -> str:
    isr = "" if fact.isr is None else f"; the ISR is {brokers(fact.isr)}"
    was = before.registration
    if fact.isr is not None and isr_changed(fact, was):
        isr = f"; the ISR goes from {brokers(was.isr or ())} to {brokers(fact.isr)}"
    if fact.leader is None:
        return f"the controller records no leader, leader epoch {fact.leader_epoch}{isr}"
    if fact.election_kind is None:
        return (
            f"the controller keeps broker {fact.leader} as leader of leader epoch "
            f"{fact.leader_epoch}{isr}"
        )
    kind = ELECTION_WORDS.get(fact.election_kind, fact.election_kind)
    recovering = "; its log is being recovered" if fact.recovering else ""
    return (
        f"the controller makes broker {fact.leader} leader, leader epoch {fact.leader_epoch}: "
        f"{kind}{isr}{recovering}"
    )


def _log_facts(end: int | None, high_watermark: int | None, start: int | None = None) -> str:
    parts = _known("log start", start or None) + _known("log end", end)
    parts += _known("high watermark", high_watermark)
    return f" ({', '.join(parts)})" if parts else ""


def _started(fact: ev.ReplicaStarted, before: State) -> str:
    how = {True: " after a clean stop", False: " after an unclean stop", None: ""}[fact.clean]
    facts = _log_facts(fact.log_end_offset, fact.high_watermark, fact.log_start_offset)
    return f"broker {fact.replica} loads its log{how}{facts}"


def _stopped(fact: ev.ReplicaStopped, before: State) -> str:
    left = "" if fact.log_end_offset is None else f"; its log ends at {fact.log_end_offset}"
    return f"broker {fact.replica} {STOP_WORDS.get(fact.reason, 'stops')}{left}"


def _crashed(event: ev.Event, broker: int, before: State) -> str | None:
    """A crash that the next start alone tells, by its first line: between which lines it happened;
    None where something else tells the crash."""
    if event.source is None or event.source.line is None:
        return None
    lines = (s for s in reversed(before.story.own.get(broker, ())) if s.kind != "copy")
    last = next((s.observed_at for s in lines if s.observed_at is not None), None)
    after = "" if last is None else f" after its line of {moment(last)}"
    return f"broker {broker} crashed{after}; its next start begins with the line named here"


def _leads(fact: ev.BecameLeader, before: State) -> str:
    facts = _log_facts(fact.log_end_offset, fact.high_watermark)
    return f"broker {fact.replica} takes over as leader of leader epoch {fact.leader_epoch}{facts}"


def _follows(fact: ev.BecameFollower, before: State) -> str:
    whom = "" if fact.leader is None else f" broker {fact.leader}"
    facts = _log_facts(fact.log_end_offset, fact.high_watermark)
    return f"broker {fact.replica} follows{whom} in leader epoch {fact.leader_epoch}{facts}"


def _truncated(fact: ev.Truncated, before: State) -> str:
    known = before.replicas.get(fact.replica)
    end = fact.from_offset
    if end is None and known is not None and known.log.log_end_offset:
        end = known.log.log_end_offset
    target = fact.to_offset
    if target is None:
        target = known.high_watermark if known is not None else None
    how = CUT_WORDS.get(fact.reason)
    why = f", {how}" if how else ""
    if target is None:
        return f"broker {fact.replica} cuts its log{why}"
    if fact.cuts_nothing:
        return f"broker {fact.replica} has nothing to cut: its log ends at {target}"
    if end is not None and end > target:
        return (
            f"broker {fact.replica} cuts its log from {end} to {target}{why}: "
            f"{offset_range(target, end)} {_is(target, end)} dropped"
        )
    return f"broker {fact.replica} cuts its log at {target}{why}; nothing known is dropped"


def _in_epoch(leader_epoch: int | None) -> str:
    return "" if leader_epoch is None else f" in leader epoch {leader_epoch}"


def _leader_appended(fact: ev.LeaderAppended, before: State) -> str:
    return (
        f"leader {fact.replica} writes {offset_range(fact.first_offset, fact.end_offset)}"
        f"{_in_epoch(fact.leader_epoch)}"
    )


def _follower_appended(fact: ev.FollowerAppended, before: State) -> str:
    return (
        f"follower {fact.replica} copies {offset_range(fact.first_offset, fact.end_offset)}"
        f"{_in_epoch(fact.leader_epoch)}"
    )


def _fetch_requested(fact: ev.FetchRequested, before: State) -> str:
    return (
        f"broker {fact.replica} asks leader {fact.leader} for offset {fact.fetch_offset}, "
        "so it holds everything below"
    )


def _fetch_answered(fact: ev.FetchAnswered, before: State) -> str:
    if fact.error is not None:
        return f"leader {fact.leader} answers broker {fact.replica}'s fetch with {fact.error}"
    if fact.diverging_epoch is not None:
        return (
            f"leader {fact.leader} tells broker {fact.replica} that their logs part: leader "
            f"epoch {fact.diverging_epoch} ends at {fact.diverging_end_offset}"
        )
    facts = _log_facts(None, fact.high_watermark, fact.log_start_offset)
    return f"leader {fact.leader} answers broker {fact.replica}'s fetch{facts}"


def _high_watermark(fact: ev.HighWatermarkAdvanced, before: State) -> str:
    known = before.replicas.get(fact.replica)
    was = None if known is None else known.high_watermark
    change = f" from {was}" if was is not None and was != fact.high_watermark else ""
    verb = "falls" if was is not None and fact.high_watermark < was else "moves"
    if was == fact.high_watermark:
        return f"broker {fact.replica}'s high watermark stays at {was}"
    return f"broker {fact.replica}'s high watermark {verb}{change} to {fact.high_watermark}"


def _log_start(fact: ev.LogStartAdvanced, before: State) -> str:
    reason = PRINTED_STARTS.get(fact.reason or "", fact.reason)
    why = f" because {START_WORDS[reason]}" if reason == "leader" else ""
    if reason in ("retention", "deletion"):
        why = f" by {START_WORDS[reason]}"
    return f"broker {fact.replica} removes everything below offset {fact.log_start_offset}{why}"


def _acknowledged(fact: ev.RecordsAcknowledged, before: State) -> str:
    return (
        f"a producer is told that {offset_range(fact.first_offset, fact.end_offset)} "
        f"{_is(fact.first_offset, fact.end_offset)} "
        f"written (acks={fact.acks}{'' if fact.leader is None else f', by broker {fact.leader}'})"
    )


def _consumed(fact: ev.RecordsConsumed, before: State) -> str:
    return f"a consumer is given {offset_range(fact.first_offset, fact.end_offset)}"


def _observed(fact: ev.ReplicaLogObserved, before: State) -> str:
    whole = {
        True: ", copied while stopped cleanly",
        False: ", copied while running or after a crash",
        None: "",
    }[fact.stopped]
    if fact.log_end_offset > fact.log_start_offset:
        held = f"it held {offset_range(fact.log_start_offset, fact.log_end_offset)}"
    else:
        held = f"it held no record (log end {fact.log_end_offset})"
    facts = _log_facts(None, fact.high_watermark)
    what = COPY_WORDS.get(fact.copy, fact.copy)
    return f"broker {fact.replica}: {what}{whole} shows that {held}{facts}"


def _checkpointed(fact: ev.CheckpointObserved, before: State) -> str:
    return (
        f"broker {fact.replica}: its checkpoint file shows a high watermark of at least "
        f"{fact.high_watermark}"
    )


def _coverage(fact: ev.CoverageDeclared, before: State) -> str:
    what = SUBJECT_WORDS.get(fact.subject, fact.subject)
    whose = "" if fact.replica is None else f" of broker {fact.replica}"
    whole = "is here in full" if fact.complete else "is here, with gaps"
    detail = f" ({fact.detail})" if fact.detail else ""
    return f"evidence: {what}{whose} {whole}{detail}"


def _ended(fact: ev.InputEnded, before: State) -> str:
    return "the evidence about this partition ends here"


WORDS: dict[type[Any], Callable[[Any, State], str]] = {
    ev.PartitionDescribed: _described,
    ev.LeadershipRecorded: _recorded,
    ev.ReplicaStarted: _started,
    ev.ReplicaStopped: _stopped,
    ev.BecameLeader: _leads,
    ev.BecameFollower: _follows,
    ev.Truncated: _truncated,
    ev.LeaderAppended: _leader_appended,
    ev.FollowerAppended: _follower_appended,
    ev.FetchRequested: _fetch_requested,
    ev.FetchAnswered: _fetch_answered,
    ev.HighWatermarkAdvanced: _high_watermark,
    ev.LogStartAdvanced: _log_start,
    ev.RecordsAcknowledged: _acknowledged,
    ev.RecordsConsumed: _consumed,
    ev.ReplicaLogObserved: _observed,
    ev.CheckpointObserved: _checkpointed,
    ev.CoverageDeclared: _coverage,
    ev.InputEnded: _ended,
}
