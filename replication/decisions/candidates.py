"""Each replica as the next leader: what is lost under it, and what becomes of the other copies."""

from dataclasses import dataclass, field, replace
from itertools import product

from replication.decisions.following import CUT, keeps
from replication.decisions.questions import PROMISED, TIERS, Asked, of_any_tier
from replication.decisions.ranges import NO_END, Ranges, joined
from replication.protocol.ground.story import OwnStep
from replication.protocol.ground.topic_partition import State
from replication.protocol.histories.ask import Histories
from replication.protocol.histories.assumptions import RECORDS_AS_SEEN, Assumed
from replication.protocol.histories.filters.timeline import Timeline
from replication.protocol.histories.stretches import KEPT, OPEN, Question, Stretch
from replication.protocol.judgement.older_copies import older_copies
from replication.protocol.judgement.questions import BROKEN, is_removed
from replication.protocol.judgement.who_may_lead import has_crashed, runs, trusted_replicas

# What is taken for granted of a partition of which nothing tells that anybody led it.
UNTOLD = frozenset([RECORDS_AS_SEEN])


@dataclass(slots=True)
class Lost:
    """Offsets at which a record of one tier is lost: in every admitted history, or in some."""

    surely: Ranges = field(default_factory=list)
    perhaps: Ranges = field(default_factory=list)

    @property
    def worst(self) -> Ranges:
        """All that may be lost."""
        return joined([*self.surely, *self.perhaps])


@dataclass(slots=True)
class Copy:
    """Offsets at which another replica has a record that is lost under the candidate. cut: it loses
    it with its first fetches from the candidate; diverging: it keeps a record that the candidate
    has not; undecided: nothing tells which. assuming: what that rests on.
    """

    replica: int
    cut: Ranges = field(default_factory=list)
    diverging: Ranges = field(default_factory=list)
    undecided: Ranges = field(default_factory=list)
    assuming: frozenset[str] = frozenset()

    @property
    def ranges(self) -> Ranges:
        """All that only a copy of it from before the election is sure to keep."""
        return joined([*self.cut, *self.diverging, *self.undecided])


@dataclass(slots=True)
class Candidate:
    """One replica as the next leader.

    lost: by tier, whatever its log lacks; own: what it lacks and another candidate has, so what
    this choice costs. trusted: it is elected without an unclean election. at_hand: its log is among
    the evidence. copies: who still has what it lacks. assuming: what the answer rests on.
    """

    replica: int
    trusted: bool
    runs: bool
    at_hand: bool
    lost: dict[str, Lost] = field(default_factory=dict)
    own: dict[str, Lost] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)
    assuming: frozenset[str] = frozenset()

    def worst(self, tiers: tuple[str, ...] = PROMISED) -> Ranges:
        """All offsets at which it may cost a record of some tier."""
        return joined(r for tier in tiers for r in self.own[tier].worst)

    @property
    def is_safe(self) -> bool:
        """Whether it costs nothing that was promised, in every admitted history."""
        return not self.worst()


@dataclass(slots=True)
class Older:
    """A copy that holds records which no replica has any more, as the next leader's log: it would
    be put back in the place of its broker's directory. lost: by tier, whatever it lacks; empty
    where only a part of it is known."""

    replica: int
    kind: str
    shown_by: str
    alone: Ranges
    lost: dict[str, Lost] = field(default_factory=dict)
    assuming: frozenset[str] = frozenset()


@dataclass(slots=True)
class Outlook:
    """Every candidate of one partition. gone: by tier, what is lost whoever leads. more: by two
    candidates, where the first has a promised record that the second lacks. open: the runs of
    offsets at which the histories do not decide all candidates. unexplained: offsets of which no
    history explains the evidence: they tell no two candidates apart. down: brokers that are down,
    though the evidence need not tell it. away: replicas that stay away, and are no candidates."""

    state: State
    line: Timeline
    candidates: list[Candidate]
    down: frozenset[int] = frozenset()
    away: frozenset[int] = frozenset()
    older: list[Older] = field(default_factory=list)
    gone: dict[str, Lost] = field(default_factory=dict)
    more: dict[tuple[int, int], Lost] = field(default_factory=dict)
    open: list[Stretch] = field(default_factory=list)
    unexplained: Ranges = field(default_factory=list)

    def runs(self, replica: int) -> bool:
        """Whether a broker is not known to be down."""
        return replica not in self.down and runs(self.state, replica)


def outlook(
    state: State,
    *,
    strict: bool = False,
    whole: bool = False,
    down: frozenset[int] = frozenset(),
    away: frozenset[int] = frozenset(),
) -> Outlook:
    """Asks the histories of a partition for each replica as its next leader.

    whole: even where its leader is there and lacks nothing that another replica has. down: brokers
    of which the caller says that they are down; away: that they stay so. Where all replicas stay
    away one of them has to be waited for: then they are candidates all the same.
    """
    never = _not_to_be_assumed(state)
    histories = _Histories(state, never, strict=strict)
    line = histories.line(histories.rungs()[0])
    trusted = trusted_replicas(state) - struck_at_start(state)
    replicas = [n for n in (line.assigned or line.replicas) if n >= 0]
    away = away & {*replicas} if {*replicas} - away else frozenset()
    result = Outlook(state, line, [], down=down | away, away=away)
    result.candidates = [
        Candidate(n, n in trusted, result.runs(n), state.log_is_known(state.replicas.get(n)))
        for n in replicas
        if n not in away
    ]
    leader = present_leader(state)
    if leader is not None and result.runs(leader) and not whole:
        # Of most partitions this is all that need be asked.
        _Asking(histories, result).ask_of(leader)
        if not lacks_records(result, leader):
            return result
        result.open.clear()
    _Asking(histories, result).ask()
    return result


def last_known(state: State) -> int | None:
    """The last known leader, where its mere start elects it with what it has (KIP-966): nobody is
    in the ISR, and no eligible leader replica is left once it is back after an unclean stop.
    """
    told = state.registration
    known = told.last_known_leader_replicas
    if told.isr or not known or {*told.eligible_leader_replicas} - {known[0]}:
        return None
    return known[0]


def struck_at_start(state: State) -> set[int]:
    """Members of the ISR that crashed while a leader was registered: with eligible leader replicas
    the controller strikes each from the ISR as it is back, if others are in it (KIP-966; seen on
    4.3.0). Who is left in the ISR of a partition without leader is elected all the same.
    """
    flags, told = state.behaviour(), state.registration
    if flags is None or not flags.eligible_leader_replicas:
        return set()
    if told.leader is None or len(told.isr or ()) < 2:
        return set()
    return {n for n in told.isr or () if has_crashed(state, n)}


def present_leader(state: State) -> int | None:
    """The leader by the controller's last word, or by what kafka-topics printed."""
    told = state.registration
    return told.leader if told.event_id else state.settings.leader


def lacks_records(outlook: Outlook, leader: int) -> bool:
    """Whether a leader surely lacks a record, promised or answered for at acks=1, that another
    replica has."""
    of = [c for c in outlook.candidates if c.replica == leader]
    return any(lost.surely for c in of for lost in c.own.values())


def not_seen(outlook: Outlook) -> list[int]:
    """The replicas whose logs are not in the evidence: each may have a promised record that the
    leader lacks, or be the leader that lacks it."""
    return [c.replica for c in outlook.candidates if not c.at_hand]


def _not_to_be_assumed(state: State) -> frozenset[str]:
    """A leader whose log is not here may have written what nothing shows: who chooses another in
    its place must not take it that it has not."""
    led = [t.leader for t in state.history.terms]
    led += [r.leader for r in state.story.recorded if r.leader is not None]
    unseen = any(not state.log_is_known(state.replicas.get(n)) for n in led)
    return frozenset([RECORDS_AS_SEEN]) if unseen else frozenset()


class _Histories(Histories):
    """The histories of a partition of which some things are never taken for granted."""

    def __init__(self, state: State, never: frozenset[str], *, strict: bool) -> None:
        super().__init__(state, strict=strict)
        self.never = never

    def rungs(self) -> list[Assumed]:
        """From all that can be assumed here down to nothing."""
        each = (replace(a, names=a.names - self.never) for a in super().rungs())
        return [*dict.fromkeys(each)]


class _Asking:
    """Puts every question to every run of offsets."""

    def __init__(self, histories: Histories, result: Outlook) -> None:
        self.histories, self.result, self.asked = histories, result, Asked()
        self.copies: dict[tuple[int, int], Copy] = {}
        self.questions: list[_Asked] = []

    def ask_of(self, leader: int) -> None:
        """Fills what one that leads costs, and nothing else."""
        for c in self.result.candidates:
            if c.replica == leader:
                self._add_costs(c)
        self._ask()

    def ask(self) -> None:
        """Fills what the candidates lose."""
        result = self.result
        everybody = tuple(c.replica for c in result.candidates)
        for c in result.candidates:
            n = c.replica
            for tier in TIERS:
                c.lost[tier] = Lost()
                self._add(self.asked.lost(tier, n), c.lost[tier], (c,))
            self._add_costs(c)
            for other in [o for o in everybody if o != n]:
                more = result.more.setdefault((n, other), Lost())
                self._add(self.asked.has_more(PROMISED, n, other), more, ())
        for copy, shown in _older(result.state):
            result.older.append(copy)
            for tier, step in product(TIERS, shown):
                copy.lost[tier] = Lost()
                question = self.asked.lost_by_copy(tier, step.spans, step.log_end_offset or 0)
                self._add(question, copy.lost[tier], (copy,))
        for tier in TIERS:
            result.gone[tier] = Lost()
            self._add(self.asked.gone(tier, everybody), result.gone[tier], ())
        self._ask()

    def _add_costs(self, c: Candidate) -> None:
        others = tuple(o.replica for o in self.result.candidates if o is not c)
        for tier in TIERS:
            c.own[tier] = Lost()
            self._add(self.asked.costs(tier, c.replica, others), c.own[tier], (c,))

    def _add(self, question: Question, into: Lost, about: "tuple[Candidate | Older, ...]") -> None:
        self.questions.append(_Asked(question, into, about))

    def _ask(self) -> None:
        for stretch in self.histories.stretches():
            end = NO_END if stretch.end is None else stretch.end
            if stretch.contradicted:
                self.result.unexplained.append((stretch.first, end))
            for asked in self.questions:
                self._of(stretch, (stretch.first, end), asked)
            for c in self.result.candidates:
                if any(_ends_with(lost, stretch.first) for lost in c.lost.values()):
                    self._copies(stretch, c.replica, (stretch.first, end))
            if any(_is_open(c, stretch.first) for c in self.result.candidates):
                self.result.open.append(stretch)
        self.result.unexplained = joined(self.result.unexplained)
        for asked in self.questions:
            asked.into.surely = joined(asked.into.surely)
            asked.into.perhaps = joined(asked.into.perhaps)
        for (leader, _), copy in sorted(self.copies.items()):
            copy.cut, copy.diverging = joined(copy.cut), joined(copy.diverging)
            copy.undecided = joined(copy.undecided)
            next(c for c in self.result.candidates if c.replica == leader).copies.append(copy)

    def _of(self, stretch: Stretch, offsets: tuple[int, int], asked: "_Asked") -> None:
        if stretch.contradicted and not asked.about:
            return  # What nothing explains tells no two candidates apart, and is not surely gone.
        known = {KEPT: asked.needed} if asked.needed else {}
        outcomes, assuming = self.histories.decide(stretch, asked.question, known)
        if not self.result.line.windows:
            # Nothing names a leader epoch: that nobody ever led, and wrote, is taken for granted.
            strict = self.histories.strict
            outcomes = OPEN if strict else outcomes
            assuming |= frozenset() if strict else self.histories.rungs()[0].names | UNTOLD
        if outcomes == KEPT:
            asked.needed |= assuming
        else:
            into = asked.into.surely if outcomes == BROKEN else asked.into.perhaps
            into.append(offsets)
        for c in asked.about:
            c.assuming |= assuming

    def _copies(self, stretch: Stretch, leader: int, offsets: tuple[int, int]) -> None:
        """Who has a record here that the candidate lacks, in every history that loses one."""
        admitted = stretch.admitted
        ends = self.asked.ends(admitted)
        place = admitted.run.place
        if not ends or leader not in place or is_removed(admitted):
            return
        theirs = place[leader]
        losing = [
            (at, lost)
            for at in ends
            if (lost := of_any_tier(admitted, at) & ~(1 << at.records[theirs]))
        ]
        assigned = self.result.line.assigned or place
        for number, own in place.items():
            # Who was taken out of the assignment fetches nothing: its log is an older copy.
            if number < 0 or own == theirs or not losing or number not in assigned:
                continue
            if _ends_before(self.result.state, number, stretch.first):
                continue
            if not all(at.records[own] and lost >> at.records[own] & 1 for at, lost in losing):
                continue
            kept = frozenset().union(*(keeps(admitted, at, own, theirs) for at, _ in losing))
            copy = self.copies.setdefault((leader, number), Copy(number))
            copy.assuming |= stretch.assumed.names
            into = copy.cut if kept == CUT else copy.diverging
            (into if len(kept) == 1 else copy.undecided).append(offsets)


@dataclass(slots=True)
class _Asked:
    """One question, where its answers go, about whom it is, and what it rests on so far that
    nothing is missing."""

    question: Question
    into: Lost
    about: tuple[Candidate | Older, ...]
    needed: frozenset[str] = frozenset()


def _older(state: State) -> list[tuple[Older, list[OwnStep]]]:
    """The copies that hold something by themselves, each with what the whole copy showed."""
    found = []
    for x in older_copies(state):
        steps = [
            s
            for s in state.story.own.get(x.replica, [])
            if s.kind == "copy" and s.event_id == x.shown_by and s.kind_of_copy != "part"
        ]
        found.append((Older(x.replica, x.kind, x.shown_by, [*x.alone]), steps[-1:]))
    return found


def _ends_before(state: State, number: int, offset: int) -> bool:
    """Whether the copy of a replica shows that its log ends below an offset: a line that tells
    another end may have told it of a batch that was cut whole."""
    replica = state.replicas.get(number)
    shown = replica is not None and replica.captured and state.log_is_known(replica)
    return shown and replica is not None and replica.log.log_end_offset <= offset


def _ends_with(lost: Lost, first: int) -> bool:
    """Whether the run that begins there was the last one at which something may be lost."""
    return any(ranges and ranges[-1][0] == first for ranges in (lost.surely, lost.perhaps))


def _is_open(c: Candidate, first: int) -> bool:
    perhaps = [c.own[tier].perhaps for tier in PROMISED if tier in c.own]
    return any(ranges and ranges[-1][0] == first for ranges in perhaps)
