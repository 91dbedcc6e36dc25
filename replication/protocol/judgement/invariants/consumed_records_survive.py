"""A record that a consumer was given stays in the log of every later leader (I17)."""

from replication.protocol.ground.verdict import Verdict, holds, unknown
from replication.protocol.judgement.questions import CONSUMED as NAME
from replication.protocol.judgement.settling import CONSUMPTIONS
from replication.protocol.judgement.survival import judge_promise
from replication.protocol.judgement.view import View


def judge(view: View) -> Verdict:
    """By the histories; UNKNOWN, not supplied, without a consumption log."""
    if view.state.settings.deleted:
        return holds(NAME, "the topic was deleted, and its records with it")
    if not view.supplied("consumptions"):
        return unknown(NAME, "no consumption log was handed over", [CONSUMPTIONS], missing=True)
    rows = [x for x in view.losses if any(p.how == "consumed" for p in x.promises)]
    return judge_promise(view, NAME, rows)
