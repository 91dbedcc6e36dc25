"""At most one broker leads a partition in one leader epoch (I10)."""

from replication.protocol.ground.verdict import Verdict
from replication.protocol.judgement.invariants.refuted import judge_by_controller
from replication.protocol.judgement.view import View

NAME = "single_leader_per_epoch"


def judge(view: View) -> Verdict:
    """VIOLATED when two brokers took, or were given, the same epoch."""
    return judge_by_controller(view, NAME, "no leader epoch had two leaders")
