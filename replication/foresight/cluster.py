"""The settings of each partition of a cluster, by what was printed; partitions alike are one."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from replication.foresight.described import Described
from replication.foresight.settings import Settings
from replication.protocol.ground.versions import (
    DEFAULT_MIN_INSYNC_REPLICAS,
    behaviour,
    controllers_of,
    parse_version,
)

MOST_REPLICAS = 9
MIN_INSYNC, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
ELR_FEATURE = "eligible.leader.replicas.version"
# Of a topic, and of brokers.
_FLUSH = ("flush.messages", "log.flush.interval.messages")
# Which of ZooKeeper and KRaft, where a release has both: no setting of that name.
CONTROLLER = "controller"
# What a release has where nothing says otherwise, in the order in which it is told.
MAY_BE_DEFAULT = (CONTROLLER, ELR_FEATURE, UNCLEAN, MIN_INSYNC, _FLUSH[0])
NEVER_FLUSHED = "9223372036854775807"


Defaults = dict[str, frozenset[int]]


class Unusable(ValueError):
    """The call or the input is unusable; the text says what, where and what to do."""


class NoPartitions(Unusable):
    """Nothing that was handed over names partitions with their replicas."""


@dataclass(slots=True)
class Profile:
    """Partitions that live by the same settings. topics: their names, with how many partitions.
    defaults: what of MAY_BE_DEFAULT no file and no flag says of one of them, each with its brokers
    of which no file says it, where a file does of another broker, else with none. brokers_run: the
    releases that the brokers ran last, as far as the evidence tells."""

    settings: Settings
    topics: dict[str, int] = field(default_factory=dict)
    defaults: Defaults = field(default_factory=dict)
    brokers_run: list[str] = field(default_factory=list)

    def taken_by_default(self) -> dict[str, str]:
        """The settings of `defaults`, each with the value that was taken."""
        s = self.settings
        values = {
            CONTROLLER: s.controller,
            ELR_FEATURE: "1" if s.eligible else "0",
            UNCLEAN: "true" if s.unclean else "false",
            MIN_INSYNC: str(s.min_insync_replicas),
            _FLUSH[0]: NEVER_FLUSHED,
        }
        return {name: values[name] for name in MAY_BE_DEFAULT if name in self.defaults}


@dataclass(frozen=True, slots=True)
class Told:
    """What the call says where the files do not."""

    kafka: str | None = None
    controller: str | None = None
    eligible: bool | None = None


def profiles(found: Described, told: Told) -> list[Profile]:
    """Every profile of the partitions described. Raises Unusable."""
    release = release_of(found, told)
    return grouped(
        {
            (topic, partition): _settings(found, told, release, topic, partition, replicas)
            for (topic, partition), replicas in found.partitions.items()
        }
    )


def grouped(settings: dict[tuple[str, int], tuple[Settings, Defaults]]) -> list[Profile]:
    """Partitions of the same settings together, those of most topics first. settings: with what of
    them is a default."""
    result: dict[Settings, Profile] = {}
    for (topic, _), (of, defaults) in sorted(settings.items(), key=lambda item: item[0]):
        profile = result.setdefault(of, Profile(of))
        profile.topics[topic] = profile.topics.get(topic, 0) + 1
        for name, brokers in defaults.items():
            profile.defaults[name] = profile.defaults.get(name, frozenset()) | brokers
    return sorted(result.values(), key=lambda p: -len(p.topics))


def release_of(found: Described, told: Told) -> str:
    """The brokers' release: as told, else the one that the metadata version names."""
    spoken = found.features.get("metadata.version", "") or _of_brokers(
        found, "inter.broker.protocol.version"
    )
    release = told.kafka or spoken.split("-")[0]
    if not release:
        raise Unusable(
            "which release the brokers run is not in the files: say it by --kafka 3.9.1 "
            "(`kafka-topics --version` on a broker prints it), or hand over the output of "
            "`kafka-features --bootstrap-server B describe`"
        )
    try:
        parse_version(release)
    except ValueError as error:
        raise Unusable(str(error)) from None
    return release


def _settings(
    found: Described,
    told: Told,
    release: str,
    topic: str,
    partition: int,
    replicas: tuple[int, ...],
) -> tuple[Settings, Defaults]:
    """The settings of a partition, and which of them nothing says, as Profile.defaults."""
    where = f"{topic}-{partition}"
    if not 1 <= len(replicas) <= MOST_REPLICAS:
        raise Unusable(
            f"{where} has {len(replicas)} replicas: 1 to {MOST_REPLICAS} can be asked about"
        )
    controller, is_told = (
        (told.controller, True) if told.controller else _controller(found, release)
    )
    by_default = behaviour(release)
    unclean = _value(found, topic, replicas, (UNCLEAN, UNCLEAN))
    least = _value(found, topic, replicas, (MIN_INSYNC, MIN_INSYNC))
    flush = _value(found, topic, replicas, _FLUSH)
    if unclean not in (None, "true", "false"):
        raise Unusable(f"{where}: {UNCLEAN} is {unclean!r}, which is neither true nor false")
    settings = Settings(
        release,
        len(replicas),
        _number(where, MIN_INSYNC, least, DEFAULT_MIN_INSYNC_REPLICAS),
        by_default.unclean_leader_election if unclean is None else unclean == "true",
        controller,
        eligible=False,
        flushed=flush is not None and _number(where, _FLUSH[0], flush, 0) == 1,
        racks=_racks(found, replicas),
    )
    try:
        default = behaviour(release, controller=controller).eligible_leader_replicas
        eligible = _eligible(found, told, default)
        settings = settings.with_eligible(eligible)
        settings.behaviour  # noqa: B018
    except ValueError as error:
        raise Unusable(str(error)) from None
    said = {CONTROLLER: is_told, UNCLEAN: unclean, MIN_INSYNC: least, _FLUSH[0]: flush}
    names = {UNCLEAN: UNCLEAN, MIN_INSYNC: MIN_INSYNC, _FLUSH[0]: _FLUSH[1]}
    defaults = {
        name: _unsaid(found, replicas, names[name]) if name in names else frozenset[int]()
        for name, value in said.items()
        if value in (None, False)
    }
    if told.eligible is None and not found.features and may_be_eligible(settings):
        defaults[ELR_FEATURE] = frozenset()
    return settings, defaults


def may_be_eligible(settings: Settings) -> bool:
    """Whether a cluster of this release may keep eligible leader replicas at all."""
    try:
        settings.with_eligible(True).behaviour  # noqa: B018
    except ValueError:
        return False
    return True


def _eligible(found: Described, told: Told, default: bool) -> bool:
    if told.eligible is not None:
        return told.eligible
    if ELR_FEATURE in found.features:
        return found.features[ELR_FEATURE] not in ("0", "-")
    # kafka-features lists every feature that is finalized.
    return default and not found.features


def _controller(found: Described, release: str) -> tuple[str, bool]:
    """By server.properties; else KRaft where the release has it and nothing speaks of ZooKeeper.
    And whether it is so because something says it, or nothing else can be."""
    names = [name for values in _all_settings(found) for name, value in values.items() if value]
    modes = controllers_of(release)
    if "process.roles" in names and "kraft" in modes:
        return "kraft", True
    if "zookeeper.connect" in names and "zookeeper" in modes:
        return "zookeeper", True
    if "metadata.version" in found.features:
        return "kraft", True
    return modes[0], len(modes) == 1


def _all_settings(found: Described) -> Iterable[dict[str, str]]:
    return [*found.static.values(), *found.brokers.values(), found.of_all_brokers]


def _of_brokers(found: Described, name: str) -> str:
    return next((v[name] for v in _all_settings(found) if name in v), "")


def _value(
    found: Described, topic: str, replicas: tuple[int, ...], names: tuple[str, str]
) -> str | None:
    """A setting of a topic: its own, else the brokers', else None. Where brokers differ, the one
    that protects least counts: any of them may lead."""
    of_topic, of_broker = names
    if of_topic in found.topics.get(topic, {}):
        return found.topics[topic][of_topic]
    values = {_of_broker(found, broker, of_broker) for broker in replicas}
    if len(values) == 1:
        return values.pop()
    if of_topic == UNCLEAN:
        return "true" if "true" in values else None
    if None in values:
        return None
    weakest = max if of_topic == _FLUSH[0] else min
    return weakest(values, key=lambda v: (len(str(v)), str(v)))


def _of_broker(found: Described, broker: int, name: str) -> str | None:
    places = (
        found.brokers.get(broker, {}), found.of_all_brokers, found.static.get(broker, {}),
        found.static.get(None, {}),
    )  # fmt: skip
    return next((v[name] for v in places if name in v), None)


def _unsaid(found: Described, replicas: tuple[int, ...], name: str) -> frozenset[int]:
    """Of which of these brokers no file says a setting, where one does of another broker."""
    if not any(name in values for values in [*found.brokers.values(), *found.static.values()]):
        return frozenset()
    return frozenset(b for b in replicas if _of_broker(found, b, name) is None)


def _number(where: str, name: str, value: str | None, default: int) -> int:
    if value is None:
        return default
    if not value.isdecimal() or len(value) > 19:
        raise Unusable(f"{where}: {name} is {value!r}, which is no number")
    return int(value)


def _racks(found: Described, replicas: tuple[int, ...]) -> tuple[int, ...]:
    """The racks of an assignment by number, in the order in which they appear; () where the rack of
    any of these brokers is not known."""
    if any(broker not in found.racks for broker in replicas):
        return ()
    seen: dict[str, int] = {}
    return tuple(seen.setdefault(found.racks[broker], len(seen)) for broker in replicas)
