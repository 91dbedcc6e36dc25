"""How long a loss that really happened had been one failure away; nothing of the product here.

Told backwards from the moment at which the last copy went, or a leader began without the record.
Counted is what still had to fail for that very leader to lead without it: brokers that ran and
would have been elected before it, and its own copy, or what superseded it there. Where one failure
or none was left, the record was in danger.

With ZooKeeper a broker cannot start before the session of its last process has ended. Who is alone
in the ISR and loses its log is gone by then, and where unclean elections are allowed one that has
the record is elected, if it answers. With KRaft it may lead on in its epoch, before it registers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.kafka_lab.history import (
    Election,
    LeaderStart,
    LeaderTerm,
    leader_at,
    seconds_of,
    terms,
)
from tests.kafka_lab.lineage import Replicas, reigns
from tests.kafka_lab.logs_on_disk import Held
from tests.kafka_lab.truth import CLOCK_SLACK, LostRecord

LIVES, DIES = ("start", "up"), ("kill9", "exited", "ended_by_itself")
# A broker that is paused for longer is dead to the controller.
SESSION = 5.0


@dataclass(frozen=True)
class Window:
    """[begins, lost) in seconds since 1970: one failure would have lost the record, then did.

    acknowledged: when its producer was told. from_disk: it ended as the last copy went.
    """

    record: LostRecord
    begins: float
    lost: float
    acknowledged: float
    from_disk: bool = False

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.lost - self.begins


@dataclass(frozen=True)
class Lifetimes:
    """Which brokers ran when, and which were paused or went on, by what the laboratory did."""

    changes: list[tuple[float, int, bool]]
    pauses: list[tuple[float, int, bool]] = field(default_factory=list)

    @classmethod
    def of(cls, actions: list[dict[str, Any]]) -> "Lifetimes":
        return cls(
            [
                (seconds_of(one["ts"]), one["broker"], one["action"] in LIVES)
                for one in actions
                if one["action"] in LIVES + DIES and "broker" in one
            ],
            [
                (seconds_of(one["ts"]), one["broker"], one["action"] == "sigstop")
                for one in actions
                if one["action"] in ("sigstop", "sigcont")
            ],
        )

    def runs(self, broker: int, at: float) -> bool:
        known = [runs for when, who, runs in self.changes if who == broker and when <= at]
        return bool(known and known[-1])

    def answers(self, broker: int, at: float) -> bool:
        """Whether it ran and its session had not ended by a pause."""
        known = [(when, paused) for when, who, paused in self.pauses if who == broker]
        last = max((one for one in known if one[0] <= at), default=(0.0, False))
        return self.runs(broker, at) and not (last[1] and at - last[0] >= SESSION)


@dataclass(frozen=True)
class Partition:
    """What is known of one partition's life: who led, who held what, who ran, who was assigned.

    unclean: whether one outside the ISR is elected before a broker can start anew. compacted:
    whether later records of a key supersede earlier ones.
    """

    elections: list[Election]
    starts: list[LeaderStart]
    replicas: Replicas
    lifetimes: Lifetimes
    assigned: list[tuple[float, tuple[int, ...]]]
    ends: float
    unclean: bool = False
    compacted: bool = False

    def window(self, record: LostRecord, acknowledged: float, by: int) -> Window | None:
        """None where no leader is known to have begun without it after its acknowledgement, or who
        acknowledged it, `by`, had been deposed by then, as far as clocks tell: it was lost
        before it was written."""
        decided = leader_at(self.elections, acknowledged + CLOCK_SLACK)
        if decided is not None and decided.leader != by:
            return None
        held = [
            one
            for one in self.replicas.everything()
            if (one.payload_id, one.offset) == (record.payload_id, record.offset)
        ]
        found = self._lost(record, held, acknowledged)
        if found is None:
            return None
        heir, led = found
        begins = lost = self._gone(held, acknowledged, led)
        for moment in self._moments(heir, acknowledged, lost):
            if self._failures_left(heir, held, moment) > 1:
                break
            begins = moment
        return Window(record, begins, lost, acknowledged, from_disk=lost < led)

    def _lost(self, record: LostRecord, held: list[Held], told: float) -> tuple[int, float] | None:
        for term in terms(self.elections, self.ends):
            if record.missing_from != f"leader {term.leader} in epoch {term.leader_epoch}":
                continue
            for at in self._reigns(term):
                before, after = self.replicas.around(term.leader, at, term.until)
                if at > told and not any(one in before and one in after for one in held):
                    return term.leader, at
        return None

    def _gone(self, held: list[Held], first: float, last: float) -> float:
        """Since when no disk had it or what superseded it, at the latest when it was missed."""
        seen = {at for b in self.replicas.brokers for at, _ in self.replicas.seen(b, first, last)}
        gone = last
        for at in sorted(seen, reverse=True):
            logs = [self.replicas.at(b, at) for b in self.replicas.brokers]
            if any(one in log or _is_cleaned(one, log) for log in logs for one in held):
                break
            gone = at
        return gone

    def _reigns(self, term: LeaderTerm) -> list[float]:
        return reigns(term, self.starts)

    def _moments(self, heir: int, first: float, last: float) -> Iterator[float]:
        """When anything changed that counts, the newest first; at last the acknowledgement."""
        found = {change.at for change in self.elections}
        found |= {at for at, _, _ in self.lifetimes.changes}
        found |= {at + SESSION * paused for at, _, paused in self.lifetimes.pauses}
        found |= {at for at, _ in self.assigned}
        found |= {at for at, _ in self.replicas.seen(heir, first, last)}
        yield from sorted((at for at in found if first < at < last), reverse=True)
        if first < last:
            yield first

    def _failures_left(self, heir: int, held: list[Held], at: float) -> int:
        """How much still had to fail just then."""
        has = self._has(heir, held, at)
        decided = leader_at(self.elections, at)
        if decided is None:
            return 2
        leader, trusted = decided.leader, {*decided.isr, *decided.elr}
        others = {b for b in trusted - {heir} if self.lifetimes.runs(b, at)}
        if leader != heir and heir in trusted:
            others = {b for b in others if b == leader or self._before(b, heir, at)}
        if has and not others and self.unclean and heir in trusted:
            there = {b for b in self._assigned(at) if self.lifetimes.answers(b, at)}
            others = {b for b in there - {heir} if self._has(b, held, at)}
        return len(others) + has

    def _has(self, broker: int, held: list[Held], at: float) -> bool:
        """Whether its log has the record, or what superseded it."""
        log = self.replicas.at(broker, at)
        return any(one in log or (self.compacted and _is_superseded(one, log)) for one in held)

    def _assigned(self, at: float) -> tuple[int, ...]:
        known = [replicas for when, replicas in self.assigned if when <= at]
        return known[-1] if known else ()

    def _before(self, one: int, other: int, at: float) -> bool:
        """Whether the controller would choose it first: by its place among the replicas."""
        places = {broker: place for place, broker in enumerate(self._assigned(at))}
        return places.get(one, 0) < places.get(other, 0)


def _is_superseded(record: Held, log: frozenset[Held]) -> bool:
    """Whether the log was compacted there, and has a later record of its key."""
    offsets = {held.offset for held in log}
    return record.offset not in offsets and any(
        held.key == record.key and held.offset > record.offset for held in log
    )


def _is_cleaned(record: Held, log: frozenset[Held]) -> bool:
    """Whether its log goes on above where it stood, and has nothing there: who compacts a log
    keeps what supersedes the record, and no failure took it."""
    offsets = {held.offset for held in log}
    return record.offset not in offsets and max(offsets, default=-1) > record.offset


def assignments_of(
    actions: list[dict[str, Any]], topic: str, partition: int
) -> list[tuple[float, tuple[int, ...]]]:
    """Who was assigned since when, by the laboratory's orders."""
    found = []
    for one in actions:
        at = seconds_of(one["ts"])
        if one["action"] == "create_topic" and one["topic"] == topic:
            found.append((at, tuple(one["assignment"][str(partition)])))
        elif one["action"] == "reassign" and one["partition"] == partition:
            found.append((at, tuple(one["replicas"])))
    return found
