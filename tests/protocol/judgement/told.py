"""Small evidence for questions of the judgement: facts in, a folded state or its verdicts out."""

from collections.abc import Iterable, Sequence

from replication.protocol.folding.fold import Rejected, apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import EpochEntry, Span
from replication.protocol.ground.topic_partition import State
from replication.protocol.ground.verdict import Verdict
from replication.protocol.judgement.declared_gaps import declared_gaps
from replication.protocol.judgement.fates import fates_of
from replication.protocol.judgement.invariants import version_conformance
from replication.protocol.judgement.judge import answer
from replication.protocol.judgement.reference import reference
from replication.protocol.judgement.view import View

COMMITTED = "committed_records_survive"
ACKNOWLEDGED = "acknowledged_records_survive"


def event(n: int, fact: ev.Fact, at: int | None = None, grade: str = "forensic") -> ev.Event:
    """The n-th fact of a trace. at: ms since the Unix epoch, when it was observed."""
    return ev.Event(str(n), "trace", "", "t", "", 0, n, fact, at, grade)


def told(
    facts: Iterable[ev.Fact | ev.Event], grade: str = "forensic", *, refusing: bool = True
) -> State:
    """The state that facts of one grade lead to, in their order; an event is taken as it is.

    Where refusing is off, what the fold refuses is left out."""
    state = new_state("", "t", "", 0)
    for n, fact in enumerate(facts):
        try:
            apply(state, fact if isinstance(fact, ev.Event) else event(n, fact, None, grade))
        except Rejected:
            if refusing:
                raise
    return state


def verdict(facts: Sequence[ev.Fact], invariant: str = COMMITTED, *, strict: bool = False) -> str:
    """One verdict on forensic facts."""
    judged = answer(told(facts), strict=strict).verdicts
    return next(str(v["verdict"]) for v in judged if v["invariant"] == invariant)


def conforms(state: State) -> Verdict:
    """Whether the steps follow the rules of the release; the histories are not asked."""
    ref, gaps = reference(state), declared_gaps(state)
    return version_conformance.judge(View(state, ref, gaps, fates_of(state)))


def given(*covered: int, version: str = "2.8.1", acks: bool = True) -> list[ev.Fact]:
    """Three replicas, everything of these brokers' lines handed over."""
    return [
        ev.PartitionDescribed((1, 2, 3), 1, True, "delete", version, None, "zookeeper"),
        *([ev.CoverageDeclared("acknowledgements", None, True)] if acks else []),
        *(ev.CoverageDeclared("broker_log", r, True) for r in covered),
    ]


def traced(
    version: str, controller: str = "zookeeper", *, min_insync: int = 1, unclean: bool = False
) -> list[ev.Fact]:
    """Three replicas of which every step is told, loaded empty; the first of them leads epoch 0."""
    three = (1, 2, 3)
    return [
        ev.PartitionDescribed(three, min_insync, unclean, "delete", version, None, controller),
        *(ev.CoverageDeclared("replica_trace", r, True) for r in three),
        ev.LeadershipRecorded(1, 0, three, 0, "initial", three),
        *(ev.ReplicaStarted(r, 0, 0, 0, True) for r in three),
        ev.BecameLeader(1, 0, 0, 0, 0),
        *(ev.BecameFollower(r, 0, 1, 0, 0, 0) for r in (2, 3)),
    ]


def elected(
    leader: int, leader_epoch: int, kind: str = "clean", isr: tuple[int, ...] = (1, 2, 3)
) -> ev.Fact:
    """The controller's record of an election."""
    return ev.LeadershipRecorded(leader, leader_epoch, isr, leader_epoch, kind)


def copy(
    replica: int, *spans: tuple[int, int, int, int], mark: int | None = None, stopped: bool = True
) -> ev.Fact:
    """A log directory: spans of (first offset, end offset, leader epoch, content)."""
    held = tuple(Span(*s) for s in spans)
    starts: dict[int, int] = {}
    for span in spans:
        starts.setdefault(span[2], span[0])
    entries = tuple(EpochEntry(e, o) for e, o in starts.items())
    end = max((s.end_offset for s in held), default=0)
    return ev.ReplicaLogObserved(replica, 0, end, held, mark, None, entries, stopped)
