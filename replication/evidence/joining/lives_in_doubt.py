"""Copies that may be of two lives of a topic, where no topic id, line or record tells them apart.

Deleted and created anew, a topic begins again at epoch 0 and offset 0: beside copies of its first
life those of the second look like a log that lost everything.
"""

from collections.abc import Iterable
from itertools import combinations

from replication.evidence.joining.copies import Copy
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.protocol.ground.model import clipped

SET_ASIDE = "a deleted directory lies beside its replica: the topic may have been created anew"
OTHER_LOGS = "copies differ from their first record on: the topic may have been created anew"


def lives_in_doubt(evidence: PartitionEvidence) -> str | None:
    """Why the copies may be of two lives; None where they are not, or the history tells.

    Lines tell of both lives where they tell of the deletion between them, and a controller's
    history where it reaches back to the first leader epoch."""
    if evidence.topic_id or evidence.by_zookeeper:
        return None
    kinds: dict[int, set[str]] = {}
    for copy in evidence.copies:
        kinds.setdefault(copy.broker, set()).add(copy.directory.kind)
    for broker, found in kinds.items():
        if found >= {"replica", "deleted"} and not _tells_of_deletion(evidence, broker):
            return SET_ASIDE
    if any(record.fact.leader_epoch == 0 for record in evidence.recorded):
        return None
    return OTHER_LOGS if _differ_at_once(evidence.copies) else None


def _tells_of_deletion(evidence: PartitionEvidence, broker: int) -> bool:
    """Whether lines of a broker tell when it deleted its replica, and tell of leaders."""
    told = {fact.kind for fact in evidence.lines.get(broker, ())}
    return bool(evidence.recorded) and bool(
        told & {"log_marked_deleted", "log_deleted", "replica_removed"}
    )


def _differ_at_once(copies: Iterable[Copy]) -> bool:
    """Whether two copies hold other records at the first offset that both have."""
    for one, other in combinations([c for c in copies if c.spans], 2):
        first = max(one.spans[0].first_offset, other.spans[0].first_offset)
        here = [clipped(c.spans, first, first + 1) for c in (one, other)]
        contents = {s.content for spans in here for s in spans}
        if all(here) and None not in contents and len(contents) > 1:
            return True
    return False
