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
from replication.evidence.joining.shown_by_copies import shown_by
from replication.evidence.joining.traces import NEEDED_KINDS, in_order, is_whole
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import normalized, uncovered

LISTED = "kafka-log-dirs lists a replica"
_DAMAGED = frozenset(("corruption_found", "invalid_records_found", "corrupt_segment_deleted"))
NO_ZONE = "nothing tells in which time zone some broker logs were written"


def is_traced(evidence: PartitionEvidence, broker: int) -> bool:
    """Whether a broker's lines are a trace of its replica, complete as far as they tell.

    Each term of leadership that the controller gave it before its last one must be in them:
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
    nowhere = [told for told in (evidence.unplaced_by_isr, _not_in_copies(evidence)) if told]
    if nowhere:
        yield ev.CoverageDeclared("committed_records", None, False, "; ".join(nowhere))
    if not evidence.clocks_compare and (evidence.acknowledgements or evidence.consumptions):
        yield ev.CoverageDeclared("clocks", None, False, NO_ZONE)
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
    if evidence.copies and evidence.bytes_verified and not evidence.contents.unreadable:
        yield ev.CoverageDeclared("payloads", None, True)
    for broker in sorted(evidence.lines):
        unsure = what_is_unsure(evidence, broker)
        covered = is_covered(evidence, broker)
        yield ev.CoverageDeclared("broker_log", broker, covered, unsure and evidence.shown(unsure))
        dropped = next((f for f in evidence.lines[broker] if f.kind in _DAMAGED), None)
        if dropped is not None:
            where = f"{evidence.shown(dropped.path)}, line {dropped.line}"
            yield ev.CoverageDeclared("whole_log", broker, False, f"damaged records: {where}")
        if is_traced(evidence, broker):
            yield ev.CoverageDeclared("replica_trace", broker, True)
    handed_over = {b for b, copy in latest(evidence.copies).items() if not copy.is_dump}
    listed = evidence.listed_replicas
    for broker in sorted(handed_over):
        told = LISTED if broker in listed else None
        yield ev.CoverageDeclared("log_directory", broker, True, told)
    for broker in sorted(listed - handed_over):
        yield ev.CoverageDeclared("log_directory", broker, False, LISTED)


def _not_in_copies(evidence: PartitionEvidence) -> str | None:
    """That a broker which stopped cleanly wrote down a high watermark above where the copy of its
    log ends, and no other copy has what lay between: it is missing here, or on the disks."""
    copies = latest(copy for copy in evidence.copies if not copy.is_dump)
    for broker, copy in sorted(copies.items()):
        shown = shown_by(copy, False, evidence.described)
        if not isinstance(shown, ev.ReplicaLogObserved) or not copy.clean:
            continue
        end, committed = shown.log_end_offset, copy.directory.high_watermark or 0
        others = [span for other in copies.values() if other is not copy for span in other.spans]
        if (
            shown.copy == "part"
            and committed > end
            and uncovered(end, committed, normalized(others))
        ):
            return (
                f"broker {broker}'s checkpoint says that they reach {committed}, and the copy of "
                f"its log ends at {end}: {copy.path}"
            )
    return None


def _of_clients(evidence: PartitionEvidence, subject: str) -> ev.CoverageDeclared:
    """Whether all that clients wrote of it is here, and what tells that it is not."""
    missing = evidence.missing.get(subject)
    return ev.CoverageDeclared(subject, None, missing is None, missing)
