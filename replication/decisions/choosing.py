"""Which candidate to take: the one that lacks no promised record that another one has.

Nothing is chosen where one promise would be traded for another, and nothing where the histories do
not decide it: then the candidates are ordered by the worst that each may cost.
"""

from dataclasses import dataclass, field

from replication.decisions.candidates import (
    Candidate,
    Outlook,
    lacks_records,
    last_known,
    present_leader,
)
from replication.decisions.questions import ACKNOWLEDGED_BY_ALL, ACKNOWLEDGED_BY_LEADER, PROMISED
from replication.decisions.ranges import size
from replication.decisions.settling import settled_by
from replication.protocol.ground.events import UNCLEAN_KINDS
from replication.protocol.ground.topic_partition import State
from replication.protocol.judgement.who_may_lead import led_last

# What makes a decision necessary.
NO_LEADER = "no_leader"
LEADER_IS_DOWN = "leader_is_down"
LEADER_NOT_KNOWN = "leader_not_known"
LEADER_LACKS_RECORDS = "leader_lacks_records"
NOTHING = "nothing"
# Why nothing is decided.
CONTRADICTED = "no_history_fits"
TOO_MANY = "too_many_histories"
HISTORIES_DIFFER = "histories_differ"
# What to do.
NOTHING_TO_DECIDE = "nothing_to_decide"
KEEP = "keep_leader"
ANY = "any_order"
START = "start"
ELECT = "elect_uncleanly"
SHOW_BOTH = "show_both"
UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class IsrProof:
    """The candidate was in the last ISR that had as many members as acks=all needs, and nothing
    tells that it has lost storage since."""

    leader_epoch: int
    isr: tuple[int, ...]
    min_insync_replicas: int


@dataclass(slots=True)
class Choice:
    """advice: what to do; replica: with whom. ranking: all candidates, the best first. safe: those
    that cost no more than the best one. rivals: those that trade one promise for another. costs:
    nothing, only_unpromised, promised or not_known. because: why nothing is decided. as_asked: the
    replica is the caller's choice, not what is advised.
    """

    occasion: str
    leader: int | None
    advice: str
    replica: int | None = None
    costs: str = "nothing"
    ranking: list[int] = field(default_factory=list)
    safe: list[int] = field(default_factory=list)
    rivals: list[int] = field(default_factory=list)
    proof: IsrProof | None = None
    settled_by: list[str] = field(default_factory=list)
    because: str | None = None
    as_asked: bool = False


def choose(outlook: Outlook, elect: int | None = None) -> Choice:
    """What to do about a partition; elect: the replica that somebody has chosen, whatever is
    advised."""
    choice = _advised(outlook)
    asked = next((c for c in outlook.candidates if c.replica == elect), None)
    if asked is not None and choice.occasion != NOTHING:
        _take_as_asked(choice, outlook, asked)
    return choice


def _advised(outlook: Outlook) -> Choice:
    state = outlook.state
    leader = present_leader(state)
    occasion = _occasion(outlook, leader)
    choice = Choice(occasion, leader, NOTHING_TO_DECIDE)
    if occasion == NOTHING or not outlook.candidates:
        return choice
    ranking = sorted(outlook.candidates, key=_by_worst)
    choice.ranking = [c.replica for c in ranking]
    safe = [c for c in ranking if c.is_safe]
    if safe:
        _take(choice, outlook, safe)
        return choice
    left = _not_beaten(outlook, choice.ranking)
    if len(left) > 1 and all(outlook.more[a, b].surely for a in left for b in left if a != b):
        choice.advice, choice.costs, choice.rivals = SHOW_BOTH, "promised", left
        return choice
    choice.advice, choice.costs = UNDECIDED, "not_known"
    choice.settled_by = settled_by(outlook)
    choice.because = _why_open(outlook)
    return choice


def _why_open(outlook: Outlook) -> str:
    if any(s.contradicted for s in outlook.open):
        return CONTRADICTED
    return TOO_MANY if any(s.admitted.too_many for s in outlook.open) else HISTORIES_DIFFER


def _occasion(outlook: Outlook, leader: int | None) -> str:
    state = outlook.state
    if state.settings.deleted:
        return NOTHING
    if leader is None:
        return NO_LEADER if state.registration.event_id else LEADER_NOT_KNOWN
    if not outlook.runs(leader):
        return LEADER_IS_DOWN
    return LEADER_LACKS_RECORDS if lacks_records(outlook, leader) else NOTHING


def _by_worst(c: Candidate) -> tuple[int, int, int, bool, bool, bool]:
    """The order in which candidates are preferred: by the worst that each may cost, then whose log
    was seen, who needs no unclean election, and who runs."""
    unpromised = (ACKNOWLEDGED_BY_LEADER,)
    surely = sum(size(c.own[tier].surely) for tier in PROMISED)
    return (
        size(c.worst()),
        surely,
        size(c.worst(unpromised)),
        not c.at_hand,
        not c.trusted,
        not c.runs,
    )


def _not_beaten(outlook: Outlook, ranking: list[int]) -> list[int]:
    """Those of which no other has all that they have and surely more; of equals the first."""
    return [
        b
        for n, b in enumerate(ranking)
        if not any(
            not outlook.more[b, a].worst and (outlook.more[a, b].surely or m < n)
            for m, a in enumerate(ranking)
            if a != b
        )
    ]


def _take(choice: Choice, outlook: Outlook, safe: list[Candidate]) -> None:
    """safe: those that cost nothing promised, the best first."""
    best, unpromised = safe[0], (ACKNOWLEDGED_BY_LEADER,)
    choice.replica = best.replica
    choice.costs = "only_unpromised" if best.worst(unpromised) else "nothing"
    choice.safe = [c.replica for c in safe if size(c.worst(unpromised)) <= _least(best)]
    if best.replica == choice.leader and best.runs:
        choice.advice = KEEP
    elif len(choice.safe) == len(outlook.candidates) and not any(c.copies for c in safe):
        choice.advice = ANY
    else:
        choice.advice = _how(outlook, best)
    if not best.lost[ACKNOWLEDGED_BY_ALL].worst:
        choice.proof = isr_proof(outlook, best.replica)


def _take_as_asked(choice: Choice, outlook: Outlook, asked: Candidate) -> None:
    """The choice of the caller in place of the advice."""
    unpromised = (ACKNOWLEDGED_BY_LEADER,)
    choice.as_asked, choice.replica = True, asked.replica
    choice.safe, choice.rivals = [asked.replica], []
    choice.settled_by, choice.because, choice.proof = [], None, None
    if any(asked.own[tier].surely for tier in PROMISED):
        choice.costs = "promised"
    elif not asked.is_safe:
        choice.costs = "not_known"
    else:
        choice.costs = "only_unpromised" if asked.worst(unpromised) else "nothing"
    if asked.replica == choice.leader and asked.runs:
        choice.advice = KEEP
    else:
        choice.advice = _how(outlook, asked)
    if not asked.lost[ACKNOWLEDGED_BY_ALL].worst:
        choice.proof = isr_proof(outlook, asked.replica)


def _how(outlook: Outlook, candidate: Candidate) -> str:
    """Whether its mere start elects a candidate."""
    state = outlook.state
    by_itself = candidate.trusted or candidate.replica == last_known(state)
    return START if by_itself or state.registration.isr is None else ELECT


def _least(best: Candidate) -> int:
    return size(best.worst((ACKNOWLEDGED_BY_LEADER,)))


def isr_proof(outlook: Outlook, replica: int) -> IsrProof | None:
    """The last ISR that had min.insync.replicas members, where the replica was in it and has lost
    no storage since as far as is told.

    Only in releases whose fetches carry the leader epoch: before 2.1 a member may be cut below what
    was acknowledged, or fetch from a leader that was replaced.
    """
    line, state = outlook.line, outlook.state
    if line.flags is None or not line.flags.has("fetch_carries_leader_epoch"):
        return None
    minimum = state.settings.min_insync_replicas
    if minimum is None or len(state.story.min_insync_replicas) > 1:
        return None  # Not known, or changed: which one counted when is not told here.
    if any(w.kind in UNCLEAN_KINDS for w in line.windows):
        return None  # A member after it need not have what was acknowledged before.
    for window in reversed(line.windows):
        for isr in reversed(window.isrs or ()):
            if len(isr) < minimum:
                continue
            lost = any(x.replica == replica for x in state.history.storage_losses)
            if replica not in isr or lost:
                return None
            return IsrProof(window.leader_epoch, tuple(sorted(isr)), minimum)
    return None


def by_log_end(state: State, away: frozenset[int] = frozenset()) -> int | None:
    """Whom the newest last epoch, then the longest log, would choose, None where it is several:
    told beside the advice, and never what it rests on. away: who is not waited for."""
    there = (r for n, r in state.replicas.items() if n not in away)
    known = [r for r in there if state.log_is_known(r)]
    scores: dict[tuple[int, int], list[int]] = {}
    for r in known:
        epochs = [s.leader_epoch for s in r.log.spans if s.leader_epoch is not None]
        score = (epochs[-1] if epochs else -1, r.log.log_end_offset)
        scores.setdefault(score, []).append(r.replica)
    best = scores[max(scores)] if scores else []
    return best[0] if len(best) == 1 else None


def last_leader(state: State) -> int | None:
    """The last leader, as far as is known."""
    return led_last(state)
