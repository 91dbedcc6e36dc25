"""What a partition's lines told before all its replicas agreed, folded into a base.

A stream of shipped lines keeps what tells something; elections and changes of the ISR would pile up
for ever. A partition is settled below its present leader epoch where

1. every assigned replica is in the ISR of that epoch, as the controllers last recorded it;
2. a digest of each, read beside its broker after that took up its role in the epoch, shows the same
   leader epochs at the same offsets below where the present one begins, and above nothing older:
   by leader epoch and offset, which name a record, all replicas hold the same log there;
3. nothing of it was lost, differs, is or was in danger, or is violated;
4. judged without what came before, the answer is the same, and what lines tell to be committed
   reaches as far.

Then no step before the election can matter any more that is the last one older than the lateness
which lines may have: whoever loses or changes such a record does so later.

Nor does one of the present leader epoch, where that election is its own and

5. the last change of the ISR that is older than that lateness left all replicas in it;
6. the leader has not started since it was elected, and no replica's log ends below where the
   leader's ended at some moment after that change: what any smaller ISR may have committed, which
   the leader had by then, all hold in the leader's one and only term.

Kept is what the base consists of: how the leader was elected, each broker's line of its role, the
lines of that last change, the one that made each log, those that loaded it and moved its start
last, and the digests. The lines before are passed over wherever they still come from, and leave the
spool when it is compacted.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import PackedLines, Packer
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.line_steps import SETTLED
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished
from replication.evidence.joining.registrations import (
    ISR_KINDS,
    PROPOSED_KINDS,
    Recorded,
    SettledTerm,
)
from replication.evidence.log_directories.digest_lines import SeenDirectory
from replication.protocol.ground.events import Event
from replication.protocol.ground.topic_partition import State
from replication.protocol.ground.verdict import VIOLATED
from replication.protocol.judgement.bounded import FoldedPartition, fold_partition

EventsOf = Callable[[PartitionEvidence], list[Event]]
_ROLES = frozenset(("became_leader", "became_follower", "leader_and_isr_received"))
_OF_THE_ISR = ISR_KINDS | PROPOSED_KINDS
# Of these the last one says all that those before it do.
_LAST = {"log_loaded": "loaded", "log_start_advanced": "log_starts"}
_STARTED = "process_started"
_STARTS = ("log_created", "log_loaded")
_EPOCHS = ("leader_epoch", "leader_epoch_after")
_PARTITION_EPOCHS = ("partition_epoch", "partition_epoch_after")
# A partition of which a broker tells in fewer lines is not asked.
FEW = 3


@dataclass(frozen=True, slots=True)
class Base:
    """From where on a partition's lines are kept.

    leader_epoch: the last one that is told as a whole. partition_epoch: of the registration with
    which it began (in bases of earlier releases, of the one before), of which lines are kept; None
    where no line tells. since: by broker, milliseconds as its log prints them (in local time or
    not): its lines before are forgotten. loaded, log_starts: by broker, when its last line before
    that loaded the log, and moved its start. term: how its leader was elected, and the registration
    up to which changes of the ISR are forgotten.
    """

    leader_epoch: int
    partition_epoch: int | None
    assigned_replicas: tuple[int, ...]
    since: dict[int, int] = field(default_factory=dict)
    loaded: dict[int, int] = field(default_factory=dict)
    log_starts: dict[int, int] = field(default_factory=dict)
    term: SettledTerm | None = None

    def forgets(self, fact: LogLineFact, broker: int | None) -> bool:
        """Whether a broker's line about the partition, its time as printed, counts for nothing any
        more."""
        since = None if broker is None else self.since.get(broker)
        if since is None or fact.at is None or fact.at >= since or fact.kind == "log_created":
            return False
        if fact.kind in _LAST:
            last: dict[int, int] = getattr(self, _LAST[fact.kind])
            return fact.at != last.get(broker or 0)
        if fact.kind in _ROLES and fact.fields.get("leader_epoch") == self.leader_epoch:
            return False
        registered = None if self.term is None else self.term.registered
        told = {fact.fields.get(name) for name in _PARTITION_EPOCHS} - {None}
        return told.isdisjoint((self.partition_epoch, registered))

    def to_json(self) -> dict[str, Any]:
        """As it is kept between two micro-batches."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> "Base":
        """The base of to_json()."""

        def by_broker(name: str) -> dict[int, int]:
            return {int(broker): at for broker, at in told.get(name, {}).items()}

        term = told.get("term")
        return cls(
            told["leader_epoch"],
            told["partition_epoch"],
            tuple(told["assigned_replicas"]),
            by_broker("since"),
            by_broker("loaded"),
            by_broker("log_starts"),
            None if term is None else SettledTerm(**{**term, "isr": tuple(term["isr"])}),
        )


def without_settled(partition: PartitionEvidence, base: Base | None) -> PartitionEvidence:
    """The partition as its base leaves it."""
    if base is None:
        return partition
    packed = {b: [_rest(p, b, base) for p in mine] for b, mine in partition.packed.items()}
    packed = {b: [p for p in mine if p.packed] for b, mine in packed.items()}
    return replace(
        partition,
        packed={b: mine for b, mine in packed.items() if mine},
        recorded=_recorded_since(partition.recorded, base.leader_epoch),
        kafka_topics_replicas=partition.kafka_topics_replicas or base.assigned_replicas,
        settled_below=base.leader_epoch,
        settled_term=base.term,
    )


def _rest(lines: PackedLines, broker: int, base: Base) -> PackedLines:
    packer = Packer(lines.path)
    for fact in (_printed(line, lines) for line in lines):
        if not base.forgets(fact, broker):
            packer.add(_told_of(fact, base.since.get(broker, 0)))
    return replace(
        next(iter(packer.done()), replace(lines, packed=(), kept_in=None)), ahead=lines.ahead
    )


def _told_of(fact: LogLineFact, since: int) -> LogLineFact:
    """The fact; with a note where it tells of a start before the base, of which nothing follows any
    more: what a log came back with then was made up for."""
    if fact.kind not in _STARTS or fact.at is None or fact.at >= since:
        return fact
    return fact._replace(fields={**fact.fields, SETTLED: True})


def _printed(fact: LogLineFact, lines: PackedLines) -> LogLineFact:
    return fact if fact.at is None else fact._replace(at=fact.at + lines.ahead)


def _recorded_since(recorded: list[Recorded], leader_epoch: int) -> list[Recorded]:
    """The controllers' history from the registration before that epoch on."""
    first = next((n for n, r in enumerate(recorded) if r.fact.leader_epoch >= leader_epoch), 0)
    return recorded[max(first - 1, 0) :]


def settled(
    partition: PartitionEvidence, base: Base | None, events_of: EventsOf, before: int
) -> Base | None:
    """The base that a partition's lines continue now; None where that is the one it has, or none.

    events_of: its events, of evidence not yet finished. before: its present leader must have been
    elected before that, milliseconds by the lines' own clocks.
    """
    known = without_settled(partition, base)
    if known.silent or known.acknowledgements or known.consumptions:
        return None
    lines = {broker: _in_time(mine) for broker, mine in known.packed.items()}
    if sum(map(len, lines.values())) <= FEW * len(lines):
        return None
    found = _base_of(finished(known), lines, base, before)
    if found is None or found == base or not _worth_it(known, found):
        return None
    now = _folded(events_of(known))
    then = _folded(events_of(without_settled(partition, found)))
    return found if _same(now, then) else None


def _worth_it(partition: PartitionEvidence, base: Base) -> bool:
    """Whether a base forgets as much as it leaves."""
    forgets = [
        base.forgets(_printed(fact, lines), broker)
        for broker, mine in partition.packed.items()
        for lines in mine
        for fact in lines
    ]
    return 2 * sum(forgets) >= len(forgets)


class _Line(NamedTuple):
    """What is asked of a line. at: milliseconds UTC; printed: as its log has it."""

    at: int
    printed: int
    kind: str
    epochs: frozenset[int]
    partition_epoch: int


def _in_time(packed: Iterable[PackedLines]) -> list[_Line]:
    """One broker's lines about a partition, by their time."""
    found = (
        _Line(
            fact.at,
            fact.at + lines.ahead,
            fact.kind,
            _numbers(fact, _EPOCHS),
            max(_numbers(fact, _PARTITION_EPOCHS), default=-1),
        )
        for lines in packed
        for fact in lines
        if fact.at is not None
    )
    return sorted(found, key=attrgetter("at"))


def _numbers(fact: LogLineFact, names: Iterable[str]) -> frozenset[int]:
    found = (fact.fields.get(name) for name in names)
    return frozenset(e for e in found if isinstance(e, int) and e >= 0)


def _base_of(
    whole: PartitionEvidence, lines: dict[int, list[_Line]], base: Base | None, before: int
) -> Base | None:
    """The base of a partition whose replicas agree below the present leader epoch, else None."""
    last = whole.recorded[-1].fact if whole.recorded else None
    if last is None or last.leader is None or last.isr is None:
        return None
    replicas = last.assigned_replicas or whole.described.assigned_replicas or ()
    assigned = set(replicas)
    if not assigned or set(last.isr) != assigned or last.leader not in assigned or last.recovering:
        return None
    if not _agree(whole, lines, assigned, last.leader_epoch):
        return None
    leader_epoch, since = _since_election(whole, lines, before)
    known = {} if base is None else base.since
    if not assigned <= since.keys() or (base is not None and leader_epoch < base.leader_epoch):
        return None
    registered = None
    if leader_epoch == last.leader_epoch:
        registered = _settled_within(whole, lines, assigned, since, before)
    if registered is None and base is not None and leader_epoch == base.leader_epoch:
        return None
    since = {b: max(since.get(b, 0), known.get(b, 0)) for b in since.keys() | known.keys()}
    elected = next(r.fact for r in whole.recorded if r.fact.leader_epoch == leader_epoch)
    term = SettledTerm(
        leader_epoch, elected.leader, elected.election_kind, registered, tuple(replicas)
    )
    return Base(
        leader_epoch,
        elected.partition_epoch,
        tuple(replicas),
        since,
        **{name: _last_before(lines, since, kind) for kind, name in _LAST.items()},
        term=term,
    )


def _since_election(
    whole: PartitionEvidence, lines: dict[int, list[_Line]], before: int
) -> tuple[int, dict[int, int]]:
    """The last leader epoch of which all first lines are older than that, and by broker when it
    printed its own; -1 where there is none. Who tells of none of these epochs has told it all."""
    first = {r.fact.leader_epoch: r.fact.partition_epoch for r in reversed(whole.recorded)}
    for leader_epoch in sorted(first, reverse=True):
        registered = first[leader_epoch]
        since: dict[int, int] = {}
        for broker, mine in lines.items():
            own = next((x for x in mine if _is_since(x, leader_epoch, registered)), None)
            older = [x.printed + 1 for x in mine if x.at < before]
            if own is not None and own.at >= before:
                break
            if own is not None:
                since[broker] = own.printed
            elif older:
                since[broker] = older[-1]
        else:
            return leader_epoch, since
    return -1, {}


def _is_since(line: _Line, leader_epoch: int, partition_epoch: int | None) -> bool:
    """Whether a line names that leader epoch or a later one, or what was registered in these."""
    registered = partition_epoch is not None and line.partition_epoch >= partition_epoch
    return registered or max(line.epochs, default=-1) >= leader_epoch


def _settled_within(
    whole: PartitionEvidence,
    lines: dict[int, list[_Line]],
    assigned: set[int],
    since: dict[int, int],
    before: int,
) -> int | None:
    """The partition epoch of the registration below which nothing of the present leader epoch
    counts any more, and puts `since` forward to where that begins to count; None: none."""
    last = whole.recorded[-1].fact
    of_term = [r for r in whole.recorded if r.fact.leader_epoch == last.leader_epoch]
    full = [r for r in of_term if r.fact.isr is not None and set(r.fact.isr) == assigned]
    leader = last.leader or 0
    for recorded in reversed(full):
        registered = recorded.fact.partition_epoch
        own = [x for x in lines[leader] if x.partition_epoch == registered]
        if registered is None or not own or own[-1].at >= before:
            continue
        if not _all_hold(whole, lines, assigned, leader, own[-1].at):
            return None
        copies = _last_copies(whole)
        for broker, mine in lines.items():
            until = min(before, copies[broker].read_at or 0) if broker in assigned else before
            later = [x.at for x in mine if x.partition_epoch > registered]
            if broker == leader:
                later += [x.at for x in mine if x.kind in _OF_THE_ISR and x.at > own[-1].at]
            until = min([until, *later])
            forgotten = [x.printed for x in mine if x.at < until]
            since[broker] = max([since.get(broker, 0), *(at + 1 for at in forgotten[-1:])])
        return registered
    return None


def _all_hold(
    whole: PartitionEvidence,
    lines: dict[int, list[_Line]],
    assigned: set[int],
    leader: int,
    changed_at: int,
) -> bool:
    """Whether all replicas hold what the leader, in its one and only term, had when it had changed
    the ISR, by its own clock."""
    copies = _last_copies(whole)
    seen: Any = copies[leader].directory
    if not isinstance(seen, SeenDirectory) or seen.read_at <= changed_at:
        return False
    roles = [x.at for x in lines[leader] if x.kind in _ROLES]
    if any(
        (f.at or 0) >= max(roles) for f in whole.processes.get(leader, ()) if f.kind == _STARTED
    ):
        return False
    ends = [seen.log_end_offset or 0, *(end for at, end in seen.grown if at > changed_at)]
    return all((copies[r].directory.log_end_offset or 0) >= min(ends) for r in assigned)


def _last_before(lines: dict[int, list[_Line]], since: dict[int, int], kind: str) -> dict[int, int]:
    """By broker when it printed the last line of a kind of which others are forgotten."""
    found = {b: [x.printed for x in mine if x.kind == kind and x.printed < since.get(b, 0)]
             for b, mine in lines.items()}  # fmt: skip
    return {broker: max(printed) for broker, printed in found.items() if printed}


def _last_copies(whole: PartitionEvidence) -> dict[int, Copy]:
    """By broker what a digest last saw of its replica."""
    return {copy.broker: copy for copy in whole.copies if copy.read_at is not None}


def _agree(
    whole: PartitionEvidence,
    lines: dict[int, list[_Line]],
    assigned: set[int],
    leader_epoch: int,
) -> bool:
    """Whether digests show that all replicas hold the same below where a leader epoch begins."""
    copies = _last_copies(whole)
    if assigned - copies.keys():
        return False
    start = max(copies[r].directory.log_start_offset or 0 for r in assigned)
    shown = set()
    for replica in assigned:
        own = lines.get(replica, ())
        roles = [x.at for x in own if x.kind in _ROLES and leader_epoch in x.epochs]
        starts = [f.at or 0 for f in whole.processes.get(replica, ()) if f.kind == _STARTED]
        read_at = copies[replica].read_at or 0
        if not roles or read_at <= max([*roles, *starts]):
            return False
        older = _below(copies[replica].directory.spans, start, leader_epoch)
        if older is None:
            return False
        shown.add(older)
    return len(shown) == 1


def _below(
    spans: Iterable[tuple[int | None, int, int]], start: int, leader_epoch: int
) -> tuple[tuple[int, int, int], ...] | None:
    """(leader epoch, first, end) of what is older than an epoch; None where a log has such records
    above newer ones, or of no known epoch."""
    found: list[tuple[int, int, int]] = []
    newer = False
    for held, first, end in spans:
        if held is None or (newer and held < leader_epoch):
            return None
        newer = held >= leader_epoch
        if newer or end <= start:
            continue
        first = max(first, start)
        if found and found[-1][0] == held and found[-1][2] == first:
            first = found.pop()[1]
        found.append((held, first, end))
    return tuple(found)


def _folded(events: list[Event]) -> FoldedPartition | None:
    if not events:
        return None
    first = events[0]
    return fold_partition((first.cluster_id, first.topic, first.topic_id, first.partition), events)


def _same(now: FoldedPartition | None, then: FoldedPartition | None) -> bool:
    """Whether the answer about a partition is the same with its earlier lines and without."""
    if now is None or then is None or now.defect or then.defect or now.refused or then.refused:
        return False
    for folded in (now, then):
        told = folded.answer
        rows = (told.losses, told.divergences, told.findings, told.at_risk, told.past_risks)
        if any(rows) or folded.state.history.copies:
            return False
    verdicts = [[(v["invariant"], v["verdict"]) for v in f.answer.verdicts] for f in (now, then)]
    if verdicts[0] != verdicts[1] or any(verdict == VIOLATED for _, verdict in verdicts[0]):
        return False
    terms = [f.state.history.terms[-1:] for f in (now, then)]
    kinds = [[(t.order, t.leader, t.election_kind, t.start_offset) for t in last] for last in terms]
    return kinds[0] == kinds[1] and _told(then.state) >= _told(now.state)


def _told(state: State) -> int:
    """Up to where lines tell that records were committed; digests tell it anew each time."""
    return max((p.span.end_offset for p in state.history.commitments if p.how != "checkpoint"),
               default=0)  # fmt: skip
