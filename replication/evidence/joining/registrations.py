"""The controller's history of one partition, from the metadata log or put together from log lines.

Each registration is one value of (leader, leader epoch, ISR, partition epoch). In ZooKeeper mode
no broker writes the whole history: the controller's lines, the LeaderAndIsr requests that every
broker prints and the leader's own ISR lines each give part of it, joined by partition epoch
(zkVersion). An election's kind is only said when the state just before it is known.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from replication.evidence.broker_logs.births import is_creation
from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.metadata_log.election_kind import Before, election_kind
from replication.evidence.metadata_log.history import PartitionChange
from replication.evidence.zookeeper.history import PartitionStateChange
from replication.protocol.ground.events import LeadershipRecorded, Source


@dataclass(frozen=True, slots=True)
class Registration:
    """One state of the partition by the controller, and where it was read.

    clock: the broker whose clock `at` is of; times of different brokers are not compared.
    """

    partition_epoch: int
    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...] | None
    replicas: tuple[int, ...] | None
    at: int | None
    source: Source
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    recovering: bool | None = None
    election: str | None = None
    unclean: bool | None = None
    clock: int | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event to be, with its clock and its source."""

    fact: LeadershipRecorded
    at: int | None
    source: Source


@dataclass(frozen=True, slots=True)
class SettledTerm:
    """What a stream has forgotten the lines of (shipping/settled.py).

    election_kind: of the leader's election in that leader epoch. registered: the partition epoch up
    to which changes of the ISR in it are forgotten, but for that one, which left all replicas in
    the ISR, as here; None: none is.
    """

    leader_epoch: int
    leader: int | None
    election_kind: str | None
    registered: int | None = None
    isr: tuple[int, ...] = ()


COMPLETE_KINDS = frozenset(
    ("leader_and_isr_received", "leadership_cached", "leadership_kept", "partition_state_changed",
     "replica_removed_from_isr", "became_leader", "leader_selected", "partition_created",
     "leader_and_isr_sent")
)  # fmt: skip
ISR_KINDS = frozenset(("isr_updated", "isr_changed_by_leader"))
# A follower's line names its leader since 3.3, and no ISR; earlier ones do not.
LEADER_KINDS = frozenset(("became_follower",))
PROPOSED_KINDS = frozenset(("isr_shrink_proposed", "isr_expanded"))


def from_metadata(changes: Iterable[PartitionChange], path: str) -> list[Recorded]:
    """The whole history as the metadata log has it."""
    result = []
    for change in changes:
        after = change.after
        fact = LeadershipRecorded(
            leader=after.leader,
            leader_epoch=after.leader_epoch,
            isr=after.isr,
            partition_epoch=after.partition_epoch,
            election_kind=change.election,
            assigned_replicas=after.replicas,
            eligible_leader_replicas=after.elr,
            last_known_leader_replicas=after.last_known_elr,
            recovering=after.recovering,
        )
        result.append(Recorded(fact, change.at, Source(path, None, change.metadata_offset)))
    return result


def from_lines(
    facts: Iterable[LogLineFact],
    replicas: tuple[int, ...] | None,
    eligible_below: float = 0,
    only_begin: Collection[int] = (),
    settled: SettledTerm | None = None,
) -> list[Recorded]:
    """The history that lines of any number of brokers give together, in partition epoch order.

    eligible_below: of how many members of the ISR on nobody outside of it may be eligible, where
    lines do not say who is (KIP-966). only_begin: brokers that print of a change of the ISR that
    they begin it, and no more but where it was refused. settled: what of it lines were forgotten.
    """
    ordered = sorted(facts, key=lambda f: (f.at or 0, f.path, f.line))
    known = _by_partition_epoch(ordered, only_begin, settled)
    return _recorded(known, replicas, eligible_below)


def from_zookeeper(
    states: Iterable[PartitionStateChange], replicas: tuple[int, ...] | None
) -> list[Recorded]:
    """The history as the partition's znode had it. replicas: its assignment, where known."""
    known = {
        s.version: Registration(
            partition_epoch=s.version,
            leader=s.leader,
            leader_epoch=s.leader_epoch,
            isr=s.isr,
            replicas=replicas,
            at=s.at,
            source=Source(s.file, None, s.byte_offset),
        )
        for s in states
    }
    return _recorded(known, replicas)


def _recorded(
    known: dict[int, Registration], replicas: tuple[int, ...] | None, eligible_below: float = 0
) -> list[Recorded]:
    """Registrations by partition epoch as events to be, with each election's kind."""
    result: list[Recorded] = []
    before: Registration | None = None
    last_leader_epoch: int | None = None
    for partition_epoch in sorted(known):
        now = known[partition_epoch]
        adjacent = (
            before if before is not None and before.partition_epoch == partition_epoch - 1 else None
        )
        election = None
        if now.leader is not None and now.leader_epoch != last_leader_epoch:
            election = now.election or _kind(now, adjacent, now.replicas or replicas)
            if adjacent is not None and election == "unclean" and not now.unclean:
                clean = _perhaps_eligible(adjacent, eligible_below) or _left(adjacent, now)
                election = "unknown" if clean else election
        fact = LeadershipRecorded(
            leader=now.leader,
            leader_epoch=now.leader_epoch,
            isr=now.isr,
            partition_epoch=now.partition_epoch,
            election_kind=election,
            assigned_replicas=now.replicas,
            eligible_leader_replicas=now.elr,
            last_known_leader_replicas=now.last_known_elr,
            recovering=now.recovering,
        )
        result.append(Recorded(fact, now.at, now.source))
        before = now
        if now.leader is not None:
            last_leader_epoch = now.leader_epoch
    return result


def filled(history: list[Recorded], lines: list[Recorded]) -> list[Recorded]:
    """A history with gaps (ZooKeeper's, of which old logs were removed), and what lines tell of
    them."""
    known = {r.fact.partition_epoch for r in history}
    more = [r for r in lines if r.fact.partition_epoch not in known]
    return sorted([*history, *more], key=lambda r: r.fact.partition_epoch or 0)


def joined(history: list[Recorded], lines: list[Recorded]) -> list[Recorded]:
    """The metadata log's history, and what lines tell of the time after its end."""
    last = max((r.fact.partition_epoch or 0 for r in history), default=-1)
    return history + [r for r in lines if (r.fact.partition_epoch or 0) > last]


def _kind(now: Registration, before: Registration | None, replicas: tuple[int, ...] | None) -> str:
    """The kind of an election by the state just before it, in the words of the contract."""
    if now.partition_epoch == 0 and now.leader_epoch == 0:
        return "initial"
    if now.unclean:
        return "unclean"
    if before is None or before.isr is None or now.leader is None:
        return "unknown"
    unchanged = now.isr is not None and set(now.isr) == set(before.isr)
    preferred = replicas is not None and len(replicas) > 0 and replicas[0] == now.leader
    return election_kind(
        now.leader,
        Before(before.leader, before.isr, before.elr or (), before.last_known_elr or ()),
        isr=now.isr or (),
        is_preferred=preferred and unchanged and before.leader in before.isr,
    )


def _perhaps_eligible(before: Registration, eligible_below: float) -> bool:
    """Whether a leader from outside the ISR may have been eligible by what no line tells."""
    untold = before.elr is None and before.isr is not None
    return untold and len(before.isr or ()) < eligible_below


def _left(before: Registration, now: Registration) -> bool:
    """Whether replicas left the assignment by then: that ends a reassignment, and whom it added,
    the old leader's word took into the ISR at that very moment."""
    return bool(set(before.replicas or ()) - set(now.replicas or before.replicas or ()))


def _by_partition_epoch(
    facts: list[LogLineFact],
    only_begin: Collection[int],
    settled: SettledTerm | None,
) -> dict[int, Registration]:
    """One registration per partition epoch; the fuller line wins, the earlier one its clock."""
    known: dict[int, Registration] = {}
    selected: list[LogLineFact] = []
    changes: list[LogLineFact] = []
    for fact in facts:
        if fact.kind == "unclean_leader_elected":
            selected.append(fact)
        elif fact.kind == "partition_changed" and _has(fact, "partition_epoch_after"):
            changes.append(fact)
        elif (
            (fact.kind in COMPLETE_KINDS or (fact.kind in LEADER_KINDS and _has(fact, "leader")))
            and _has(fact, "partition_epoch", "leader_epoch")
            and not _is_told(known.get(fact.fields["partition_epoch"]), fact)
        ):
            _add(known, _registration(fact))
    if settled is not None and settled.registered is not None:
        _add_settled(known, facts, settled)
    for fact in sorted(changes, key=lambda f: int(f.fields["partition_epoch_after"])):
        _add_change(known, fact)
    _add_assignment(known, facts)
    reached: dict[int | None, int] = {}
    for fact in facts:
        if fact.kind in ISR_KINDS and _has(fact, "partition_epoch", "isr"):
            _add_isr(known, fact, fact.fields["partition_epoch"], fact.fields["isr"])
        elif fact.kind in PROPOSED_KINDS and _has(fact, "to_isr"):
            _add_proposed(known, fact, reached)
    if known and known[max(known)].leader in only_begin:
        _add_begun(known, facts)
    for fact in selected:
        for partition_epoch in _elected_by(fact, known, facts):
            known[partition_epoch] = replace(known[partition_epoch], unclean=True)
    if settled is not None and settled.election_kind is not None:
        first = next((e for e in sorted(known) if known[e].leader_epoch >= settled.leader_epoch), 0)
        if first in known and known[first].leader_epoch == settled.leader_epoch:
            known[first] = replace(known[first], election=settled.election_kind)
    return known


def _add_settled(
    known: dict[int, Registration], facts: list[LogLineFact], settled: SettledTerm
) -> None:
    """The registration of a settled term that left all replicas in the ISR, by the lines left."""
    registered = settled.registered
    names = ("partition_epoch", "partition_epoch_after")
    told = [f for f in facts if registered in [f.fields.get(name) for name in names]]
    if registered is not None and told:
        whole = Registration(
            registered, settled.leader, settled.leader_epoch, settled.isr, None, told[0].at,
            _source(told[0]), clock=told[0].broker,
        )  # fmt: skip
        _add(known, whole)


def _is_told(known: Registration | None, fact: LogLineFact) -> bool:
    """Whether a state says all that the line does: brokers print the same one again and again."""
    return known is not None and all(
        getattr(known, name) is not None
        for name in ("leader", "isr", "replicas", "elr", "last_known_elr")
        if fact.fields.get(name) is not None or name == "leader"
    )


def _add_assignment(known: dict[int, Registration], facts: list[LogLineFact]) -> None:
    """The first state has the replicas with which the controller made the partition."""
    first = known.get(0)
    made = (f.fields["replicas"] for f in facts if _makes(f) and f.fields.get("replicas"))
    if first is not None and first.replicas is None:
        known[0] = replace(first, replicas=next(made, None))


def _makes(fact: LogLineFact) -> bool:
    return fact.kind == "partition_assigned" or is_creation(fact)


def _has(fact: LogLineFact, *names: str) -> bool:
    """Whether the line gives all of these: damage may have taken some, and no line prints all."""
    return all(fact.fields.get(name) is not None for name in names)


def _elected_by(
    fact: LogLineFact, known: dict[int, Registration], facts: list[LogLineFact]
) -> list[int]:
    """The registrations that a line of an unclean election speaks of: at the same moment by the
    clock of the broker that printed both, or the only ones of that leader."""
    leader = fact.fields.get("leader")
    of_leader = [e for e, r in known.items() if r.leader == leader]
    seen = {
        f.fields["partition_epoch"]
        for f in facts
        if f.kind in COMPLETE_KINDS
        and f.broker == fact.broker
        and f.fields.get("partition_epoch") in of_leader
        and _close(f.at, fact.at)
    }
    if seen:
        return sorted(seen)
    own_clock = [e for e in of_leader if known[e].clock == fact.broker]
    return [e for e in own_clock if _close(known[e].at, fact.at)]


def _close(a: int | None, b: int | None) -> bool:
    return a is not None and b is not None and abs(a - b) < 5_000


def _source(fact: LogLineFact) -> Source:
    return Source(fact.path, fact.line)


def _registration(fact: LogLineFact) -> Registration:
    f = fact.fields
    leader = f.get("leader", fact.broker if fact.kind == "became_leader" else None)
    return Registration(
        partition_epoch=f["partition_epoch"],
        leader=leader,
        leader_epoch=f["leader_epoch"],
        isr=f.get("isr"),
        replicas=f.get("replicas"),
        at=fact.at,
        source=_source(fact),
        elr=f.get("elr"),
        last_known_elr=f.get("last_known_elr"),
        recovering=f.get("recovering"),
        clock=fact.broker,
    )


def _add_change(known: dict[int, Registration], fact: LogLineFact) -> None:
    """A KRaft controller's line prints what changed; the rest is as in the state before."""
    f = fact.fields
    partition_epoch = f["partition_epoch_after"]
    before = known.get(partition_epoch - 1)
    leader_epoch = f.get("leader_epoch_after", before.leader_epoch if before else None)
    if leader_epoch is None:
        return
    _add(
        known,
        Registration(
            partition_epoch=partition_epoch,
            leader=f.get("leader_after", before.leader if before else None),
            leader_epoch=leader_epoch,
            isr=f.get("isr_after", before.isr if before else None),
            replicas=f.get("replicas_after", before.replicas if before else None),
            at=fact.at,
            source=_source(fact),
            elr=f.get("elr_after", before.elr if before else None),
            last_known_elr=f.get("last_known_elr_after", before.last_known_elr if before else None),
            recovering=f.get("recovering_after", before.recovering if before else None),
            election=_printed_kind(fact, leader_epoch),
            clock=fact.broker,
        ),
    )


def _printed_kind(fact: LogLineFact, leader_epoch: int) -> str | None:
    """The kind of an election whose line prints the state before it as well; None for any other."""
    f = fact.fields
    if f.get("leader_after") is None or f.get("isr_before") is None:
        return None
    source = _source(fact)
    after = Registration(
        f["partition_epoch_after"], f["leader_after"], leader_epoch, f.get("isr_after"), None,
        fact.at, source,
    )  # fmt: skip
    before = replace(
        after,
        partition_epoch=after.partition_epoch - 1,
        leader=f.get("leader_before"),
        isr=f["isr_before"],
        elr=f.get("elr_before"),
        last_known_elr=f.get("last_known_elr_before"),
    )
    return _kind(after, before, None)


def _add(known: dict[int, Registration], new: Registration) -> None:
    old = known.get(new.partition_epoch)
    if old is None:
        known[new.partition_epoch] = new
        return
    known[new.partition_epoch] = replace(
        old,
        leader=old.leader if old.leader is not None else new.leader,
        isr=old.isr if old.isr is not None else new.isr,
        replicas=old.replicas or new.replicas,
        election=old.election or new.election,
        elr=old.elr if old.elr is not None else new.elr,
        last_known_elr=old.last_known_elr
        if old.last_known_elr is not None
        else (new.last_known_elr),
    )


def _add_isr(
    known: dict[int, Registration], fact: LogLineFact, partition_epoch: int, isr: tuple[int, ...]
) -> None:
    """A change of the ISR alone: leader and leader epoch are those of the state before. Where that
    is not here, nobody may have been elected since the one that is: the next state tells."""
    if partition_epoch in known:
        return
    before = known.get(max((e for e in known if e < partition_epoch), default=-1))
    after = known.get(min((e for e in known if e > partition_epoch), default=-1))
    if before is None or before.leader is None:
        return
    adjacent = before.partition_epoch == partition_epoch - 1
    if not adjacent and (after is None or after.leader_epoch != before.leader_epoch):
        return
    known[partition_epoch] = replace(
        before,
        partition_epoch=partition_epoch,
        isr=isr,
        at=fact.at,
        source=_source(fact),
        election=None,
        unclean=None,
        clock=fact.broker,
    )


def _add_proposed(
    known: dict[int, Registration], fact: LogLineFact, reached: dict[int | None, int]
) -> None:
    """A leader's own ISR line without a partition epoch: the change that is known already, else the
    gap it fits into, if there is one.

    reached: by broker, the partition epoch that its last such line led to; the next comes later.
    """
    before_isr, to_isr = set(fact.fields.get("from_isr") or ()), fact.fields["to_isr"]
    for partition_epoch in sorted(e for e in known if e >= reached.get(fact.broker, 0)):
        state, after = known[partition_epoch], known.get(partition_epoch + 1)
        if state.isr is None or set(state.isr) != before_isr or state.leader != fact.broker:
            continue
        if after is not None and _is_that_change(state, after, to_isr):
            reached[fact.broker] = partition_epoch + 1
            return
        if after is not None or not any(e > partition_epoch for e in known):
            continue
        later = min(e for e in known if e > partition_epoch)
        later_at = known[later].at if known[later].clock == fact.broker else None
        if later_at is not None and fact.at is not None and fact.at > later_at:
            continue
        known[partition_epoch + 1] = _changed(state, fact)
        reached[fact.broker] = partition_epoch + 1
        return


def _add_begun(known: dict[int, Registration], facts: list[LogLineFact]) -> None:
    """What the last known leader began to make of the ISR since it printed the last known state,
    as long as nobody's state comes after that. A refusal names the partition epoch that it had: of
    that nothing was made."""
    last = known[max(known)]
    own = [fact for fact in facts if fact.broker == last.leader]
    refused = {f.fields.get("partition_epoch") for f in own if f.kind == "isr_update_refused"}
    knows = False
    for fact in own:
        if fact.kind in COMPLETE_KINDS | ISR_KINDS:
            knows = knows or fact.fields.get("partition_epoch") == last.partition_epoch
        elif knows and fact.kind in PROPOSED_KINDS and _has(fact, "to_isr"):
            before = set(fact.fields.get("from_isr") or ())
            if last.isr is None or set(last.isr) != before or last.partition_epoch in refused:
                return
            last = _changed(last, fact)
            known[last.partition_epoch] = last


def _changed(state: Registration, fact: LogLineFact) -> Registration:
    """The state after a leader's change of the ISR alone."""
    return replace(
        state,
        partition_epoch=state.partition_epoch + 1,
        isr=fact.fields["to_isr"],
        at=fact.at,
        source=_source(fact),
        election=None,
        unclean=None,
        clock=fact.broker,
    )


def _is_that_change(state: Registration, after: Registration, to_isr: tuple[int, ...]) -> bool:
    """Whether two states in a row are before and after an ISR line of their leader."""
    same = (state.leader, state.leader_epoch) == (after.leader, after.leader_epoch)
    return same and after.isr is not None and set(after.isr) == set(to_isr)
