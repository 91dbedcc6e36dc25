"""Predicts by the rules what real brokers did, and lists what was not predicted.

Input: the events of an incident traced at TRACE level. Appends, fetches, elections, ISR changes and
restarts are taken as given; the high watermark of every replica, where followers' logs end after a
fetch, and where they truncate are predicted, and held against what was observed. Only changes
count. `python -m tests.protocol.reality [INCIDENT...]` prints the score.
"""

import difflib
import sys
from dataclasses import dataclass, field
from pathlib import Path

from replication.evidence.importer import import_evidence
from replication.protocol.folding.fold import apply, new_state
from replication.protocol.ground import events as ev
from replication.protocol.ground.leader_epoch_cache import (
    as_asked,
    end_offset_for_epoch,
    latest_epoch,
)
from replication.protocol.ground.topic_partition import State
from replication.protocol.ground.versions import Behaviour, behaviour
from replication.protocol.judgement.bounded import identity_of
from replication.protocol.rules.high_watermark_of_follower import high_watermark_of_follower
from replication.protocol.rules.high_watermark_of_leader import (
    RemoteReplica,
    high_watermark_of_leader,
)
from replication.protocol.rules.last_caught_up import FetchMemory, is_caught_up, last_caught_up
from replication.protocol.rules.produce_admission import effective_min_insync_replicas
from replication.protocol.rules.truncate_by_common_epoch import truncate_by_common_epoch
from replication.protocol.rules.truncate_to_leader_end_offset import truncate_to_leader_end_offset

INCIDENTS = Path(__file__).parent.parent / "incidents"


@dataclass
class Asked:
    """A follower's fetch that its leader has handled: what the answer will carry."""

    leader: int
    offset: int
    high_watermark: int
    log_end_offset: int
    has_records: bool
    waited: bool = False


@dataclass
class Known:
    """What the prediction holds of one replica."""

    high_watermark: int = 0
    log_end_offset: int = 0
    leads: bool = False
    leader: int | None = None
    isr: frozenset[int] = frozenset()
    followers: dict[int, tuple[int | None, FetchMemory]] = field(default_factory=dict)
    asked: Asked | None = None


@dataclass
class Score:
    """Changes observed and how many of them were predicted, with the misses in words."""

    observed: int = 0
    predicted: int = 0
    misses: list[str] = field(default_factory=list)

    def add(self, what: str, expected: object, actual: object) -> None:
        """One change that was predicted at its place."""
        self.observed += 1
        if expected == actual:
            self.predicted += 1
        else:
            self.misses.append(f"{what}: predicted {expected}, observed {actual}")


class Prediction:
    """Walks through one partition's events in order."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.known: dict[int, Known] = {}
        self.changes: dict[int, tuple[list[int], list[int]]] = {}
        self.seen: dict[int, int] = {}
        # Dropped from the ISR and not heard of since they started again: they may not join it.
        self.out: set[int] = set()
        self.started: set[int] = set()
        self.score = Score()
        self.now = 0

    def replica(self, number: int) -> Known:
        """The replica of this number."""
        return self.known.setdefault(number, Known())

    @property
    def behaviour(self) -> Behaviour:
        s = self.state.settings
        assert s.kafka_version is not None
        return behaviour(s.kafka_version, s.inter_broker_version, controller=s.controller)

    def step(self, event: ev.Event) -> None:
        """Predicts what an event observed, then takes it as given."""
        self.now = event.observed_at or self.now
        handler = getattr(self, "_" + event.fact.kind, None)
        if handler:
            handler(event.fact)
        apply(self.state, event)
        if isinstance(event.fact, ev.LeadershipRecorded):
            self._isr_changed(event.fact)

    def finish(self) -> Score:
        """Compares the two sequences of high watermarks of each replica."""
        for replica, (predicted, observed) in sorted(self.changes.items()):
            matcher = difflib.SequenceMatcher(None, predicted, observed, autojunk=False)
            found = sum(block.size for block in matcher.get_matching_blocks())
            self.score.observed += len(observed)
            self.score.predicted += found
            for op, a, b, c, d in matcher.get_opcodes():
                if op != "equal":
                    self.score.misses.append(
                        f"high watermark of {replica}: predicted {predicted[a:b]}, observed "
                        f"{observed[c:d]} after {observed[max(0, c - 2) : c]}"
                    )
        return self.score

    def _move(self, replica: int, value: int) -> None:
        known = self.replica(replica)
        if value != known.high_watermark:
            known.high_watermark = value
            self.changes.setdefault(replica, ([], []))[0].append(value)

    def _high_watermark_advanced(self, fact: ev.HighWatermarkAdvanced) -> None:
        if not self.replica(fact.replica).leads:
            self._answered_without_records(fact.replica)
        if self.seen.get(fact.replica, 0) != fact.high_watermark:
            self.seen[fact.replica] = fact.high_watermark
            self.changes.setdefault(fact.replica, ([], []))[1].append(fact.high_watermark)

    def _replica_started(self, fact: ev.ReplicaStarted) -> None:
        self.started.add(fact.replica)
        known = self.replica(fact.replica)
        if fact.log_end_offset is not None:
            known.log_end_offset = fact.log_end_offset
        if fact.high_watermark is not None:
            known.high_watermark = self.seen[fact.replica] = fact.high_watermark

    def _replica_stopped(self, fact: ev.ReplicaStopped) -> None:
        known = self.replica(fact.replica)
        known.leads, known.followers, known.asked = False, {}, None

    def _became_leader(self, fact: ev.BecameLeader) -> None:
        known = self.replica(fact.replica)
        if fact.log_end_offset is not None:
            known.log_end_offset = fact.log_end_offset
        kept = known.followers if known.leads else {}
        known.leads, known.leader, known.asked = True, fact.replica, None
        registered = self.state.registration
        known.isr = frozenset(registered.isr or ())
        assigned = self.state.settings.assigned_replicas or ()
        known.followers = {
            r: (kept[r][0] if r in kept else None, FetchMemory(self.now if r in known.isr else 0))
            for r in assigned
            if r != fact.replica
        }
        self._advance(fact.replica)

    def _became_follower(self, fact: ev.BecameFollower) -> None:
        known = self.replica(fact.replica)
        if known.leader != fact.leader:
            known.asked = None
        known.leads, known.leader, known.followers = False, fact.leader, {}

    def _isr_changed(self, fact: ev.LeadershipRecorded) -> None:
        if fact.leader is None or fact.isr is None or not self.replica(fact.leader).leads:
            return
        known = self.replica(fact.leader)
        self.out -= frozenset(fact.isr)
        for gone in known.isr - frozenset(fact.isr):
            self.out.add(gone)
            if gone in known.followers:
                known.followers[gone] = (known.followers[gone][0], FetchMemory(0))
        known.isr = frozenset(fact.isr)
        self._advance(fact.leader)

    def _leader_appended(self, fact: ev.LeaderAppended) -> None:
        known = self.replica(fact.replica)
        known.log_end_offset = fact.end_offset
        self._advance(fact.replica)
        for other in self.known.values():
            waiting = other.asked
            if waiting and waiting.leader == fact.replica and not waiting.has_records:
                waiting.has_records = waiting.waited = True
                waiting.high_watermark = known.high_watermark
                waiting.log_end_offset = fact.end_offset

    def _fetch_requested(self, fact: ev.FetchRequested) -> None:
        leader, follower = self.replica(fact.leader), self.replica(fact.replica)
        if not leader.leads or fact.replica not in leader.followers:
            return
        self._answered_without_records(fact.replica)
        if fact.replica in self.started:
            self.started.discard(fact.replica)
            self.out.discard(fact.replica)
        before = leader.high_watermark
        memory = leader.followers[fact.replica][1]
        memory = last_caught_up(
            memory, fact.fetch_offset, leader.log_end_offset, self.now, self.behaviour
        )
        leader.followers[fact.replica] = (fact.fetch_offset, memory)
        self._advance(fact.leader)
        has_records = leader.log_end_offset > fact.fetch_offset
        follower.asked = Asked(
            fact.leader, fact.fetch_offset, before, leader.log_end_offset, has_records
        )

    def _answered_without_records(self, replica: int) -> None:
        """The next fetch shows that the one before came back empty, with what held by then."""
        known = self.replica(replica)
        asked = known.asked
        if asked is None or asked.has_records:
            return
        self._take(replica, self.replica(asked.leader).high_watermark)
        known.asked = None

    def _take(self, replica: int, carried: int) -> None:
        known = self.replica(replica)
        value = high_watermark_of_follower(carried, 0, known.log_end_offset, self.behaviour)
        self._move(replica, value)

    def _follower_appended(self, fact: ev.FollowerAppended) -> None:
        known = self.replica(fact.replica)
        asked = known.asked
        known.log_end_offset = fact.end_offset
        if asked is None or known.leads:
            return
        if fact.first_offset == asked.offset:
            what = f"log end of {fact.replica} after its fetch at {asked.offset}"
            expected = asked.log_end_offset
            if asked.waited and fact.end_offset <= self.replica(asked.leader).log_end_offset:
                # A fetch that waited reads after the append that ended the wait: how many appends
                # later is timing and no rule.
                expected = max(expected, fact.end_offset)
            self.score.add(what, expected, fact.end_offset)
        self._take(fact.replica, asked.high_watermark)
        known.asked = None

    def _truncated(self, fact: ev.Truncated) -> None:
        known = self.replica(fact.replica)
        if fact.to_offset is None or fact.to_offset >= known.log_end_offset:
            return
        expected = self._truncation_point(fact.replica)
        if expected is not None:
            self.score.add(f"truncation of {fact.replica}", expected, fact.to_offset)
        known.log_end_offset = fact.to_offset
        if self.behaviour.has("high_watermark_kept_within_log"):
            self._move(fact.replica, min(known.high_watermark, fact.to_offset))

    def _truncation_point(self, replica: int) -> int | None:
        b, known = self.behaviour, self.replica(replica)
        if b.truncation == "truncate_to_high_watermark":
            return known.high_watermark
        leader = self.state.replicas.get(known.leader if known.leader is not None else -1)
        follower = self.state.replicas.get(replica)
        if leader is None or follower is None:
            return None
        cache = tuple(follower.epoch_entries)
        end = leader.log.log_end_offset
        entries = tuple(leader.epoch_entries)
        answer = as_asked(end_offset_for_epoch(entries, latest_epoch(cache), end, b), b)
        own_end, mark = known.log_end_offset, known.high_watermark
        if b.truncation == "truncate_to_leader_end_offset":
            cut = truncate_to_leader_end_offset(None, answer.end_offset, own_end, mark)
        else:
            cut = truncate_by_common_epoch(answer, cache, own_end, mark, b)
        return cut.to_offset

    def _advance(self, replica: int) -> None:
        leader, b = self.replica(replica), self.behaviour
        remotes = [
            RemoteReplica(
                end,
                r in leader.isr,
                is_caught_up(memory.last_caught_up_ms, self.now, b.replica_lag_time_max_ms),
                r not in self.out,
            )
            for r, (end, memory) in leader.followers.items()
        ]
        least = effective_min_insync_replicas(
            self.state.settings.min_insync_replicas or 1, len(leader.followers) + 1, b
        )
        value = high_watermark_of_leader(
            leader.high_watermark, leader.log_end_offset, remotes, len(leader.isr), least, b
        )
        self._move(replica, value)


def predict(incident: Path) -> Score:
    """The score of one incident folder over all its partitions."""
    total = Score()
    by_partition: dict[object, list[ev.Event]] = {}
    for event in import_evidence([incident]).events():
        by_partition.setdefault(identity_of(event), []).append(event)
    for events in by_partition.values():
        events.sort(key=lambda e: e.sequence)
        e = events[0]
        prediction = Prediction(new_state(e.cluster_id, e.topic, e.topic_id, e.partition))
        for event in events:
            prediction.step(event)
        score = prediction.finish()
        total.observed += score.observed
        total.predicted += score.predicted
        total.misses += [f"{events[0].topic}-{events[0].partition}: {m}" for m in score.misses]
    return total


def main() -> int:
    """Prints a line per incident and every miss; exit status 1 below 99 %."""
    names = sys.argv[1:] or [p.name for p in sorted(INCIDENTS.glob("*__trace"))]
    observed = predicted = 0
    for name in names:
        score = predict(INCIDENTS / name)
        observed, predicted = observed + score.observed, predicted + score.predicted
        print(f"{name}: {score.predicted} of {score.observed} changes predicted")
        for miss in score.misses:
            print(f"  {miss}")
    print(f"{predicted} of {observed}: {100 * predicted / max(1, observed):.1f} %")
    return int(predicted < 0.99 * observed)


if __name__ == "__main__":
    sys.exit(main())
