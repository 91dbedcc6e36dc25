"""What the evidence covers: whose logs, directories and promises are whole."""

from collections.abc import Iterator

from replication.evidence.joining.copies import latest
from replication.evidence.joining.lives_in_doubt import lives_in_doubt
from replication.evidence.joining.missing_lines import (
    is_covered,
    missing_lines,
    remembered,
    what_is_unsure,
)
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.traces import NEEDED_KINDS, in_order, is_whole
from replication.protocol.ground import events as ev

LISTED = "kafka-log-dirs lists a replica"
NO_NAMES = "the payload ids are not these records' keys"


def is_traced(evidence: PartitionEvidence, broker: int) -> bool:
    """Whether a broker's lines are a trace of its replica, complete as far as they tell.

    Each term of leadership that the controller gave it before its last one must stand in them:
    without such a line its appends would be taken for an earlier epoch's. And nothing else shows
    that lines of it are missing: a step that none tells would be taken for one that never was.
    """
    lines = evidence.lines.get(broker, [])
    if broker in evidence.unsure_lines or broker in evidence.damaged_lines:
        return False
    if not {f.kind for f in lines} >= NEEDED_KINDS:
        return False
    # A version that prints a line of its own leads from that line on, not from the request.
    prints_own = any(f.kind == "became_leader" for f in lines)
    kind = "became_leader" if prints_own else "leader_and_isr_received"
    told = {f.fields.get("leader_epoch") for f in lines if f.kind == kind}
    followed = {f.fields.get("leader_epoch") for f in lines if f.kind == "became_follower"}
    last = max((e for e in told | followed if isinstance(e, int)), default=-1)
    given = {fact.leader_epoch for fact in remembered(evidence) if fact.leader == broker}
    if any(e not in told for e in given if e < last) or missing_lines(evidence, broker):
        return False
    return is_whole(in_order(lines, broker), broker)


def declared_coverage(evidence: PartitionEvidence) -> Iterator[ev.CoverageDeclared]:
    """What a verdict may take an absence for: where a subject is declared whole, it would show."""
    if evidence.has_acknowledgement_log:
        yield _of_clients(evidence, "acknowledgements")
    if evidence.unplaced_by_isr:
        yield ev.CoverageDeclared("committed_records", None, False, evidence.unplaced_by_isr)
    if evidence.unanswered:
        yield ev.CoverageDeclared("sends", None, False, evidence.shown(evidence.unanswered))
    if evidence.has_all_producers and "acknowledgements" not in evidence.missing:
        yield ev.CoverageDeclared("all_producers", None, True)
    if evidence.has_consumption_log:
        yield _of_clients(evidence, "consumptions")
    if evidence.history_complete:
        yield ev.CoverageDeclared("controller_history", None, True)
    doubt = lives_in_doubt(evidence)
    if doubt is not None:
        yield ev.CoverageDeclared("controller_history", None, False, doubt)
    if evidence.later_history is not None:
        yield ev.CoverageDeclared("controller_history_end", None, False, evidence.later_history)
    for broker, where in sorted(evidence.in_another_directory.items()):
        yield ev.CoverageDeclared("same_directory", broker, False, evidence.shown(where))
    if evidence.copies and evidence.bytes_verified and not evidence.contents.unreadable:
        yield ev.CoverageDeclared("payloads", None, True)
    if evidence.naming.looked and evidence.naming.unnamed:
        yield ev.CoverageDeclared("payload_ids", None, False, NO_NAMES)
    for broker in sorted(evidence.lines):
        unsure = what_is_unsure(evidence, broker)
        covered = is_covered(evidence, broker)
        yield ev.CoverageDeclared("broker_log", broker, covered, unsure and evidence.shown(unsure))
        if is_traced(evidence, broker):
            yield ev.CoverageDeclared("replica_trace", broker, True)
    handed_over = {b for b, copy in latest(evidence.copies).items() if not copy.is_dump}
    listed = evidence.listed_replicas
    for broker in sorted(handed_over):
        told = LISTED if broker in listed else None
        yield ev.CoverageDeclared("log_directory", broker, True, told)
    for broker in sorted(listed - handed_over):
        yield ev.CoverageDeclared("log_directory", broker, False, LISTED)


def _of_clients(evidence: PartitionEvidence, subject: str) -> ev.CoverageDeclared:
    """Whether all that clients wrote of it is here, and what tells that it is not."""
    missing = evidence.missing.get(subject)
    return ev.CoverageDeclared(subject, None, missing is None, missing)
