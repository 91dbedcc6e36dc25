"""Leaders that led again without having followed in between, and so count followers wrongly.

`Partition.makeLeader` resets what it knows of the followers only where it did not lead just before.
One that missed an epoch of another leader counts each follower at its log end of before, though the
follower may have cut its log since: what it then commits may be held by nobody else.
"""

from replication.protocol.ground.topic_partition import LeaderTerm, State
from replication.protocol.ground.verdict import Finding, Step
from replication.protocol.judgement.ledger import Loss

KIND = "leader_missed_epoch"


def missed_epochs(state: State, losses: list[Loss]) -> list[Finding]:
    """A warning for each such start; critical where records at these offsets are proven lost."""
    return [
        _finding(state, term, others, losses)
        for term in state.history.terms
        if (others := _others_between(state, term)) and _at_stake(term)
    ]


def _others_between(state: State, term: LeaderTerm) -> dict[int, int]:
    """Whom it missed, by leader epoch, as far as it is known."""
    since = term.led_until_now_in
    alone = term.isr is not None and set(term.isr) <= {term.leader}
    if since is None or alone:
        return {}
    return {
        other.leader_epoch: other.leader
        for other in state.history.terms
        if since < other.leader_epoch < term.leader_epoch and other.leader != term.leader
    }


def _at_stake(term: LeaderTerm) -> bool:
    """Whether it held records above its high watermark: only those rest on where followers are."""
    if term.start_offset is None or term.high_watermark is None:
        return True
    return term.start_offset > term.high_watermark


def _finding(state: State, term: LeaderTerm, others: dict[int, int], losses: list[Loss]) -> Finding:
    first, end = term.high_watermark, term.start_offset
    lost = [
        loss
        for loss in losses
        if first is not None
        and end is not None
        and loss.first_offset < end
        and first < loss.end_offset
        and loss.cause.name == "premature_high_watermark"
    ]
    told = ", ".join(f"broker {by} led epoch {number}" for number, by in others.items())
    isr = "the ISR" if term.isr is None else f"ISR members {_listed(term)}"
    records = (
        "what lay above its high watermark"
        if first is None or end is None
        else f"offset {first}"
        if end == first + 1
        else f"offsets {first}..{end - 1}"
    )
    summary = (
        f"broker {term.leader} took leader epoch {term.leader_epoch} as the leader of epoch "
        f"{term.led_until_now_in}, and followed nobody in between ({told}): it counts {isr} at "
        f"their log ends of before, so {records} may be acknowledged without being held by them"
    )
    if lost:
        summary += "; records there are lost"
    steps = [Step(term.start_event_id, f"it led epoch {term.led_until_now_in} until then")]
    steps += [
        Step(t.start_event_id or t.event_id, f"broker {t.leader} led epoch {t.leader_epoch}")
        for t in state.history.terms
        if others.get(t.leader_epoch) == t.leader
    ]
    severity = "critical" if lost else "warning"
    key = (KIND, term.leader, term.led_until_now_in, term.leader_epoch)
    return Finding(KIND, severity, summary, key, steps, warns=True)


def _listed(term: LeaderTerm) -> str:
    return ", ".join(str(broker) for broker in sorted(term.isr or ()) if broker != term.leader)
