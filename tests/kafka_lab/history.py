"""Who led each partition and when, by the controller's word and by the brokers' own log lines."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tests.kafka_lab import dump_tool, node_settings
from tests.kafka_lab.cluster import NO_LEADER
from tests.kafka_lab.notes import HighWatermarkSample, Notes
from tests.kafka_lab.site import Site

# A line may be written a little before or after what the journal knows of.
NEAR = 60.0
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

# Of leaders, at DEBUG, where the offset is followed by its place in the log; and at INFO when one
# takes up leadership.
HIGH_WATERMARK = (
    re.compile(
        TIME + r".*\[Partition (\S+)-(\d+) broker=\d+\] High watermark updated "
        r"(?:from \(.*?\) )?to \(?(?:offset=)?(\d+)[ ,]"
    ),
    re.compile(TIME + r".* High watermark for partition \[(\S+),(\d+)\] updated to (\d+) "),
    re.compile(
        TIME + r".*\bLeader (\S+)-(\d+) .*?starts at leader epoch \d+ from offset \d+ "
        r".*?high watermark (\d+)[ ,]"
    ),
)

TopicPartition = tuple[str, int]


@dataclass(frozen=True)
class Election:
    """What the controller decided; `at` in seconds since 1970. Leader None: nobody."""

    at: float
    leader_epoch: int
    leader: int | None
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    # What a reassignment is to add.
    adding: tuple[int, ...] = ()


@dataclass(frozen=True)
class LeaderStart:
    """A broker took up leadership; without an offset where its version does not tell."""

    at: float
    broker: int
    leader_epoch: int | None
    first_offset: int | None


@dataclass(frozen=True)
class Life:
    """One topic under its name: from its creation to the order to delete it, both in seconds."""

    begins: float
    ends: float
    topic_id: str | None = None

    def holds(self, at: float) -> bool:
        return self.begins <= at < self.ends


@dataclass(frozen=True)
class LeaderTerm:
    """One leader in one leader epoch; `before` is the decision that it follows, `waited_for` who
    could last be elected cleanly by then: with nobody in the ISR the eligible leaders (KIP-966)."""

    at: float
    until: float
    leader_epoch: int
    leader: int
    changes: tuple[Election, ...]
    before: Election | None
    waited_for: tuple[int, ...] = ()

    @property
    def unclean(self) -> bool:
        """Whether the leader was neither in the ISR that it followed nor eligible beside it; nor
        taken into it by the record that ended a reassignment: with others, or added by that."""
        if self.before is None or len(self.changes[0].isr) > 1:
            return False
        if self.leader in self.before.adding and not self.changes[0].adding:
            return False
        return self.leader not in self.before.isr + self.before.elr

    def isr_at(self, at: float) -> tuple[int, ...]:
        told = [change.isr for change in self.changes if change.at <= at]
        return told[-1] if told else self.changes[0].isr


def lives(actions: list[dict[str, Any]], topic: str) -> list[Life]:
    """By the laboratory's own orders; the last one ends at the quiet point."""
    found: list[Life] = []
    begins, topic_id = 0.0, None
    for action in actions:
        at = seconds_of(action["ts"])
        if action["action"] == "create_topic" and action["topic"] == topic:
            topic_id = action.get("topic_id")
        elif action["action"] == "delete_topic" and action["topic"] == topic:
            found.append(Life(begins, at, topic_id))
        elif action["action"] == "deleted_topic" and action["topic"] == topic:
            begins = at
        elif action["action"] == "quiet_point":
            found.append(Life(begins, at, topic_id))
    return found


def terms(known: list[Election], ends: float) -> list[LeaderTerm]:
    """The reigns of valid leaders in order; without leader there is none."""
    found: list[LeaderTerm] = []
    group: list[Election] = []
    before: Election | None = None
    waited_for: tuple[int, ...] = ()

    def close(until: float) -> None:
        if group and group[0].leader is not None:
            first = group[0]
            found.append(
                LeaderTerm(
                    *(first.at, until, first.leader_epoch, group[0].leader, tuple(group), before),
                    waited_for,
                )
            )

    for election in known:
        if group and (group[0].leader_epoch, group[0].leader) != (
            election.leader_epoch,
            election.leader,
        ):
            close(election.at)
            members = [one.isr or one.elr for one in group if one.isr or one.elr]
            before, waited_for = group[-1], members[-1] if members else waited_for
            group = []
        group.append(election)
    close(ends)
    return found


def elections(site: Site, notes: Notes) -> dict[TopicPartition, list[Election]]:
    """Every change of leader, leader epoch or ISR in order, of all lives of each topic."""
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
        clock = Clock(site, broker)
        for line in log_lines(site, broker):
            partition, start = leader_start_of(line, broker)
            if start is not None:
                found.setdefault(partition, set()).add(replace(start, at=clock.real(start.at)))
    return {
        partition: sorted(starts, key=lambda start: start.at) for partition, starts in found.items()
    }


def told_high_watermarks(site: Site) -> list[HighWatermarkSample]:
    """What leaders said of their high watermarks: at their start, and all where it is traced."""
    return [
        replace(found, written_at=Clock(site, broker).real(found.written_at))
        for broker in site.brokers
        for line in log_lines(site, broker)
        if (found := high_watermark_of(line, broker)) is not None
    ]


class Clock:
    """When a broker's lines were written, whatever its machine's clock showed: of the clocks that
    it had, by the one that puts a line into the run."""

    def __init__(self, site: Site, broker: int) -> None:
        actions = site.actions()
        self._begins = seconds_of(actions[0]["ts"]) - NEAR
        self._ends = seconds_of(actions[-1]["ts"]) + NEAR
        told = [one["zone"] for one in actions if one.get("broker") == broker and "zone" in one]
        planned = [one.get("zones", {}).get(str(broker)) for one in actions[:1]]
        names = dict.fromkeys([*told, *filter(None, planned), "UTC"])
        moment = datetime.fromtimestamp(self._begins, UTC)
        self._ahead = [_zone(name).utcoffset(moment) or timedelta() for name in names]

    def real(self, told: float) -> float:
        possible = [told - ahead.total_seconds() for ahead in self._ahead]
        return next((at for at in possible if self._begins < at < self._ends), told)


def _zone(name: str) -> tzinfo:
    if match := re.fullmatch(r"GMT([+-])(\d\d):(\d\d)", name):
        ahead = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-ahead if match[1] == "-" else ahead)
    return ZoneInfo(name)


def log_lines(site: Site, broker: int) -> list[str]:
    return [
        line
        for path in sorted((site.home(broker) / "logs").glob("*.log*"))
        for line in path.read_text(errors="replace").splitlines()
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


def seconds_of(text: str) -> float:
    """Of the laboratory's own notes."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC).timestamp()


def _seconds(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC).timestamp()


def _elections_of_metadata_log(site: Site) -> dict[TopicPartition, list[Election]]:
    data = site.data(node_settings.CONTROLLER_ID)[0] / "__cluster_metadata-0"
    segments: list[Path] = sorted(data.glob("*.log"))
    names: dict[str, str] = {}
    last_of: dict[tuple[str, int], Election] = {}
    found: dict[TopicPartition, list[Election]] = {}
    for created_ms, record in dump_tool.metadata_records(site.version, segments):
        fields = record["data"]
        if record["type"] == "TOPIC_RECORD":
            names[fields["topicId"]] = fields["name"]
            continue
        if record["type"] not in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            continue
        number = (fields["topicId"], fields["partitionId"])
        last = last_of.get(number)
        isr = fields.get("isr")
        in_sync = tuple(isr) if isr is not None else (last.isr if last else ())
        elr = fields.get("eligibleLeaderReplicas")
        eligible = tuple(elr) if elr is not None else (last.elr if last else ())
        more = fields.get("addingReplicas")
        adding = tuple(more) if more is not None else (last.adding if last else ())
        leader = fields.get("leader")
        if last is not None and leader is None:
            change = replace(last, at=created_ms / 1000, isr=in_sync, elr=eligible, adding=adding)
        else:
            leader_epoch = fields["leaderEpoch"] if last is None else last.leader_epoch + 1
            chosen = None if leader == NO_LEADER else leader
            change = Election(created_ms / 1000, leader_epoch, chosen, in_sync, eligible, adding)
        last_of[number] = change
        found.setdefault((names[number[0]], number[1]), []).append(change)
    return found
