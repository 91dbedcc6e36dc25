"""What might have been otherwise, as `--set` says it."""

import re
from dataclasses import dataclass, field, replace

from replication.foresight.retelling import Otherwise
from replication.foresight.script import CannotTell, Registered, Script, Write
from replication.foresight.telling import World
from replication.protocol.ground.events import UNCLEAN_KINDS
from replication.protocol.ground.versions import behaviour, controllers_of

MOST_REPLICAS = 7
NAMES = (
    "kafka", "controller", "min.insync.replicas", "unclean.leader.election.enable",
    "eligible.leader.replicas.version", "acks", "flush.messages", "replication.factor",
    "restart.BROKER", "election.EPOCH",
)  # fmt: skip
_ALLOWED = {
    "controller": ("zookeeper", "kraft"),
    "unclean.leader.election.enable": ("true", "false"),
    "eligible.leader.replicas.version": ("0", "1"),
    "acks": ("1", "all"),
    "flush.messages": ("1",),
}
_NUMBERS = ("min.insync.replicas", "replication.factor")


@dataclass(frozen=True, slots=True)
class Intervention:
    """What is different, together. text: as it was said; values: by name; not_restarted: brokers;
    not_forced: leader epochs."""

    text: str
    values: dict[str, str] = field(default_factory=dict)
    not_restarted: frozenset[int] = frozenset()
    not_forced: frozenset[int] = frozenset()


def parsed(text: str) -> Intervention:
    """One `--set`: NAME=VALUE, several parted by commas. ValueError, in words, for what is none."""
    found = Intervention(text)
    for piece in text.split(","):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals or not value:
            raise ValueError(f"--set {text}: expected NAME=VALUE, found {piece.strip()!r}")
        found = _with(found, name, value)
    return found


def _with(found: Intervention, name: str, value: str) -> Intervention:
    numbered = re.fullmatch(r"(restart|election)\.(\d{1,9})", name, re.ASCII)
    if numbered:
        if value != "no":
            raise ValueError(f"--set {name}={value}: only {name}=no can be asked about")
        number = frozenset([int(numbered[2])])
        if numbered[1] == "restart":
            return replace(found, not_restarted=found.not_restarted | number)
        return replace(found, not_forced=found.not_forced | number)
    if name not in NAMES or name.split(".")[-1].isupper():
        raise ValueError(f"--set {name}: expected one of {', '.join(NAMES)}")
    if name in _ALLOWED and value not in _ALLOWED[name]:
        raise ValueError(f"--set {name}={value}: expected {' or '.join(_ALLOWED[name])}")
    if name in _NUMBERS and not re.fullmatch(r"[1-9]\d?", value, re.ASCII):
        raise ValueError(f"--set {name}={value}: expected a number from 1 to 99")
    return replace(found, values={**found.values, name: value})


def as_it_was(script: Script) -> World:
    """The settings of the evidence. Raises CannotTell."""
    try:
        known = behaviour(
            script.kafka_version,
            script.inter_broker_version,
            controller=script.controller,
            eligible_leader_replicas=script.eligible,
        )
    except ValueError as error:
        raise CannotTell(str(error)) from None
    return World(known, script.replicas, script.min_insync_replicas, script.unclean)


def otherwise(script: Script, intervention: Intervention) -> Otherwise:
    """The settings of an intervention. Raises CannotTell for a combination that does not exist."""
    values = intervention.values
    release = values.get("kafka", script.kafka_version)
    spoken = None if "kafka" in values else script.inter_broker_version
    eligible = values.get("eligible.leader.replicas.version")
    try:
        modes = controllers_of(release)
        kept = script.controller if script.controller in modes else modes[0]
        controller = values.get("controller", kept)
        same = release == script.kafka_version
        default = script.eligible if same and controller == script.controller else None
        known = behaviour(
            release,
            spoken,
            controller=controller,
            eligible_leader_replicas=default if eligible is None else eligible == "1",
        )
    except ValueError as error:
        raise CannotTell(f"{intervention.text}: {error}") from None
    unclean = values.get("unclean.leader.election.enable")
    world = World(
        known,
        _replicas(script, values),
        int(values.get("min.insync.replicas", script.min_insync_replicas)),
        script.unclean if unclean is None else unclean == "true",
        values.get("acks"),
        "flush.messages" in values,
    )
    strangers = sorted(intervention.not_restarted - set(script.replicas))
    if strangers:
        raise CannotTell(f"{intervention.text}: broker {strangers[0]} has no replica here")
    _forced_at_all(script, intervention)
    return Otherwise(world, intervention.not_restarted, intervention.not_forced)


def is_as_it_was(script: Script, intervention: Intervention) -> bool:
    """Whether an intervention changes nothing: all that it names was so. Raises CannotTell."""
    told = otherwise(script, intervention)
    asked = {step.acks for step, _ in script.steps if isinstance(step, Write)} - {None}
    same = told.world.acks is None or asked <= {told.world.acks}
    world = replace(told.world, acks=None)
    left_out = told.not_restarted or told.not_forced
    return same and not left_out and world == as_it_was(script)


def _forced_at_all(script: Script, intervention: Intervention) -> None:
    """Raises CannotTell where an election that is to be left out was none that somebody forced."""
    unclean = {
        step.leader_epoch
        for step, _ in script.steps
        if isinstance(step, Registered) and step.kind in UNCLEAN_KINDS
    }
    for leader_epoch in sorted(intervention.not_forced):
        if leader_epoch not in unclean:
            raise CannotTell(
                f"election.{leader_epoch}: nothing tells of an unclean election of that epoch"
            )
        if script.unclean:
            raise CannotTell(
                f"election.{leader_epoch}: nobody forced it, the setting did: ask by "
                "unclean.leader.election.enable=false"
            )


def _replicas(script: Script, values: dict[str, str]) -> tuple[int, ...]:
    """With as many more brokers as a larger replication factor takes; they never fail."""
    wanted = int(values.get("replication.factor", len(script.replicas)))
    if wanted < len(script.replicas) or wanted > MOST_REPLICAS:
        raise CannotTell(
            f"replication.factor={wanted}: {len(script.replicas)} to {MOST_REPLICAS} can be asked "
            "about"
        )
    more = wanted - len(script.replicas)
    first = max(script.replicas) + 1
    return (*script.replicas, *range(first, first + more))
