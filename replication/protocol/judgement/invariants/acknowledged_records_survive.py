"""Any acknowledged record, acks=1 too, is in the log of every later valid leader."""

from replication.protocol.ground.verdict import Verdict, holds, unknown, violated
from replication.protocol.judgement.another_directory import led_from_another_directory
from replication.protocol.judgement.view import View

NAME = "acknowledged_records_survive"


def judge(view: View) -> Verdict:
    """UNKNOWN, not supplied, without an acknowledgement log: brokers do not write it."""
    if view.state.settings.deleted:
        return holds(NAME, "the topic was deleted, and its records with it")
    rows = view.rows_of("acks_all", "acks_1")
    findings = [x.finding for x in rows if x.finding is not None]
    if findings:
        return violated(NAME, findings)
    if not view.supplied("acknowledgements"):
        return unknown(
            NAME,
            "no acknowledgement log was handed over",
            ["an acknowledgement log of the producers"],
            missing=True,
        )
    doubts = view.doubts_of("acks_all", "acks_1")
    if doubts:
        first = doubts[0]
        return unknown(
            NAME,
            f"offsets {first.first_offset}..{first.end_offset - 1}: {first.reason}",
            sorted({d.settled_by for d in doubts}),
        )
    if view.ref.replica is None and view.state.history.acknowledgements:
        return unknown(
            NAME, "the leader's log was not handed over", ["the log directories of the brokers"]
        )
    moved = led_from_another_directory(view, NAME)
    if moved is not None:
        return moved
    # No count of them: it would make the answer another one with every record.
    return holds(
        NAME,
        f"leader {view.ref.leader}'s log holds every record that the acknowledgement logs at hand "
        "name and retention left",
    )
