"""Kafka version -> flags: which of Kafka's replication behaviours a broker lives by.

Two things choose a behaviour: the broker's code version, and the cluster's inter-broker protocol
version (ZooKeeper mode) or metadata version (KRaft). Each flag is one row of BOUNDARIES; the named
generations are presets over the same flags. Several well-known boundaries are quoted one release
off because people cite the KIP: the rows here follow the release that holds the code, on the
maintenance branches too. docs/protocol_releases.md.
"""

import re
from dataclasses import dataclass, replace
from functools import cache

from replication.protocol.ground.boundaries import BOUNDARIES, REMEDIES, Boundary

KNOWN_BRANCHES: tuple[tuple[int, ...], ...] = (
    *((0, 8, n) for n in range(3)),
    (0, 9, 0),
    *((0, 10, n) for n in range(3)),
    (0, 11, 0),
    *((1, n) for n in range(2)),
    *((2, n) for n in range(9)),
    *((3, n) for n in range(10)),
    *((4, n) for n in range(4)),
)
"""The release branches whose rules are known here, the oldest first."""

NEWEST_KNOWN = ".".join(map(str, KNOWN_BRANCHES[-1]))
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-SNAPSHOT)?", re.ASCII)
_INTER_BROKER = re.compile(r"([\d.]+?)(?:-IV(\d+))?", re.ASCII)
_WHOLE_RELEASE = 1_000_000


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one broker does: a flag per boundary (see BOUNDARIES), and the defaults of its release.

    kafka_version and inter_broker_version are as given, the latter None when it is the release's
    own. eligible_leader_replicas: whether the feature is on. controller: zookeeper or kraft.
    """

    kafka_version: str
    inter_broker_version: str | None
    controller: str
    flags: frozenset[str]
    eligible_leader_replicas: bool

    def has(self, flag: str) -> bool:
        """Whether the named flag is on. KeyError for a name that is no flag."""
        if flag not in BOUNDARY_BY_FLAG:
            raise KeyError(flag)
        return flag in self.flags

    @property
    def truncation(self) -> str:
        """The truncation rule a follower lives by: the name of its file in rules/."""
        if self.has("truncates_on_fetch"):
            return "truncate_on_fetch"
        if self.has("truncates_by_common_epoch"):
            return "truncate_by_common_epoch"
        if self.has("truncates_to_leader_end_offset"):
            return "truncate_to_leader_end_offset"
        return "truncate_to_high_watermark"

    @property
    def replica_lag_time_max_ms(self) -> int:
        """Default of replica.lag.time.max.ms (KIP-537)."""
        return 30_000 if self.has("lag_limit_is_30_seconds") else 10_000

    @property
    def replica_lag_max_messages(self) -> int | None:
        """Default of replica.lag.max.messages; None where it does not exist (0.9 on)."""
        return None if self.has("isr_by_time_alone") else 4_000

    @property
    def unclean_leader_election(self) -> bool:
        """Default of unclean.leader.election.enable: true up to 0.10.2."""
        return not self.has("leader_epoch_in_record_batches")

    @property
    def acks(self) -> str:
        """A producer's default acks: "1" up to 2.8, "all" from 3.0 (KIP-679)."""
        return "all" if self.has("acks_all_by_default") else "1"


DEFAULT_MIN_INSYNC_REPLICAS = 1
HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS = 5_000
RECOVERY_POINT_CHECKPOINT_INTERVAL_MS = 60_000
LOG_START_OFFSET_CHECKPOINT_INTERVAL_MS = 60_000

BOUNDARY_BY_FLAG: dict[str, Boundary] = {b.flag: b for b in (*BOUNDARIES, *REMEDIES)}

GENERATIONS: dict[str, str] = {
    "truncate_to_high_watermark": "0.10.2.2",
    "kip_101": "0.11.0.0",
    "kip_279_first": "2.0.0",
    "kip_279": "2.0.1",
    "kip_320": "2.1.0",
    "truncate_on_fetch": "2.8.0",
    "eligible_leader_replicas": "4.1.0",
}
"""The generations of the protocol, each with a release that lives by it."""


@cache
def parse_version(text: str) -> tuple[int, ...]:
    """A Kafka version as numbers: "2.8.1" -> (2, 8, 1), "0.10.2.2" -> (0, 10, 2, 2).

    A missing last number is 0. ValueError for a vendor's scheme or a release not known here.
    """
    match = _VERSION.fullmatch(text.strip())
    numbers = tuple(int(n) for n in match.groups() if n is not None) if match else ()
    branch_length = 3 if numbers[:1] == (0,) else 2
    if not match or not branch_length <= len(numbers) <= branch_length + 1:
        raise ValueError(
            f"{text!r} is not an Apache Kafka version: expected one like 3.9.1 or 0.10.2.2 "
            "(vendor schemes are not mapped: name the Apache version the build is based on)"
        )
    if numbers[:branch_length] not in KNOWN_BRANCHES:
        raise ValueError(
            f"the rules of Kafka {text} are not known here; those of 0.8.0 to {NEWEST_KNOWN} are. "
            "Get a newer version of this tool, or name the nearest of these releases: its rules "
            "are taken then"
        )
    return numbers if len(numbers) > branch_length else (*numbers, 0)


def parse_inter_broker_version(text: str) -> tuple[int, ...]:
    """An inter-broker protocol or metadata version: "2.7-IV1" -> (2, 7, 1).

    Without -IV it is the last of that release: "2.7" sorts after each "2.7-IVn". A patch number
    ("2.0.1") is allowed and means the branch, as Kafka reads it. ValueError as parse_version.
    """
    match = _INTER_BROKER.fullmatch(text.strip())
    if not match:
        raise ValueError(
            f"{text!r} is not an inter-broker protocol or metadata version: "
            "expected one like 2.7-IV1 or 2.7"
        )
    numbers = parse_version(match[1])
    step = _WHOLE_RELEASE if match[2] is None else int(match[2])
    return (*numbers[:-1], step)


def _reached(version: tuple[int, ...], releases: tuple[str, ...]) -> bool:
    """Whether a version holds a change whose first release per branch is given."""
    firsts = [parse_version(r) for r in releases]
    for first in firsts:
        if first[:-1] == version[:-1]:
            return version >= first
    return version > firsts[-1]


def controllers_of(kafka_version: str) -> tuple[str, ...]:
    """The kinds of controller that a release has, the default first. ValueError as parse_version.

    KRaft came with 2.8 and ZooKeeper went with 4.0.
    """
    version = parse_version(kafka_version)
    if version >= (4,):
        return ("kraft",)
    return ("zookeeper", "kraft") if version >= (2, 8) else ("zookeeper",)


@cache
def behaviour(
    kafka_version: str,
    inter_broker_version: str | None = None,
    *,
    controller: str | None = None,
    eligible_leader_replicas: bool | None = None,
) -> Behaviour:
    """The behaviour of a broker of this version under this inter-broker protocol version.

    controller: zookeeper or kraft; by default what the release has, ZooKeeper where it has both.
    eligible_leader_replicas: by default off in 4.0 and on from 4.1. ValueError, in words for the
    user, for an unknown version, a vendor's scheme, or a combination that does not exist.
    """
    version = parse_version(kafka_version)
    spoken = None
    if inter_broker_version is not None:
        spoken = parse_inter_broker_version(inter_broker_version)
        if spoken[:-1] > version[:-1]:
            raise ValueError(
                f"inter-broker version {inter_broker_version} is newer than Kafka {kafka_version}"
            )
    modes = controllers_of(kafka_version)
    controller = controller or modes[0]
    if controller not in ("kraft", "zookeeper"):
        raise ValueError(f"controller {controller!r}: expected zookeeper or kraft")
    if controller not in modes and controller == "zookeeper":
        raise ValueError(f"Kafka {kafka_version} has no ZooKeeper mode (removed in 4.0)")
    if controller not in modes:
        raise ValueError(f"Kafka {kafka_version} has no KRaft mode (it came with 2.8)")
    flags = frozenset(b.flag for b in BOUNDARIES if _turned_on(b, version, spoken))
    possible = "eligible_leader_replicas_known" in flags and controller == "kraft"
    if eligible_leader_replicas and not possible:
        raise ValueError(
            "eligible leader replicas need Kafka 4.0, KRaft and metadata version 4.0-IV1"
        )
    if eligible_leader_replicas is None:
        eligible_leader_replicas = possible and version >= (4, 1)
    return Behaviour(
        kafka_version, inter_broker_version, controller, flags, eligible_leader_replicas
    )


@cache
def known_behaviour(
    kafka_version: str | None, inter_broker_version: str | None
) -> Behaviour | None:
    """The same of what evidence declares; None for an unknown version or a vendor's."""
    if kafka_version is None:
        return None
    try:
        return behaviour(kafka_version, inter_broker_version)
    except ValueError:
        return None


def with_remedy(known: Behaviour, flag: str) -> Behaviour:
    """The same behaviour with one of REMEDIES. ValueError, in words, for another name."""
    names = [b.flag for b in REMEDIES]
    if flag not in names:
        raise ValueError(f"{flag!r} is no remedy, expected one of {', '.join(names)}")
    return replace(known, flags=known.flags | {flag})


def _turned_on(
    boundary: Boundary, version: tuple[int, ...], spoken: tuple[int, ...] | None
) -> bool:
    """Whether the code has the boundary's change and the cluster speaks what it needs."""
    if not _reached(version, boundary.first_releases):
        return False
    if boundary.ended_by and _reached(version, boundary.ended_by):
        return False
    if boundary.inter_broker_version is None or spoken is None:
        return True
    return spoken >= parse_inter_broker_version(boundary.inter_broker_version)


@dataclass(frozen=True, slots=True)
class FlagRow:
    """One row of the flag table, as text for people: see flag_table."""

    flag: str
    since: str
    until: str
    inter_broker_version: str
    source: str
    means: str


def flag_table() -> list[FlagRow]:
    """Every flag in the order of its first release, for the command `versions`."""
    rows = sorted(BOUNDARIES, key=lambda b: parse_version(b.first_releases[-1]))
    return [
        FlagRow(
            b.flag,
            ", ".join(b.first_releases),
            ", ".join(b.ended_by),
            b.inter_broker_version or "",
            b.source,
            b.means,
        )
        for b in rows
    ]


def default_table() -> list[tuple[str, str]]:
    """Settings whose defaults the rules depend on, and their values by release."""
    return [
        ("replica.lag.time.max.ms", "10000 up to 2.4, 30000 from 2.5"),
        ("replica.lag.max.messages", "4000 up to 0.8.2, then gone"),
        ("unclean.leader.election.enable", "true up to 0.10.2, false from 0.11"),
        ("min.insync.replicas", str(DEFAULT_MIN_INSYNC_REPLICAS)),
        (
            "replica.high.watermark.checkpoint.interval.ms",
            str(HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS),
        ),
        (
            "log.flush.offset.checkpoint.interval.ms",
            str(RECOVERY_POINT_CHECKPOINT_INTERVAL_MS),
        ),
        (
            "log.flush.start.offset.checkpoint.interval.ms",
            f"{LOG_START_OFFSET_CHECKPOINT_INTERVAL_MS} (from 0.11)",
        ),
        ("producer acks", "1 up to 2.8, all from 3.0 (with idempotence)"),
    ]
