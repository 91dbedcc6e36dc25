"""A record that a consumer was given stays in the log of every later leader (I17)."""

from replication.protocol.ground.verdict import Verdict, holds, unknown, violated
from replication.protocol.judgement.another_directory import led_from_another_directory
from replication.protocol.judgement.view import View

NAME = "consumed_records_survive"


def judge(view: View) -> Verdict:
    """UNKNOWN, not supplied, without a consumption log."""
    if view.state.settings.deleted:
        return holds(NAME, "the topic was deleted, and its records with it")
    findings = [x.finding for x in view.rows_of("consumed") if x.finding is not None]
    if findings:
        return violated(NAME, findings)
    if not view.supplied("consumptions"):
        return unknown(
            NAME,
            "no consumption log was handed over",
            ["a consumption log of the consumers"],
            missing=True,
        )
    doubts = view.doubts_of("consumed")
    if doubts:
        first = doubts[0]
        return unknown(
            NAME,
            f"offsets {first.first_offset}..{first.end_offset - 1}: {first.reason}",
            sorted({d.settled_by for d in doubts}),
        )
    moved = led_from_another_directory(view, NAME)
    return moved or holds(NAME, f"leader {view.ref.leader}'s log holds every consumed record")
