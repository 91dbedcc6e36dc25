"""What a partition's lines told before its present leader was elected, folded into a base.

A stream of shipped lines keeps what tells something; elections and changes of the ISR would pile up
for ever. A partition is settled below its present leader epoch where

1. every assigned replica is in the ISR of that epoch, as the controllers last recorded it;
2. a digest of each, read beside its broker after that took up its role in the epoch, shows the same
   leader epochs at the same offsets below where the present one begins, and above nothing older:
   by leader epoch and offset, which name a record, all replicas hold the same log there;
3. its election is older than the lateness that lines may have;
4. nothing of it was lost, differs, is or was in danger, or is violated;
5. judged without what came before, the answer is the same, and what lines tell to be committed
   reaches as far.

Then no step before that election can matter any more: whoever loses or changes such a record does
so later. Kept is what the base consists of: the last registration before the election, the line
that made each log, the line that loaded it last, and the digests. The lines before are passed over
wherever they still come from, and leave the spool when it is compacted.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.broker_logs.packed_facts import PackedLines, Packer
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.evidence.joining.partition_join import finished
from replication.evidence.joining.registrations import Recorded
from replication.protocol.ground.events import Event
from replication.protocol.ground.topic_partition import State
from replication.protocol.ground.verdict import VIOLATED
from replication.protocol.judgement.bounded import FoldedPartition, fold_partition

EventsOf = Callable[[PartitionEvidence], list[Event]]
_ROLES = frozenset(("became_leader", "became_follower", "leader_and_isr_received"))
_STARTED = "process_started"
_EPOCHS = ("leader_epoch", "leader_epoch_after")
_PARTITION_EPOCHS = ("partition_epoch", "partition_epoch_after")


@dataclass(frozen=True, slots=True)
class Base:
    """From where on a partition's lines are kept.

    leader_epoch: the present one when it was settled, as assigned_replicas. partition_epoch: of the
    registration before its election, of which lines are kept; None where no line tells. since: by
    broker, milliseconds as its log prints them (in local time or not): its lines before are
    forgotten. loaded: by broker, when its last line before that loaded the log.
    """

    leader_epoch: int
    partition_epoch: int | None
    assigned_replicas: tuple[int, ...]
    since: dict[int, int] = field(default_factory=dict)
    loaded: dict[int, int] = field(default_factory=dict)

    def forgets(self, fact: LogLineFact, broker: int | None) -> bool:
        """Whether a broker's line about the partition, its time as printed, counts for nothing any
        more."""
        since = None if broker is None else self.since.get(broker)
        if since is None or fact.at is None or fact.at >= since or fact.kind == "log_created":
            return False
        if fact.kind == "log_loaded":
            return fact.at != self.loaded.get(broker or 0)
        told = {fact.fields.get(name) for name in _PARTITION_EPOCHS} - {None}
        return self.partition_epoch not in told or self.partition_epoch is None

    def to_json(self) -> dict[str, Any]:
        """As it is kept between two micro-batches."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> "Base":
        """The base of to_json()."""
        by_broker = ({int(b): at for b, at in told[name].items()} for name in ("since", "loaded"))
        assigned = tuple(told["assigned_replicas"])
        return cls(told["leader_epoch"], told["partition_epoch"], assigned, *by_broker)


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
    )


def _rest(lines: PackedLines, broker: int, base: Base) -> PackedLines:
    kept = [fact for fact in lines if not base.forgets(_printed(fact, lines), broker)]
    packer = Packer(lines.path)
    for fact in kept:
        packer.add(fact)
    return next(iter(packer.done()), replace(lines, packed=(), kept_in=None))


def _printed(fact: LogLineFact, lines: PackedLines) -> LogLineFact:
    return fact if fact.at is None else fact._replace(at=fact.at + lines.ahead)


def _recorded_since(recorded: list[Recorded], leader_epoch: int) -> list[Recorded]:
    """The controllers' history from the registration before that epoch on."""
    first = next((n for n, r in enumerate(recorded) if r.fact.leader_epoch >= leader_epoch), 0)
    return recorded[max(first - 1, 0) :]


def settled(
    partition: PartitionEvidence, base: Base | None, events_of: EventsOf, before: int
) -> Base | None:
    """The base on which a partition stands now; None where that is the one it has, or none.

    events_of: its events, of evidence not yet finished. before: its present leader must have been
    elected before that, milliseconds by the lines' own clocks.
    """
    known = without_settled(partition, base)
    if known.silent or known.acknowledgements or known.consumptions:
        return None
    lines = {broker: _in_time(mine) for broker, mine in known.packed.items()}
    if len({e for mine in lines.values() for line in mine for e in line.epochs}) < 2:
        return None
    found = _base_of(finished(known), lines, base, before)
    if found is None or found == base:
        return None
    now = _folded(events_of(known))
    then = _folded(events_of(without_settled(partition, found)))
    return found if _same(now, then) else None


class _Line(NamedTuple):
    """What is asked of a line. at: milliseconds UTC; printed: as its log has it."""

    at: int
    printed: int
    kind: str
    epochs: frozenset[int]


def _in_time(packed: Iterable[PackedLines]) -> list[_Line]:
    """One broker's lines about a partition, by their time."""
    found = (
        _Line(fact.at, fact.at + lines.ahead, fact.kind, _epochs(fact))
        for lines in packed
        for fact in lines
        if fact.at is not None
    )
    return sorted(found, key=attrgetter("at"))


def _epochs(fact: LogLineFact) -> frozenset[int]:
    found = (fact.fields.get(name) for name in _EPOCHS)
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
    leader_epoch = last.leader_epoch
    since = {} if base is None else dict(base.since)
    for broker, mine in lines.items():
        own = [line for line in mine if max(line.epochs, default=-1) >= leader_epoch]
        if own and own[0].at >= before:
            return None
        if own:
            since[broker] = own[0].printed
        elif broker not in assigned and mine:
            since[broker] = max(since.get(broker, 0), mine[-1].printed + 1)
    if not assigned <= since.keys() or not _agree(whole, lines, assigned, leader_epoch):
        return None
    older = [r.fact for r in whole.recorded if r.fact.leader_epoch < leader_epoch]
    loaded = {
        broker: max(line.printed for line in found)
        for broker, at in since.items()
        if (
            found := [x for x in lines.get(broker, ()) if x.kind == "log_loaded" and x.printed < at]
        )
    }
    before_it = older[-1].partition_epoch if older else None
    return Base(leader_epoch, before_it, tuple(replicas), since, loaded)


def _agree(
    whole: PartitionEvidence,
    lines: dict[int, list[_Line]],
    assigned: set[int],
    leader_epoch: int,
) -> bool:
    """Whether digests show that all replicas hold the same below where a leader epoch begins."""
    copies: dict[int, Copy] = {}
    for copy in whole.copies:
        if copy.read_at is not None:
            copies[copy.broker] = copy
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
    """Whether nothing is to be told of a partition, neither with what came before nor without."""
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
