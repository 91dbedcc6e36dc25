"""A large cluster's answer, made from a few partitions that the fold has really judged.

Events of the few are shared by all partitions that are made like them, so that a million events
take the memory of some hundred.
"""

from typing import Any

from replication.protocol.ground import events as ev
from replication.protocol.judgement.bounded import Identity, fold_partition
from replication.reports.answer import assemble

CLUSTER = "cluster-1"
PARTITION_ROWS = ("verdicts", "losses", "loss_details", "divergences", "findings")


class _Trace:
    """Events of one partition, numbered as they are added."""

    def __init__(self, topic: str, partition: int) -> None:
        self.identity: Identity = (CLUSTER, topic, "", partition)
        self.events: list[ev.Event] = []

    def add(self, fact: ev.Fact, at: int) -> None:
        """One more traced event, at so many ms after the first."""
        number = len(self.events)
        self.events.append(
            ev.Event(
                event_id=f"{self.identity[3]:06d}{number:06d}",
                trace_id="trace",
                cluster_id=CLUSTER,
                topic=self.identity[1],
                topic_id="",
                partition=self.identity[3],
                sequence=number,
                fact=fact,
                observed_at=1_790_000_000_000 + at,
                grade="traced",
                source=ev.Source(f"logs/broker-{1 + number % 3}/server.log", number + 1),
            )
        )

    def fill(self, count: int, at: int, laggard: bool) -> int:
        """Steady copying until there are count events; the log end. laggard: 3 stays at 500."""
        end = 0
        while len(self.events) < count:
            first, end = end, end + 100
            self.add(ev.LeaderAppended(1, first, end, 0), at + end)
            self.add(ev.FollowerAppended(2, first, end, 0), at + end + 1)
            if not laggard or end <= 500:
                self.add(ev.FollowerAppended(3, first, end, 0), at + end + 2)
            self.add(ev.HighWatermarkAdvanced(1, end), at + end + 3)
        return end


def trace(topic: str, partition: int, count: int, unclean: bool) -> _Trace:
    """About count events: three brokers, and where asked an unclean election of a laggard."""
    made = _Trace(topic, partition)
    made.add(
        ev.PartitionDescribed((1, 2, 3), 2, True, kafka_version="3.6.2", controller="kraft"), 0
    )
    made.add(ev.CoverageDeclared("acknowledgements", None, True), 0)
    for replica in (1, 2, 3):
        made.add(ev.CoverageDeclared("replica_trace", replica, True), 0)
    made.add(ev.LeadershipRecorded(1, 0, (1, 2, 3), 0, "initial", (1, 2, 3)), 5)
    for replica in (1, 2, 3):
        made.add(ev.ReplicaStarted(replica, 0, 0, 0, True), 10)
    made.add(ev.BecameLeader(1, 0, 0, 0, 0), 20)
    for replica in (2, 3):
        made.add(ev.BecameFollower(replica, 0, 1, 0, 0, 0), 21)
    end = made.fill(count - (12 if unclean else 2), 100, unclean)
    at = 200 + end
    made.add(ev.RecordsAcknowledged(0, end, "all", 0), at)
    if unclean:
        made.add(ev.LeadershipRecorded(1, 0, (1,), 1), at + 100)
        made.add(ev.ReplicaStopped(1, "power_loss"), at + 900)
        made.add(ev.LeadershipRecorded(None, 1, (1,), 2), at + 910)
        made.add(ev.LeadershipRecorded(3, 2, (3,), 3, "unclean"), at + 4000)
        made.add(ev.BecameLeader(3, 2, 500, 400, 3), at + 4010)
        made.add(ev.BecameFollower(2, 2, 3, end, end - 100, 3), at + 4020)
        made.add(ev.Truncated(2, 500, end, "diverging_epoch"), at + 4030)
        made.add(ev.ReplicaStarted(1, 0, end, end - 100, False), at + 9000)
        made.add(ev.BecameFollower(1, 2, 3, end, end - 100, 3), at + 9010)
        made.add(ev.Truncated(1, 500, end, "diverging_epoch"), at + 9020)
    made.add(ev.InputEnded(), at + 9100)
    return made


def large(
    partitions: int, events: int, damaged: int
) -> tuple[dict[str, Any], dict[Identity, list[ev.Event]]]:
    """The answer about so many partitions of about so many events each, and the events."""
    kinds = [trace("model", 0, events, True), trace("model", 1, events, False)]
    models = [fold_partition(t.identity, t.events).answer for t in kinds]
    by_identity: dict[Identity, list[ev.Event]] = {}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in PARTITION_ROWS}
    states = []
    every = partitions // damaged if damaged else partitions + 1
    for number in range(partitions):
        kind = 0 if damaged and number % every == 0 else 1
        name = {"topic": f"orders.region-{number % 40}.events", "partition": number}
        identity = (CLUSTER, name["topic"], "", number)
        by_identity[identity] = kinds[kind].events
        states.append({**models[kind].partition, **name})
        for table in PARTITION_ROWS:
            rows[table] += [{**row, **name} for row in getattr(models[kind], table)]
    total = sum(map(len, by_identity.values()))
    counts = {"files": 3, "events": total, "applied": total, "duplicates": 0, "superseded": 0,
              "quarantined": 0,
              "held": 0, "unreadable": []}  # fmt: skip
    cluster = {"cluster_id": CLUSTER, "kafka_versions": ["3.6.2"], "controller": "kraft",
               "brokers": [1, 2, 3]}  # fmt: skip
    answer = assemble([cluster], counts, [])
    return {**answer, "partitions": states, **rows}, by_identity
