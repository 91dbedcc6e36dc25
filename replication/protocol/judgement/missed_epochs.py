"""Leaders that were re-elected without having followed in between, and so count followers wrongly.

`Partition.makeLeader` resets what it knows of the followers only where the broker did not lead just
before. A leader that missed another leader's epoch takes each follower's log to end where it did
before, though the follower may have truncated since: it may commit what no other replica holds.
"""

from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.ground.verdict import Finding, Step
from replication.protocol.judgement.loss import Loss

KIND = "leader_missed_epoch"


def missed_epochs(state: State, losses: list[Loss]) -> list[Finding]:
    """A warning for each such election; critical where records at these offsets are proven lost."""
    found = []
    for term in state.history.terms:
        missed = _missed_by(state, term)
        # Only what a leader holds above its high watermark rests on where followers are.
        start, high_watermark = term.start_offset, term.high_watermark
        if missed and (start is None or high_watermark is None or start > high_watermark):
            found.append(_finding(term, missed, losses))
    return found


def _missed_by(state: State, term: LeaderTerm) -> list[LeaderTerm]:
    """The terms of other leaders that one missed, as far as they are known; of one that is alone in
    its ISR none counts."""
    since = term.led_until_now_in
    if since is None or (term.isr is not None and {*term.isr} <= {term.leader}):
        return []
    between = (t for t in state.history.terms if since < t.leader_epoch < term.leader_epoch)
    return [t for t in between if t.leader != term.leader]


def _finding(term: LeaderTerm, missed: list[LeaderTerm], losses: list[Loss]) -> Finding:
    first, end, before = term.high_watermark, term.start_offset, term.led_until_now_in
    records, lost = "records above its high watermark", False
    if first is not None and end is not None:
        records = f"offset {first}" if end == first + 1 else f"offsets {first}..{end - 1}"
        lost = any(
            x.first_offset < end and first < x.end_offset
            for x in losses
            if x.cause.name == "premature_high_watermark"
        )
    led = {t.leader_epoch: f"broker {t.leader} led epoch {t.leader_epoch}" for t in missed}
    others = ", ".join(str(broker) for broker in sorted(term.isr or ()) if broker != term.leader)
    summary = (
        f"broker {term.leader} was re-elected in leader epoch {term.leader_epoch} "
        f"without having followed another leader since it led epoch {before} "
        f"({', '.join(led.values())}). It believes that the logs of "
        f"{'the ISR' if term.isr is None else 'ISR members ' + others} end "
        f"where they ended in epoch {before}, so {records} may be acknowledged "
        "though these replicas do not have them"
    )
    steps = [Step(term.start_event_id, f"it led epoch {before} until then")]
    steps += [Step(t.start_event_id or t.event_id, led[t.leader_epoch]) for t in missed]
    return Finding(
        KIND,
        "critical" if lost else "warning",
        summary + ("; records there are lost" if lost else ""),
        (KIND, term.leader, before, term.leader_epoch),
        steps,
        warns=True,
    )
