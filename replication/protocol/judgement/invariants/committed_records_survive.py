"""A committed record is in the log of every later valid leader (docs/protocol.md I13, I14).

Committed: below the high watermark of a valid leader, or acknowledged at acks=all by one.
Retention, compaction, record deletion and topic deletion are not loss.
"""

from replication.protocol.ground.verdict import Verdict, holds, unknown, violated
from replication.protocol.judgement.another_directory import led_from_another_directory
from replication.protocol.judgement.every_send import every_send_stands
from replication.protocol.judgement.reference import tail_is_known, what_is_missing
from replication.protocol.judgement.same_record import all_known
from replication.protocol.judgement.unwitnessed_election import (
    came_back_alone,
    lost_by_its_leader,
    lost_by_who_answered,
    lost_what_it_alone_committed,
    untold_election,
    unwitnessed_election,
)
from replication.protocol.judgement.view import View, uncaptured

NAME = "committed_records_survive"
BY_HIGH_WATERMARK = ("checkpoint", "load", "start_line", "high_watermark")


def judge(view: View) -> Verdict:
    """VIOLATED with each lost run as a witness; UNKNOWN where a committed record is in doubt."""
    if view.state.settings.deleted:
        return holds(NAME, "the topic was deleted, and its records with it")
    promised = view.rows_of("consumed", "acks_all", *BY_HIGH_WATERMARK, by_valid_leaders=True)
    committed = {id(x) for x in promised}
    broken = [x for x in view.losses if x.was_committed or id(x) in committed]
    findings = [x.finding for x in broken if x.finding is not None]
    if findings:
        return violated(NAME, findings)
    doubts = view.doubts_of("acks_all", *BY_HIGH_WATERMARK)
    if doubts:
        first = doubts[0]
        return unknown(
            NAME,
            f"offsets {first.first_offset}..{first.end_offset - 1}: {first.reason}",
            sorted({d.settled_by for d in doubts}),
        )
    if view.ref.replica is None:
        why, wanted = what_is_missing(view.state, view.ref)
        return unknown(NAME, why, [wanted])
    history = view.state.history
    shows_nothing = not view.ref.spans and not view.ref.replica.partial and _is_sure(view)
    if not (history.commitments or view.covered("acknowledgements") or shows_nothing):
        return unknown(
            NAME,
            "nothing says what was committed: no acknowledgements and no high watermarks",
            ["an acknowledgement log", "replication-offset-checkpoint"],
            missing=True,
        )
    unseen = _lost_unseen(view) or led_from_another_directory(view, NAME)
    if unseen is not None:
        return unseen
    told = [
        "high watermark observations" if history.commitments else None,
        "acks=all acknowledgements"
        if any(p.how == "acks_all" for p in history.acknowledgements)
        else None,
    ]
    sources = " and ".join(source for source in told if source)
    basis = f"leader {view.ref.leader}'s log holds every record known to be committed"
    return holds(NAME, f"{basis} ({sources})" if sources else basis)


def _is_sure(view: View) -> bool:
    """Whether a leader's log that shows no record had none: it or all others tell."""
    replica = view.ref.replica
    if replica is None or tail_is_known(view.state, replica):
        return True
    return not uncaptured(view.state) and not all_known(view.state, 0, 1 << 62)


def _lost_unseen(view: View) -> Verdict | None:
    """Why records may be lost of which nothing tells that they were committed; None if none are."""
    if every_send_stands(view):
        return None
    in_doubt = bool(view.doubts_of("acks_1"))
    unsure = unwitnessed_election(view.state, view.ref, in_doubt)
    if unsure is not None:
        before, term = unsure
        whose = "its predecessor" if before is None else f"broker {before.leader}"
        return unknown(
            NAME,
            f"broker {term.leader} took epoch {term.leader_epoch} by an election of kind "
            f"{term.election_kind or 'unknown'}, and nothing tells how far {whose} "
            "had committed before it",
            ["the controller's history (metadata log or state-change.log)"]
            if before is None
            else [f"the log directory or broker log of broker {before.leader}"],
        )
    untold = untold_election(view.state) if view.ref.term is None else None
    if untold is not None:
        return unknown(
            NAME,
            f"the leader's log holds what is known to be committed, but {untold}, which may have "
            "cost more",
            ["the controller's history (metadata log or state-change.log)"],
        )
    lost = lost_by_its_leader(view.state, view.ref)
    if lost is not None:
        broker, low, high = lost
        return unknown(
            NAME,
            f"broker {broker} led without offsets {low}..{high - 1}, which it had before, and "
            "nothing tells whether they were committed",
            ["an acknowledgement log", "consumption logs"],
        )
    alone = came_back_alone(view.state, view.ref)
    unsure_of = view.doubts_of("acks_1") or not view.covered("acknowledgements")
    if alone is not None and unsure_of:
        return unknown(
            NAME,
            f"broker {alone} was away and led again, and nothing shows that it had stopped "
            "cleanly: nothing tells what its log lost",
            [
                "an acknowledgement log with payload ids"
                if view.covered("acknowledgements")
                else "an acknowledgement log"
            ],
        )
    alone = lost_what_it_alone_committed(view.state, view.ref)
    sends = view.state.why_missing("sends")
    if alone is not None and view.state.told_of("sends"):
        return unknown(
            NAME,
            f"broker {alone} led alone, and again after a stop that was not clean: it may have "
            f"committed and lost records of sends that nobody answered ({sends})",
            ["broker logs with kafka.cluster.Partition at TRACE", "consumption logs"],
        )
    answered = lost_by_who_answered(view.state, view.ref, view.absences)
    if answered is not None:
        return unknown(
            NAME,
            f"offsets {answered.first_offset}..{answered.end_offset - 1}: acknowledged with "
            "acks=1 and gone, and nothing tells whether they were committed",
            ["consumption logs", "broker logs with kafka.cluster.Partition at TRACE"],
        )
    return None
