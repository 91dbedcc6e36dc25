"""What goes wrong in practice, told where it would: by release, mode and the evidence."""

from dataclasses import dataclass

from replication.decisions import reorder
from replication.decisions.candidates import Outlook, last_known
from replication.decisions.choosing import ELECT, Choice
from replication.protocol.ground.versions import parse_version

SETTING_IGNORED = "setting_ignored"
START_ELECTS = "start_elects"
UNCLEAN_IS_ON = "unclean_is_on"
FIRST_FETCH_CUTS = "first_fetch_cuts"
DEAD_BROKER_IN_LIST = "dead_broker_in_list"
CONTROLLERS_AMONG_THEM = "controllers_among_them"
METRIC_PROVES_NOTHING = "metric_proves_nothing"


@dataclass(frozen=True, slots=True)
class Trap:
    """One of them, by name, and what it says of this partition."""

    name: str
    text: str


def release_of(outlook: Outlook) -> tuple[int, ...] | None:
    """The release that the cluster runs, as numbers; None where nothing tells it."""
    version = outlook.state.settings.kafka_version
    return None if version is None else parse_version(version)


def mode_of(outlook: Outlook) -> str | None:
    """zookeeper or kraft; None where nothing tells it."""
    flags = outlook.state.behaviour()
    return outlook.state.settings.controller or (flags.controller if flags else None)


def traps(outlook: Outlook, choice: Choice) -> list[Trap]:
    """Those that this partition's plan may run into."""
    release, mode = release_of(outlook), mode_of(outlook)
    chosen = choice.replica
    found: list[Trap] = []
    if mode == "kraft" and release is not None and (3, 0) <= release < (3, 9):
        found.append(Trap(SETTING_IGNORED, (
            "Before 3.9 KRaft ignores unclean.leader.election.enable: setting it elects nobody, "
            "whatever the runbook says."
        )))  # fmt: skip
    last = last_known(outlook.state)
    if mode == "kraft" and last is not None and last != chosen:
        found.append(Trap(START_ELECTS, (
            f"Nobody is in the ISR and broker {last} is the last known leader: from 4.0 on its "
            f"mere start elects it, with what it has. Do not start broker {last} first"
            f"{'' if chosen is not None else ', unless it is to lead'}."
        )))  # fmt: skip
    if setting_is_heeded(release, mode) and unclean_is_on(outlook):
        told = outlook.state.settings.unclean_leader_election is not None
        here = "here" if told else "by the default of the release, if nobody changed that"
        found.append(Trap(UNCLEAN_IS_ON, (
            f"Unclean election is allowed {here}: of the replicas that are alive the first in the "
            "order of the assignment is elected by itself. Keep every replica stopped that is not "
            "to lead, and take the setting back afterwards: it elects again at the next crash."
        )))  # fmt: skip
    cut = _cut_under(outlook, choice)
    if cut:
        found.append(Trap(FIRST_FETCH_CUTS, (
            f"The first fetch after the election cuts {_brokers(cut)} within milliseconds. Copy "
            "the directories before, not after."
        )))  # fmt: skip
    down = [*(c.replica for c in outlook.candidates if not c.runs), *outlook.away]
    # Seen on brokers of 2.8.2 and 4.3.0; KRaft renames it since 3.7 (KAFKA-14616).
    gone = "it lies there of no use"
    if mode == "kraft" and (release is None or release >= (3, 7)):
        gone = "its name ends in -stray then"
    if choice.advice == ELECT and down:
        found.append(Trap(DEAD_BROKER_IN_LIST, (
            "Do not put the replica first by kafka-reassign-partitions: it refuses a list that "
            f"names a dead broker ({_brokers(down)}), and a list without it takes that "
            f"broker's copy out of the partition: once it is back {gone}, and where it runs by "
            "then the copy is deleted."
        ) + _reorder(outlook, choice, release)))  # fmt: skip
    if mode == "kraft" and choice.advice == ELECT and any(c.runs for c in outlook.candidates):
        found.append(Trap(CONTROLLERS_AMONG_THEM, (
            "Stop no broker that is a controller as well (process.roles=broker,controller) if that "
            "leaves no majority of the controllers: without one nobody is elected."
        )))  # fmt: skip
    if choice.advice == ELECT:
        found.append(Trap(METRIC_PROVES_NOTHING, (
            "UncleanLeaderElectionsPerSec confirms nothing: some releases count clean elections "
            "in it (KAFKA-19212). The check is the leader that kafka-topics prints."
        )))  # fmt: skip
    return found


def setting_is_heeded(release: tuple[int, ...] | None, mode: str | None) -> bool:
    """Whether the controller elects by unclean.leader.election.enable: KRaft from 3.9 on."""
    return mode != "kraft" or (release is not None and release >= (3, 9))


def _reorder(outlook: Outlook, choice: Choice, release: tuple[int, ...] | None) -> str:
    """What does it all the same, where others run that need not be stopped then."""
    others = any(c.runs for c in outlook.candidates if c.replica != choice.replica)
    if not others or (release is not None and release < reorder.SINCE):
        return ""
    state = outlook.state
    return (
        f" The admin API takes it with the dead one in the list: `{reorder.COMMAND} --topic "
        f"{state.topic} --partition {state.partition} --first {choice.replica} --execute`. Then "
        f"broker {choice.replica} is elected though the others run."
    )


def unclean_is_on(outlook: Outlook) -> bool:
    """Whether the topic allows unclean elections, by its setting or its release's default."""
    flags = outlook.state.behaviour()
    allowed = outlook.state.settings.unclean_leader_election
    return bool(flags and flags.unclean_leader_election) if allowed is None else allowed


def _cut_under(outlook: Outlook, choice: Choice) -> list[int]:
    chosen = next((c for c in outlook.candidates if c.replica == choice.replica), None)
    return [] if chosen is None else [x.replica for x in chosen.copies if x.cut and not x.diverging]


def _brokers(numbers: list[int]) -> str:
    told = ", ".join(map(str, sorted(numbers)))
    return f"broker{'' if len(numbers) == 1 else 's'} {told}"
