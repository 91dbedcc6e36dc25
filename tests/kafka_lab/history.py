"""Who led each partition and when, by the controller's word and by the brokers' own log lines."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.kafka_lab import dump_tool, node_settings
from tests.kafka_lab.cluster import NO_LEADER
from tests.kafka_lab.notes import HighWatermarkSample, Notes
from tests.kafka_lab.site import Site

TIME = r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] "
LEADER_STARTS = (
    re.compile(TIME + r".*\bLeader (\S+)-(\d+) .*?starts at leader epoch (\d+) from offset (\d+) "),
    re.compile(TIME + r".*\] (\S+)-(\d+) starts at Leader Epoch (\d+) from offset (\d+)\. "),
)
# 0.10 names neither epoch nor offset.
BECAME_LEADER = re.compile(
    TIME + r".*completed LeaderAndIsr request .*become-leader transition for partition "
    r"\[?([^\s,\]]+)[-,](\d+)"
)

# Of leaders, at DEBUG; the offset is followed by its place in the log.
HIGH_WATERMARK = (
    re.compile(
        TIME + r".*\[Partition (\S+)-(\d+) broker=\d+\] High watermark updated "
        r"(?:from \(.*?\) )?to \(?(?:offset=)?(\d+)[ ,]"
    ),
    re.compile(TIME + r".* High watermark for partition \[(\S+),(\d+)\] updated to (\d+) "),
)

TopicPartition = tuple[str, int]


@dataclass(frozen=True)
class Election:
    """What the controller decided; `at` in seconds since 1970. Leader None: nobody."""

    at: float
    leader_epoch: int
    leader: int | None
    isr: tuple[int, ...]
    unclean: bool | None = None


@dataclass(frozen=True)
class LeaderStart:
    """A broker took up leadership; without an offset where its version does not tell."""

    at: float
    broker: int
    leader_epoch: int | None
    first_offset: int | None


def elections(site: Site, notes: Notes) -> dict[TopicPartition, list[Election]]:
    """Every change of leader or leader epoch in order; of a topic's last incarnation."""
    if site.version.kraft:
        return _elections_of_metadata_log(site)
    found: dict[TopicPartition, list[Election]] = {}
    for sample in notes.leaders:
        known = found.setdefault((sample.topic, sample.partition), [])
        leader = None if sample.leader == NO_LEADER else sample.leader
        known.append(Election(sample.at, sample.leader_epoch, leader, sample.isr))
    return found


def leader_at(known: list[Election], at: float) -> Election | None:
    """The last decision up to that moment."""
    before = [election for election in known if election.at <= at]
    return before[-1] if before else None


def leader_starts(site: Site) -> dict[TopicPartition, list[LeaderStart]]:
    """By time, from every broker's log files."""
    found: dict[TopicPartition, set[LeaderStart]] = {}
    for broker in site.brokers:
        for path in sorted((site.home(broker) / "logs").glob("*.log*")):
            for line in path.read_text(errors="replace").splitlines():
                partition, start = leader_start_of(line, broker)
                if start is not None:
                    found.setdefault(partition, set()).add(start)
    return {
        partition: sorted(starts, key=lambda start: start.at) for partition, starts in found.items()
    }


def traced_high_watermarks(site: Site) -> list[HighWatermarkSample]:
    """What leaders said of their high watermarks, where the loggers are loud enough."""
    return [
        found
        for broker in site.brokers
        for path in sorted((site.home(broker) / "logs").glob("*.log*"))
        for line in path.read_text(errors="replace").splitlines()
        if (found := high_watermark_of(line, broker)) is not None
    ]


def high_watermark_of(line: str, broker: int) -> HighWatermarkSample | None:
    for pattern in HIGH_WATERMARK:
        if match := pattern.match(line):
            at = _seconds(match[1])
            topic, partition, offset = match[2], int(match[3]), int(match[4])
            return HighWatermarkSample(at, broker, topic, partition, offset, in_logs=True)
    return None


def leader_start_of(line: str, broker: int) -> tuple[TopicPartition, LeaderStart | None]:
    for pattern in LEADER_STARTS:
        if match := pattern.match(line):
            start = LeaderStart(_seconds(match[1]), broker, int(match[4]), int(match[5]))
            return (match[2], int(match[3])), start
    if match := BECAME_LEADER.match(line):
        return (match[2], int(match[3])), LeaderStart(_seconds(match[1]), broker, None, None)
    return ("", 0), None


def _seconds(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC).timestamp()


def _elections_of_metadata_log(site: Site) -> dict[TopicPartition, list[Election]]:
    data = site.data(node_settings.CONTROLLER_ID)[0] / "__cluster_metadata-0"
    segments: list[Path] = sorted(data.glob("*.log"))
    names: dict[str, str] = {}
    found: dict[TopicPartition, list[Election]] = {}
    for created_ms, record in dump_tool.metadata_records(site.version, segments):
        fields = record["data"]
        if record["type"] == "TOPIC_RECORD":
            names[fields["topicId"]] = fields["name"]
            continue
        if record["type"] not in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            continue
        partition = (names[fields["topicId"]], fields["partitionId"])
        if record["type"] == "PARTITION_RECORD":
            found[partition] = []
        known = found.setdefault(partition, [])
        last = known[-1] if known else None
        isr = fields.get("isr")
        in_sync = tuple(isr) if isr is not None else (last.isr if last else ())
        leader = fields.get("leader")
        if last is not None and leader is None:
            known.append(Election(created_ms / 1000, last.leader_epoch, last.leader, in_sync))
            continue
        leader_epoch = fields["leaderEpoch"] if last is None else last.leader_epoch + 1
        chosen = None if leader == NO_LEADER else leader
        unclean = last is not None and fields.get("leaderRecoveryState") == 1
        known.append(Election(created_ms / 1000, leader_epoch, chosen, in_sync, unclean))
    return found
