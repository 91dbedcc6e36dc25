"""Within one controller record the ISR is a subset of the assigned replicas (I15)."""

from replication.protocol.ground.verdict import Verdict
from replication.protocol.judgement.invariants.refuted import judge_by_controller
from replication.protocol.judgement.view import View

NAME = "isr_within_assignment"


def judge(view: View) -> Verdict:
    """VIOLATED when a registration's ISR names a replica outside its assignment."""
    return judge_by_controller(view, NAME, "every recorded ISR lay within its assignment")
