"""Copies of which anything else tells that their replica lived on, where no line does."""

from collections.abc import Sequence
from itertools import pairwise, takewhile

from replication.evidence.joining.copies import Copy
from replication.evidence.joining.missing_lines import missing_lines
from replication.evidence.joining.partition_evidence import PartitionEvidence


def is_outlived(evidence: PartitionEvidence, copy: Copy) -> bool:
    """Whether a broker whose lines are missing joined the ISR of a leader, or led itself, in an
    epoch above all that the copy names: it had cut what it had beyond that epoch's start by then,
    or fetched up to it. Or it may have: of another copied directory of its, which may be later, the
    partition's folder was left out."""
    if copy.read_at is not None or _tells_all(evidence, copy.broker):
        return False
    if copy.named_elsewhere:
        return True
    starts = _starts(evidence)
    newest = max((e for e, _ in _begun(copy)), default=-1)
    end = copy.directory.log_end_offset
    if _is_longer_than_its_leader(evidence, copy):
        return True
    later = {e for e in _took_part(evidence, copy.broker) if e > newest}
    return any(starts.get(e, end) != end or _led_without_it(evidence, copy, e) for e in later)


def _led_without_it(evidence: PartitionEvidence, copy: Copy, leader_epoch: int) -> bool:
    """Whether the copy's own broker alone led in an epoch of which another copy has records. One
    that is elected as it stops may never have heard of it."""
    leaders = {r.fact.leader for r in evidence.recorded if r.fact.leader_epoch == leader_epoch}
    return leaders == {copy.broker} and any(
        span[0] == leader_epoch for c in evidence.copies for span in c.directory.spans
    )


def _tells_all(evidence: PartitionEvidence, broker: int) -> bool:
    """Whether a broker's lines are here from a start on, as far as anything shows."""
    kinds = {fact.kind for fact in evidence.lines.get(broker, ())}
    unsure = broker in evidence.unsure_lines or broker in evidence.damaged_lines
    return "process_started" in kinds and not unsure and missing_lines(evidence, broker) is None


def _took_part(evidence: PartitionEvidence, broker: int) -> set[int]:
    """The leader epochs in which a broker led, or came into the ISR beside another leader."""
    facts = [record.fact for record in evidence.recorded]
    found = {fact.leader_epoch for fact in facts if fact.leader == broker}
    for before, after in pairwise(facts):
        same = (before.leader, before.leader_epoch) == (after.leader, after.leader_epoch)
        if same and after.leader is not None and broker in _joined(before.isr, after.isr):
            found.add(after.leader_epoch)
    return found


def _is_longer_than_its_leader(evidence: PartitionEvidence, copy: Copy) -> bool:
    """Whether the last leader, whose ISR the copy's broker joined, has less to this day: a follower
    that is in sync has fetched within its leader's log."""
    facts = [record.fact for record in evidence.recorded]
    led = list(takewhile(lambda fact: fact.leader == facts[-1].leader, reversed(facts)))
    leader = facts[-1].leader if facts else None
    if leader is None or not any(
        copy.broker in _joined(before.isr, after.isr) for after, before in pairwise(led)
    ):
        return False
    own = [c for c in evidence.copies if c.broker == leader and c.directory.kind == "replica"]
    ends = [c.directory.log_end_offset or 0 for c in own]
    return bool(ends) and max(ends) < (copy.directory.log_end_offset or 0)


def _joined(before: Sequence[int] | None, after: Sequence[int] | None) -> set[int]:
    return set() if before is None or after is None else set(after) - set(before)


def _starts(evidence: PartitionEvidence) -> dict[int, int]:
    """Where leader epochs begin by the copies at hand, the lowest of each."""
    found: dict[int, int] = {}
    for leader_epoch, start in (each for copy in evidence.copies for each in _begun(copy)):
        found[leader_epoch] = min(start, found.get(leader_epoch, start))
    return found


def _begun(copy: Copy) -> list[tuple[int, int]]:
    """The leader epochs that a copy names, with where they begin."""
    held = [(span[0], span[1]) for span in copy.directory.spans if span[0] is not None]
    return [*(copy.directory.epoch_entries or ()), *held]
