"""Within one controller record the leader is a member of the ISR (I15)."""

from replication.protocol.ground.verdict import Verdict
from replication.protocol.judgement.invariants.refuted import judge_by_controller
from replication.protocol.judgement.view import View

NAME = "leader_in_isr"


def judge(view: View) -> Verdict:
    """VIOLATED when a registration names a leader outside its ISR."""
    return judge_by_controller(view, NAME, "every recorded leader was in its ISR")
