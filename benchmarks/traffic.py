"""Makes the traffic that the benchmarks fold: steady replication of topic partitions, as events.

Each round of a partition is what brokers at trace level and a producer tell of one batch: the
leader appends, both followers fetch and append, fetch again, the high watermark advances on all
three, the producer is told. Every few rounds a follower leaves and rejoins the ISR.
"""

from collections.abc import Iterator
from pathlib import Path

LEADER, FOLLOWERS = 1, (2, 3)
RECORDS = 10
# A round in so many sees the ISR shrink and expand.
ISR_CHANGES = 50
START = 1_790_000_000_000


class Partition:
    """One topic partition's trace, in sequence; round() goes on where it stopped.

    clock: when the next event is observed, in milliseconds; each event takes one.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.sequence = 0
        self.clock = START
        self.end = 0
        self.rounds = 0
        self.partition_epoch = 0
        self.head = (
            '{"format_version":1,"trace_id":"benchmark","trace_generation":0,'
            f'"cluster_id":"c","topic":"t{number // 100}","topic_id":"i","partition":{number % 100}'
        )

    def _row(self, kind: str, fields: str, grade: str = "traced") -> str:
        sequence = self.sequence
        self.sequence += 1
        observed_at, self.clock = self.clock, self.clock + 1
        return (
            f'{self.head},"sequence":{sequence},"event_id":"{self.number:08x}{sequence:024x}",'
            f'"observed_at":{observed_at},"source_path":"broker-{LEADER}/server.log",'
            f'"source_line":{sequence + 1},"grade":"{grade}","kind":"{kind}",{fields}}}\n'
        )

    def _recorded(self, isr: str) -> str:
        self.partition_epoch += 1
        fields = (
            f'"leader":{LEADER},"leader_epoch":0,"isr":{isr},'
            f'"partition_epoch":{self.partition_epoch},"assigned_replicas":[1,2,3]'
        )
        return self._row("leadership_recorded", fields, "forensic")

    def opening(self) -> Iterator[str]:
        """What is covered, the registration and the first leader epoch."""
        for subject in ("acknowledgements", "controller_history"):
            yield self._row(
                "coverage_declared", f'"subject":"{subject}","complete":true', "forensic"
            )
        for replica in (LEADER, *FOLLOWERS):
            for subject in ("broker_log", "replica_trace"):
                fields = f'"replica":{replica},"subject":"{subject}","complete":true'
                yield self._row("coverage_declared", fields, "forensic")
        described = (
            '"assigned_replicas":[1,2,3],"min_insync_replicas":2,"kafka_version":"4.1.1",'
            '"unclean_leader_election":false,"controller":"kraft"'
        )
        yield self._row("partition_described", described, "forensic")
        yield self._recorded("[1,2,3]")
        for replica in (LEADER, *FOLLOWERS):
            fields = f'"replica":{replica},"log_start_offset":0,"log_end_offset":0'
            yield self._row("replica_started", fields, "forensic")
        yield self._row(
            "became_leader", f'"replica":{LEADER},"leader_epoch":0,"log_end_offset":0', "forensic"
        )
        # Until it is told that they follow, what the leader sees them fetch waits for their word.
        for replica in FOLLOWERS:
            fields = f'"replica":{replica},"leader":{LEADER},"leader_epoch":0,"log_end_offset":0'
            yield self._row("became_follower", fields, "forensic")

    def round(self) -> Iterator[str]:
        """One batch from producer to acknowledgement."""
        first, self.end = self.end, self.end + RECORDS
        self.rounds += 1
        span = f'"first_offset":{first},"end_offset":{self.end},"leader_epoch":0'
        yield self._row("leader_appended", f'"replica":{LEADER},{span}')
        for replica in FOLLOWERS:
            yield self._row("follower_appended", f'"replica":{replica},{span}')
        for replica in FOLLOWERS:
            fields = f'"replica":{replica},"leader":{LEADER},"fetch_offset":{self.end}'
            yield self._row("fetch_requested", fields)
        for replica in (LEADER, *FOLLOWERS):
            fields = f'"replica":{replica},"high_watermark":{self.end}'
            yield self._row("high_watermark_advanced", fields)
        yield self._row("records_acknowledged", f'{span},"acks":"all"', "forensic")
        if self.rounds % ISR_CHANGES == 0:
            yield self._recorded("[1,2]")
            yield self._recorded("[1,2,3]")


def write(
    folder: Path, partitions: list[Partition], events: int, files: int, name: str = "events"
) -> int:
    """Writes about so many events of the partitions in turn, in so many files; returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for number in range(files):
        goal = events * (number + 1) // files
        with (folder / f"{name}-{number:03d}.jsonl").open("w") as file:
            while written < goal:
                for partition in partitions:
                    rows = [] if partition.sequence else list(partition.opening())
                    rows += partition.round()
                    file.writelines(rows)
                    written += len(rows)
    return written
