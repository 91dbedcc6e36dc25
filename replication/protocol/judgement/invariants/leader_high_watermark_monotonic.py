"""A leader's high watermark never falls within one leader epoch and broker process (I3)."""

from replication.protocol.ground.verdict import Verdict
from replication.protocol.judgement.invariants.refuted import judge_by_trace
from replication.protocol.judgement.view import View

NAME = "leader_high_watermark_monotonic"


def judge(view: View) -> Verdict:
    """VIOLATED when a leader's high watermark fell; a follower's may lawfully fall."""
    return judge_by_trace(
        view,
        NAME,
        "no leader's high watermark fell",
        "broker logs with kafka.cluster.Partition at DEBUG",
    )
