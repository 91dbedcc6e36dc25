"""The leader epoch never falls while the partition epoch rises (I11)."""

from replication.protocol.ground.verdict import Verdict
from replication.protocol.judgement.invariants.refuted import judge_by_controller
from replication.protocol.judgement.view import View

NAME = "leader_epochs_monotonic"


def judge(view: View) -> Verdict:
    """VIOLATED when a later registration carries a lower leader epoch."""
    return judge_by_controller(view, NAME, "leader epochs rose with each change of leader")
