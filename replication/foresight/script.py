"""An incident as a script for the machine: what happened to brokers, clients and the registration.

Fetches are not in it: at default log levels nothing tells them. Whoever tells the script again
finds those that fit (retelling.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from replication.foresight.settings import last_told
from replication.protocol.ground import events as ev
from replication.protocol.ground.events import Event

# What changes in use, and counts in a retelling.
_SETTINGS = {
    "min_insync_replicas": "min.insync.replicas",
    "unclean_leader_election": "unclean.leader.election.enable",
}


class CannotTell(ValueError):
    """Why an incident cannot be told again by the machine, in words."""


class TooManyStories(CannotTell):
    """The evidence leaves more open than is followed: another reading of it would be as long."""

    def __init__(self) -> None:
        super().__init__("more stories fit the evidence than are followed")


class Write(NamedTuple):
    """A producer's records. number: of this write; leader: who took it, None: the leader then;
    acks: None: no answer."""

    number: int
    leader: int | None
    first: int
    end: int
    leader_epoch: int | None
    content: int | None
    acks: str | None


class Registered(NamedTuple):
    """The controller's registration from here on."""

    leader: int | None
    leader_epoch: int
    isr: frozenset[int]
    kind: str | None


class Stopped(NamedTuple):
    """A broker's process ended. kept: its log end when it was back, None where it never was;
    high_watermark: the one that it loaded then, as far as that is told."""

    replica: int
    reason: str
    kept: int | None
    high_watermark: int | None = None


class Started(NamedTuple):
    """A broker's process started, with this log end, as far as that is told."""

    replica: int
    end: int | None


class Seen(NamedTuple):
    """A broker's log ends here at some moment. running: it followed or led, so it was not away."""

    replica: int
    end: int | None


Telling = Write | Registered | Stopped | Started | Seen


@dataclass(slots=True)
class Script:
    """One partition's incident. steps: each with its time (ms since 1970, None where not told).

    ends: by replica, where its last copy ends, of those that have one."""

    kafka_version: str
    controller: str
    inter_broker_version: str | None
    replicas: tuple[int, ...]
    leader: int
    min_insync_replicas: int
    unclean: bool
    eligible: bool
    steps: list[tuple[Telling, int | None]] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)

    @property
    def writes(self) -> list[Write]:
        """All writes in order."""
        return [step for step, _ in self.steps if isinstance(step, Write)]


def script_of(events: Sequence[Event]) -> Script:
    """The script of one partition's events. Raises CannotTell."""
    ordered = sorted(events, key=lambda e: e.sequence)
    script = _beginning(ordered)
    leaders = _leaders(ordered)
    answers = [e.fact for e in ordered if isinstance(e.fact, ev.RecordsAcknowledged)]
    traced = any(isinstance(e.fact, ev.LeaderAppended) for e in ordered)
    began = False
    for place, event in enumerate(ordered):
        fact, at = event.fact, event.observed_at
        if isinstance(fact, ev.LeadershipRecorded):
            step = Registered(
                fact.leader, fact.leader_epoch, frozenset(fact.isr or ()), fact.election_kind
            )
            if began:
                script.steps.append((step, at))
            began = True
        elif began:
            told = _told(fact, place, ordered, script, leaders, answers, traced)
            if told is not None:
                script.steps.append((told, at))
        if isinstance(fact, ev.ReplicaLogObserved) and fact.copy == "current":
            script.ends[fact.replica] = fact.log_end_offset
    if not script.writes:
        raise CannotTell("nothing tells which records were written")
    script.steps = _in_parts(_by_offset(script.steps), _borders(script))
    return script


def with_early_ends(script: Script, *, followers: bool = True) -> Script:
    """The same, crashes where the brokers had ended by all that is told.

    No line tells when a process was killed: the evidence has it just before the next start. A
    leader ended behind the last step that it must have lived for, so nobody fetched from it since.
    Of a follower nothing tells what it fetched meanwhile: it ended before others started again.
    """
    steps = list(script.steps)
    for crash in [s for s, _ in steps if isinstance(s, Stopped) and s.reason != "clean"]:
        place = next(n for n, (s, _) in enumerate(steps) if s is crash)
        early, leads = _lived_until(steps[:place], crash, script.leader)
        if not leads:
            again = (n for n in range(early, place) if _goes_on_without(steps[n][0], crash.replica))
            early = next(again, place) if followers else place
        if early < place:
            del steps[place]
            steps.insert(early, (crash, None))
    return replace(script, steps=steps)


def _goes_on_without(step: Telling, replica: int) -> bool:
    """Whether others start, or the ISR is registered without a broker."""
    if isinstance(step, Started):
        return step.replica != replica
    return isinstance(step, Registered) and replica not in step.isr


def _lived_until(
    steps: list[tuple[Telling, int | None]], crash: Stopped, leader: int | None
) -> tuple[int, bool]:
    """Behind which of the steps before its crash a broker may have ended; whether it led then."""
    early, led, isr, reached = 0, leader == crash.replica, frozenset[int](), False
    for number, (step, _) in enumerate(steps):
        leads = leader == crash.replica
        lived = False
        match step:
            case Registered():
                joined = step.isr - isr
                lived = crash.replica in joined or (
                    leads and step.leader == leader and bool(joined)
                )
                leader, isr = step.leader, step.isr
            case Write():
                asked = step.acks == "all" and (not isr or crash.replica in isr)
                holds = not reached and step.end >= (crash.kept or 0)
                reached = reached or holds
                lived = asked or holds or step.leader == crash.replica
                lived = lived or (leads and step.leader is None)
            case Seen():
                lived = step.replica == crash.replica or (leads and step.end is not None)
            case Started() | Stopped() if step.replica == crash.replica:
                lived, reached = True, isinstance(step, Started) and step.end == crash.kept
        if lived:
            early, led = number + 1, leader == crash.replica
    return early, led


def _by_offset(steps: list[tuple[Telling, int | None]]) -> list[tuple[Telling, int | None]]:
    """Answers to several producers that nothing parts, in the order of their offsets."""
    result: list[tuple[Telling, int | None]] = []
    for step in steps:
        place = len(result)
        while place and _is_before(step[0], result[place - 1][0]):
            place -= 1
        result.insert(place, step)
    return result


def _is_before(step: Telling, other: Telling) -> bool:
    if not isinstance(step, Write) or not isinstance(other, Write):
        return False
    return step.leader_epoch == other.leader_epoch and step.end <= other.first


def _borders(script: Script) -> list[int]:
    """Every offset that a step or a copy names as the end of a log."""
    found = set(script.ends.values())
    for step, _ in script.steps:
        if isinstance(step, Seen | Started) and step.end is not None:
            found.add(step.end)
        elif isinstance(step, Stopped):
            found |= {o for o in (step.kept, step.high_watermark) if o is not None}
    return sorted(found)


def _in_parts(
    steps: list[tuple[Telling, int | None]], borders: list[int]
) -> list[tuple[Telling, int | None]]:
    """Writes that one event tells, parted where a log ended in their midst."""
    result: list[tuple[Telling, int | None]] = []
    number = 0
    for step, at in steps:
        if not isinstance(step, Write):
            result.append((step, at))
            continue
        cuts = [step.first, *(b for b in borders if step.first < b < step.end), step.end]
        for first, end in pairwise(cuts):
            result.append((step._replace(number=number, first=first, end=end), at))
            number += 1
    return result


def _beginning(events: Sequence[Event]) -> Script:
    """What the partition is, and which broker leads it first."""
    described = _described(events)
    first = next((e.fact for e in events if isinstance(e.fact, ev.LeadershipRecorded)), None)
    if not described.kafka_version:
        raise CannotTell("the release is not known (--kafka says it)")
    if first is None or first.leader is None:
        raise CannotTell(
            "the controller's history does not begin with the partition's first leader: it takes "
            "the metadata log, or the controller's state-change.log"
        )
    replicas = described.assigned_replicas or first.assigned_replicas
    if replicas and any(set(each) != set(replicas) for each in _assignments(events)):
        raise CannotTell(
            "the partition was reassigned to other brokers in between, and whatif tells no "
            "reassignment again"
        )
    if not replicas or set(first.isr or replicas) != set(replicas):
        raise CannotTell("nothing tells the replicas, or not all were in sync as the story begins")
    starts = [e.fact for e in events if isinstance(e.fact, ev.ReplicaStarted)]
    if any(fact.log_end_offset for fact in starts[:1]):
        raise CannotTell("the evidence begins in the midst of the partition's life")
    eligible = any(
        isinstance(e.fact, ev.LeadershipRecorded)
        and (e.fact.eligible_leader_replicas or e.fact.last_known_leader_replicas)
        for e in events
    )
    return Script(
        described.kafka_version,
        described.controller or "zookeeper",
        described.inter_broker_version,
        tuple(replicas),
        first.leader,
        described.min_insync_replicas or 1,
        bool(described.unclean_leader_election),
        eligible,
    )


def _described(events: Sequence[Event]) -> ev.PartitionDescribed:
    """The partition's settings, which have one value all along. Raises CannotTell."""
    begun = next(
        (n for n, e in enumerate(events) if isinstance(e.fact, ev.LeadershipRecorded)), len(events)
    )
    facts = [e.fact if isinstance(e.fact, ev.PartitionDescribed) else None for e in events]
    told = last_told(filter(None, facts[:begun]))
    for later in filter(None, facts[begun:]):
        for one, name in _SETTINGS.items():
            value = getattr(later, one)
            if value not in (None, getattr(told, one)):
                raise CannotTell(
                    f"{name} is {str(value).lower()} from some moment in the story on, and whatif "
                    "tells it again with one value all along"
                )
    return told


def _assignments(events: Sequence[Event]) -> list[tuple[int, ...]]:
    """The replicas that the controller's records name, one after the other."""
    recorded = (e.fact for e in events if isinstance(e.fact, ev.LeadershipRecorded))
    return [fact.assigned_replicas for fact in recorded if fact.assigned_replicas]


def _leaders(events: Sequence[Event]) -> dict[int, int]:
    """The leader of each leader epoch."""
    found: dict[int, int] = {}
    for event in events:
        fact = event.fact
        if isinstance(fact, ev.BecameLeader):
            found.setdefault(fact.leader_epoch, fact.replica)
        elif isinstance(fact, ev.LeadershipRecorded) and fact.leader is not None:
            found.setdefault(fact.leader_epoch, fact.leader)
    return found


def _told(
    fact: ev.Fact,
    place: int,
    events: Sequence[Event],
    script: Script,
    leaders: dict[int, int],
    answers: list[ev.RecordsAcknowledged],
    traced: bool,
) -> Telling | None:
    """One fact as a step, None for what is none."""
    number = len(script.writes)
    match fact:
        case ev.LeaderAppended():
            answered = (a for a in answers if _is_of(a, fact))
            answer = next(answered, None)
            return Write(
                number, fact.replica, fact.first_offset, fact.end_offset, fact.leader_epoch,
                fact.content, None if answer is None else answer.acks,
            )  # fmt: skip
        case ev.RecordsAcknowledged() if not traced:
            leader = fact.leader if fact.leader_epoch is None else leaders.get(fact.leader_epoch)
            return Write(
                number, leader, fact.first_offset, fact.end_offset, fact.leader_epoch,
                fact.content, fact.acks,
            )  # fmt: skip
        case ev.ReplicaStopped():
            later = events[place + 1 :]
            return Stopped(
                fact.replica,
                "clean" if _was_clean(fact, later) else fact.reason,
                _kept(fact, later),
                _high_watermark_loaded(fact.replica, later),
            )
        case ev.ReplicaStarted():
            return Started(fact.replica, fact.log_end_offset)
        case ev.FollowerAppended():
            return Seen(fact.replica, fact.end_offset)
        case ev.Truncated():
            return Seen(fact.replica, fact.to_offset)
        case ev.BecameLeader() | ev.BecameFollower():
            end = fact.log_end_offset if isinstance(fact, ev.BecameLeader) else None
            return Seen(fact.replica, end)
    return None


def _is_of(answer: ev.RecordsAcknowledged, written: ev.LeaderAppended) -> bool:
    pairs = (
        (answer.content, written.content), (answer.leader_epoch, written.leader_epoch),
    )  # fmt: skip
    same = all(a is None or b is None or a == b for a, b in pairs)
    return same and answer.first_offset <= written.first_offset < answer.end_offset


def _high_watermark_loaded(replica: int, later: Sequence[Event]) -> int | None:
    """The high watermark that a broker loaded when it was back."""
    back = False
    for event in later:
        fact = event.fact
        if getattr(fact, "replica", None) != replica:
            continue
        if isinstance(fact, ev.ReplicaStarted):
            if fact.high_watermark is not None:
                return fact.high_watermark
            back = True
        elif back:
            return fact.high_watermark if isinstance(fact, ev.CheckpointObserved) else None
    return None


def _was_clean(stop: ev.ReplicaStopped, later: Sequence[Event]) -> bool:
    """Whether the broker, back again, found the mark of a clean shutdown."""
    starts = (e.fact for e in later if isinstance(e.fact, ev.ReplicaStarted))
    return next((bool(s.clean) for s in starts if s.replica == stop.replica), False)


def _kept(stop: ev.ReplicaStopped, later: Sequence[Event]) -> int | None:
    """Where the log ended when the broker was back."""
    if stop.log_end_offset is not None:
        return stop.log_end_offset
    for event in later:
        fact = event.fact
        if isinstance(fact, ev.ReplicaStarted) and fact.replica == stop.replica:
            return fact.log_end_offset
    return None


def had_ended(script: Script, number: int, replica: int) -> bool:
    """Whether a broker that leaves the ISR at this step is taken to have ended by then: its next
    line is that it starts, so nothing but its end need explain that it left."""
    for step, _ in script.steps[number + 1 :]:
        match step:
            case Stopped() | Started() | Seen() if step.replica == replica:
                return not isinstance(step, Seen)
            case Write(leader=leader) if leader == replica:
                return False
            case Registered() if replica in step.isr:
                return False
    return False


def named(step: Telling) -> str:
    """A step in words, for whoever is told that nothing fits it."""
    match step:
        case Write():
            return f"the write at offset {step.first}"
        case Stopped():
            return f"the stop of broker {step.replica}"
        case Started():
            return f"the start of broker {step.replica}"
        case Seen():
            return f"a line of broker {step.replica}"
        case Registered():
            return f"the registration of leader epoch {step.leader_epoch}"
