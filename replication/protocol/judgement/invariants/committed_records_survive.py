"""A committed record is in the log of every later valid leader (I1, KIP-101)."""

from replication.protocol.ground.verdict import Verdict
from replication.protocol.judgement.questions import COMMITTED as NAME
from replication.protocol.judgement.survival import judge_promise
from replication.protocol.judgement.view import View


def judge(view: View) -> Verdict:
    """By the histories: a record below a valid leader's high watermark that a later one lacks."""
    rows = [x for x in view.losses if x.was_committed]
    return judge_promise(view, NAME, rows)
