"""Two replicas hold the same record at each offset both hold (I2), once truncation is done.

What the next truncation removes is pending, no violation. ISR membership does not matter.
"""

from replication.protocol.ground.verdict import (
    UNKNOWN,
    Finding,
    Step,
    Verdict,
    holds,
    unknown,
    violated,
)
from replication.protocol.histories.stretches import KEPT
from replication.protocol.judgement.divergence import Divergence, incomparable, unseen_ends
from replication.protocol.judgement.questions import MATCHING as NAME
from replication.protocol.judgement.reference import what_is_missing
from replication.protocol.judgement.two_histories import two_histories
from replication.protocol.judgement.view import View, assignment_is_known, uncaptured


def judge(view: View) -> Verdict:
    """By the copies at hand; where they do not decide, by the histories.

    HOLDS where no history leaves two replicas with different records; else UNKNOWN, with a history
    that does and one that does not.
    """
    verdict = _by_copies(view)
    if verdict.verdict != UNKNOWN or not _have_leader_epochs(view):
        return verdict  # Without leader epochs histories cannot tell records apart that nobody saw.
    undecided = [fate.stretch for fate, o, _ in view.fates.answer(NAME) if o != KEPT]
    if undecided:
        open_ones = [s for s in undecided if not (s.contradicted or s.admitted.too_many)]
        if open_ones:
            verdict.histories = two_histories(open_ones[0], NAME).as_json()
        return verdict
    found = holds(NAME, "no history that fits the evidence leaves two replicas that differ")
    found.assuming = sorted(view.fates.assumed_to_hold(NAME))
    return found


def _have_leader_epochs(view: View) -> bool:
    """Whether records were seen, or the lines of several replicas and of no fewer, and each record
    carries its leader epoch: by the release, or, where it is not known, by the logs themselves."""
    line = view.fates.line
    if line.flags is not None:
        told = len(line.replicas) > 1 and line.covered.issuperset(line.replicas)
        seen = bool(line.labels or line.last_copy) or told
        return seen and line.flags.has("leader_epoch_in_record_batches")
    return bool(line.labels) and all(s.leader_epoch is not None for s in line.labels)


def _by_copies(view: View) -> Verdict:
    """VIOLATED by a settled difference; UNKNOWN when logs are missing or only headers differ."""
    settled = [d for d in view.divergences if d.status == "settled"]
    if settled:
        return violated(NAME, [finding(view, d) for d in settled])
    if view.state.settings.deleted:
        return holds(NAME, "the topic was deleted: no replica is left to differ")
    mismatched = [d for d in view.divergences if d.status == "header_mismatch"]
    if mismatched:
        d = mismatched[0]
        return unknown(
            NAME,
            f"replicas {d.a} and {d.b} hold equal contents under different leader epochs at "
            f"offsets {d.first_offset}..{d.end_offset - 1}",
            ["the segments of both replicas, read again: the epoch is outside the CRC"],
        )
    missing = uncaptured(view.state)
    known = [
        r
        for r in view.state.replicas.values()
        if r.captured or view.covered("replica_trace", r.replica)
    ]
    assigned = view.state.settings.assigned_replicas
    stale = [r.replica for r in known if r.stale and (not assigned or r.replica in assigned)]
    if missing or not known:
        names = [f"the log directory of broker {r}" for r in missing]
        return unknown(
            NAME,
            "not every assigned replica's log was handed over",
            names or ["the log directories of the brokers"],
            missing=not known,
        )
    if not assignment_is_known(view.state):
        ids = ", ".join(str(r.replica) for r in sorted(known, key=lambda r: r.replica))
        return unknown(
            NAME,
            f"nothing tells which brokers have a replica; the logs of {ids} are what was seen",
            ["the assignment (kafka-topics --describe, metadata log or state-change.log)"],
        )
    if stale:
        lived_on = ", ".join(str(r) for r in stale)
        return unknown(
            NAME,
            f"broker {lived_on} lived on after the copy of its log was taken",
            [f"the log directory of broker {r} as it is now" for r in stale],
        )
    blind = incomparable(view.state)
    if blind is not None:
        a, b, first, end = blind
        return unknown(
            NAME,
            f"nothing tells records of replicas {a} and {b} apart at offsets {first}..{end - 1}",
            [f"the log directory of broker {r} as it is now" for r in (a, b)],
        )
    open_question = _undecided(view)
    if open_question is not None:
        return open_question
    pending = [d for d in view.divergences if d.status == "pending"]
    note = f"; the next truncation removes {_differences(len(pending))}" if pending else ""
    ids = ", ".join(str(r.replica) for r in sorted(known, key=lambda r: r.replica))
    return holds(NAME, f"the logs of replicas {ids} agree wherever they overlap{note}")


def _differences(number: int) -> str:
    return f"{number} difference{'' if number == 1 else 's'}"


def _undecided(view: View) -> Verdict | None:
    """Why logs that do not contradict each other may still differ; None if they cannot."""
    unseen = unseen_ends(view.state, view.ref)
    if unseen is not None:
        part, other, offset = unseen
        return unknown(
            NAME,
            f"only a part of replica {part}'s log was dumped: from offset {offset} on "
            f"there is nothing to compare with replica {other}'s",
            [f"the log directory of broker {part}, or kafka-log-dirs beside a dump of it all"],
        )
    pending = [d for d in view.divergences if d.status == "pending"]
    unsure = [d for d in pending if d.unsure]
    if unsure:
        d = unsure[0]
        known = [view.state.replicas[r] for r in (d.a, d.b)]
        unsaid = [r.replica for r in known if not view.state.still_has_records(r)]
        if unsaid:
            return unknown(
                NAME,
                f"replicas {d.a} and {d.b} got different records at offsets "
                f"{d.first_offset}..{d.end_offset - 1}, and nothing tells whether compaction has "
                "left both",
                [f"the log directory of broker {r} as it is now" for r in unsaid],
            )
        on, settled_by = _rests_on(view)
        return unknown(
            NAME,
            f"replicas {d.a} and {d.b} differ at offsets {d.first_offset}..{d.end_offset - 1}, and "
            f"whether the next truncation mends it depends on {on}, which is not known",
            settled_by,
        )
    if pending and view.gaps.later:
        return unknown(
            NAME,
            f"which leader will mend what differs is not known: {view.gaps.later} is missing",
            [view.gaps.later],
        )
    return None


def _rests_on(view: View) -> tuple[str, list[str]]:
    """On what it depends whether a difference is mended, and which artefacts tell it."""
    in_part = sorted(r.replica for r in view.state.replicas.values() if r.partial)
    if in_part:
        return "what a dump does not show", [f"the log directory of broker {r}" for r in in_part]
    if view.ref.replica is None:
        return "the leader's log", [what_is_missing(view.state, view.ref)[1]]
    starts = "broker logs from a start (they print the version)"
    return "the Kafka version", [starts, "--kafka VERSION"]


def finding(view: View, d: Divergence) -> Finding:
    """The proof of one settled difference."""
    state = view.state
    last = d.end_offset - 1
    where = f"offset {last}" if last == d.first_offset else f"offsets {d.first_offset}..{last}"
    steps = []
    for number in (d.a, d.b):
        replica = state.replicas[number]
        held = next(s for s in replica.log.spans if s.first_offset <= d.first_offset < s.end_offset)
        leader_epoch = "no epoch" if held.leader_epoch is None else f"epoch {held.leader_epoch}"
        content = "" if held.content is None else f", content {held.content}"
        steps.append(
            Step(replica.as_of or "", f"replica {number} holds {leader_epoch}{content} at {where}")
        )
    return Finding(
        NAME,
        "critical",
        f"replicas {d.a} and {d.b} hold different records at {where}, and no truncation will "
        "mend it",
        ("divergence", d.a, d.b, d.first_offset, d.end_offset),
        steps,
    )
