"""Any acknowledged record, acks=1 too, is in the log of every later valid leader."""

from replication.protocol.ground.verdict import UNKNOWN, Verdict
from replication.protocol.judgement.questions import ACKNOWLEDGED as NAME
from replication.protocol.judgement.settling import ACKNOWLEDGEMENTS
from replication.protocol.judgement.survival import judge_promise
from replication.protocol.judgement.view import View

BY_PRODUCERS = ("acks_all", "acks_1")


def judge(view: View) -> Verdict:
    """By the histories; without an acknowledgement log only where no record at all was lost."""
    rows = [x for x in view.losses if any(p.how in BY_PRODUCERS for p in x.promises)]
    verdict = judge_promise(view, NAME, rows)
    if verdict.verdict == UNKNOWN and not view.supplied("acknowledgements"):
        verdict.not_supplied = True
        verdict.reason = "no acknowledgement log was handed over, and records were lost or may be"
        verdict.settled_by = [ACKNOWLEDGEMENTS]
    return verdict
