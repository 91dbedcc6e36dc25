"""The commands of a plan, as data: by action, release and mode, each with its check and its undo.

`B` is a bootstrap server, `Z` a ZooKeeper connection string; {topic}, {partition}, {broker},
{directory} and {offset} are filled in. Sources are the command classes of Kafka's releases.
"""

from dataclasses import dataclass

from replication.decisions.tried import TRIED

ZOOKEEPER, KRAFT = "zookeeper", "kraft"
BOTH = (ZOOKEEPER, KRAFT)
# A release as numbers.
Release = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One action in some releases of some modes.

    since, until: releases, the second one excluded. command: None where no command line does it;
    then `note` says what does. at_broker: it has to run on the broker's own machine. check: a
    command, prints: what it must print, in words; shows: an extended regular expression that some
    line of that matches; hides: one that no line may match. within: for how many seconds to ask
    again until it prints that, on a machine that is slow; 0: the first answer counts. undo: how to
    take it back; None: it cannot be. sets_only: the command elects nobody before the next start of
    a broker.
    """

    action: str
    since: Release
    until: Release | None
    modes: tuple[str, ...]
    command: str | None
    check: str
    prints: str
    undo: str | None
    note: str = ""
    source: str = ""
    shows: str = ""
    hides: str | None = None
    within: int = 120
    at_broker: bool = False
    sets_only: bool = False

    @property
    def tried(self) -> tuple[str, ...]:
        """On brokers of which releases and modes the command did what `check` says."""
        return TRIED.get(self.key, ())

    @property
    def key(self) -> str:
        """What names it in the record of what was tried."""
        return f"{self.action} {'.'.join(map(str, self.since))} {'+'.join(self.modes)}"


_DESCRIBE_Z = "kafka-topics.sh --zookeeper Z --describe --topic {topic}"
_DESCRIBE_B = "kafka-topics.sh --bootstrap-server B --describe --topic {topic}"
_LEADS = "Partition: {partition} with Leader: {broker}"
_IS_LED = r"Partition: {partition}\s+Leader: {broker}\s"
_FOLLOWS = "Partition: {partition} with {broker} in Isr, once it has caught up"
_IN_ISR = r"Partition: {partition}\s.*Isr: ([0-9]+,)*{broker}(,|\s|$)"
_SET_Z = (
    "kafka-configs.sh --zookeeper Z --alter --entity-type topics --entity-name {topic} "
    "--{how}-config unclean.leader.election.enable{value}"
)
_ON_Z = _SET_Z.replace("{how}", "add").replace("{value}", "=true")
_OFF_Z = _SET_Z.replace("{how}", "delete").replace("{value}", "")
_ON_B = _ON_Z.replace("--zookeeper Z", "--bootstrap-server B")
_OFF_B = _OFF_Z.replace("--zookeeper Z", "--bootstrap-server B")
_ELECTED = (
    "kafka-leader-election.sh --bootstrap-server B --election-type {kind} --topic {topic} "
    "--partition {partition}"
)
_UNCLEAN = _ELECTED.replace("{kind}", "unclean")
_PREFERRED = _ELECTED.replace("{kind}", "preferred")
# {{ and }} are braces once the names are filled in.
_PREFERRED_Z = (
    """echo '{{"partitions":[{{"topic":"{topic}","partition":{partition}}}]}}' > FILE && """
    "kafka-preferred-replica-election.sh --zookeeper Z --path-to-json-file FILE"
)
_START = "kafka-server-start.sh -daemon CONFIG"
_STOP = "kafka-server-stop.sh"
_CONTROLLER = "kafka-server-start.sh -daemon CONTROLLER_CONFIG"
_COMBINED = (
    "leave it out where all run, and where the brokers are the controllers "
    "(process.roles=broker,controller): then nobody is elected before a majority of them runs"
)
_SEGMENTS = "$(ls SAFE/broker-{broker}/{topic}-{partition}/*.log | paste -s -d,)"
_READS = "nothing to undo: it only reads"
_UNAVAILABLE = "Topic: {topic} Partition: {partition} among others; else it has a leader: stop here"
_IS_UNAVAILABLE = r"Topic: {topic}\s+Partition: {partition}\s"
_NAMED = "the offsets named"
_IS_NAMED = r"offset: {offset}(\s|$)"
# What is printed by a tool that cannot run, or reach anything, is neither of these.
_SAME = "^same$"
_LISTS_ITSELF = r"\bJps$"
_RUNS = r"\bKafka$"
_HAS_TOPIC = r"Topic: ?{topic}\s"
# A broker that has records to recover or to fetch takes its time.
_STARTS, _CATCHES_UP = 300, 900
_IDS_Z = "zookeeper-shell.sh Z ls /brokers/ids"
_IDS_B = "kafka-broker-api-versions.sh --bootstrap-server B"
_IS_ON = r"unclean\.leader\.election\.enable=true"

PUT_BACK, MOVE_AWAY = "put_back", "move_away"
COPY, DUMP, STOP, START, FOLLOW = "copy", "dump", "stop", "start", "start_to_follow"
LEAD, LEAD_UNCLEANLY = "start_to_lead", "start_to_lead_uncleanly"
ELECT, PREFER, UNCLEAN_OFF, LEADERLESS = "elect_uncleanly", "prefer", "unclean_off", "leaderless"
CONTROLLERS = "start_controllers"

ROWS = (
    Row(COPY, (0, 8), None, BOTH,
        "mkdir -p SAFE/broker-{broker} && cp -a {directory} SAFE/broker-{broker}/",
        "diff -r {directory} SAFE/broker-{broker}/{topic}-{partition} && echo same", "same",
        "rm -r SAFE/broker-{broker}/{topic}-{partition}",
        "at best while the broker is stopped; with all directories of the partition beside it "
        "whose names end in -delete, -stray or -future", shows=_SAME, within=0, at_broker=True),
    Row(PUT_BACK, (0, 8), None, BOTH,
        "mv {directory} SAFE/broker-{broker}/{topic}-{partition}-as-found && "
        "cp -a OLDER/{topic}-{partition} {directory}",
        "diff -r OLDER/{topic}-{partition} {directory} && echo same", "same",
        "rm -r {directory} && mv SAFE/broker-{broker}/{topic}-{partition}-as-found {directory}",
        "OLDER is the folder that has the older copy; the copy's name and owner have to be those "
        "of the directory that it takes the place of", shows=_SAME, within=0, at_broker=True),
    Row(MOVE_AWAY, (0, 8), None, BOTH,
        "mv {directory} SAFE/broker-{broker}/{topic}-{partition}-moved",
        "test ! -e {directory} && test -d SAFE/broker-{broker}/{topic}-{partition}-moved "
        "&& echo moved", "moved",
        "mv SAFE/broker-{broker}/{topic}-{partition}-moved {directory}",
        "while the broker is stopped; it makes the directory anew when it starts, unless one of "
        "its log.dirs is offline, and fetches the whole partition", shows="^moved$", within=0,
        at_broker=True),
    Row(DUMP, (0, 8), (2, 0), (ZOOKEEPER,),
        "kafka-run-class.sh kafka.tools.DumpLogSegments --deep-iteration --files " + _SEGMENTS,
        "the same command", _NAMED, _READS, shows=_IS_NAMED, within=0, at_broker=True),
    Row(DUMP, (2, 0), None, BOTH,
        "kafka-dump-log.sh --deep-iteration --files " + _SEGMENTS,
        "the same command", _NAMED, _READS, source="kafka.tools.DumpLogSegments",
        shows=_IS_NAMED, within=0, at_broker=True),
    Row(STOP, (0, 8), None, BOTH, _STOP, "jps", "Jps, and no Kafka", _START,
        "until it is started again the partitions that it leads have other leaders, or none",
        shows=_LISTS_ITSELF, hides="Kafka", within=_STARTS, at_broker=True),
    Row(CONTROLLERS, (2, 8), (3, 7), (KRAFT,), _CONTROLLER, "jps", "Kafka", _STOP,
        "on the machine of each controller that is down; " + _COMBINED, shows=_RUNS,
        within=_STARTS),
    Row(CONTROLLERS, (3, 7), None, (KRAFT,), _CONTROLLER,
        "kafka-metadata-quorum.sh --bootstrap-controller C describe --status",
        "LeaderId with the number of a controller", _STOP,
        "on the machine of each controller that is down; C is one of them, host:port; "
        + _COMBINED, "KIP-919", shows=r"LeaderId:\s+[0-9]", within=_STARTS),
    # Before 2.1 no plan has a plain start: the setting is on by then, and the start elects.
    Row(START, (2, 1), (2, 2), (ZOOKEEPER,), _START, _IDS_Z, "{broker} among the brokers", _STOP,
        shows=r"[\[ ]{broker}[\],]", within=_STARTS, at_broker=True),
    Row(START, (2, 2), None, BOTH, _START, _IDS_B, "a line with id: {broker}", _STOP,
        shows=r"id: {broker}\s", within=_STARTS, at_broker=True),
    Row(FOLLOW, (0, 8), (2, 2), (ZOOKEEPER,), _START, _DESCRIBE_Z, _FOLLOWS, _STOP,
        shows=_IN_ISR, within=_CATCHES_UP, at_broker=True),
    Row(FOLLOW, (2, 2), None, BOTH, _START, _DESCRIBE_B, _FOLLOWS, _STOP,
        shows=_IN_ISR, within=_CATCHES_UP, at_broker=True),
    Row(LEAD, (0, 8), (2, 2), (ZOOKEEPER,), _START, _DESCRIBE_Z, _LEADS, None,
        "a member of the ISR that is back is elected by itself", shows=_IS_LED,
        within=_STARTS, at_broker=True),
    Row(LEAD, (2, 2), None, BOTH, _START, _DESCRIBE_B, _LEADS, None,
        "a member of the ISR, or an eligible leader replica, that is back is elected by itself; "
        "where there is none, the last known leader is",
        shows=_IS_LED, within=_STARTS, at_broker=True),
    Row(LEAD_UNCLEANLY, (0, 8), (2, 1), (ZOOKEEPER,), _START, _DESCRIBE_Z, _LEADS, None,
        "with the setting on, the replica that starts first is elected", shows=_IS_LED,
        within=_STARTS, at_broker=True),
    Row(LEADERLESS, (0, 8), (2, 2), (ZOOKEEPER,),
        "kafka-topics.sh --zookeeper Z --describe --unavailable-partitions",
        "the same command", _UNAVAILABLE, _READS, shows=_IS_UNAVAILABLE),
    Row(LEADERLESS, (2, 2), None, BOTH,
        "kafka-topics.sh --bootstrap-server B --describe --unavailable-partitions",
        "the same command", _UNAVAILABLE, _READS, source="kafka.admin.TopicCommand",
        shows=_IS_UNAVAILABLE),
    Row(ELECT, (0, 8), (2, 1), (ZOOKEEPER,), _ON_Z, _DESCRIBE_Z,
        "unclean.leader.election.enable=true in Configs", _OFF_Z,
        "it acts at the next change of controller, or at the next start of a broker, only",
        shows=_IS_ON, sets_only=True),
    Row(ELECT, (2, 1), (2, 4), (ZOOKEEPER,), _ON_Z, _DESCRIBE_Z, _LEADS, None,
        "it acts at once, and again at each later crash until it is taken back", "KAFKA-6526",
        shows=_IS_LED),
    Row(ELECT, (2, 4), None, (ZOOKEEPER,), _UNCLEAN, _DESCRIBE_B, _LEADS, None,
        "once, for this partition alone; no setting is left on", "KIP-460", shows=_IS_LED),
    Row(ELECT, (2, 8), (3, 1), (KRAFT,), None, _DESCRIBE_B, _LEADS, None,
        "no command line elects uncleanly with KRaft before 3.1: bring a member of the ISR back",
        "KAFKA-12670", shows=_IS_LED),
    Row(ELECT, (3, 1), None, (KRAFT,), _UNCLEAN, _DESCRIBE_B, _LEADS, None,
        "once, for this partition alone; no setting is left on", "KIP-460", shows=_IS_LED),
    Row(PREFER, (0, 8), (2, 4), (ZOOKEEPER,), _PREFERRED_Z,
        _DESCRIBE_Z, _LEADS, "the same with the former leader first in the assignment",
        shows=_IS_LED),
    Row(PREFER, (2, 4), None, BOTH, _PREFERRED, _DESCRIBE_B, _LEADS,
        "the same with the former leader first in the assignment", source="KIP-460",
        shows=_IS_LED),
    Row(UNCLEAN_OFF, (0, 8), (2, 5), (ZOOKEEPER,), _OFF_Z, _DESCRIBE_Z,
        "no unclean.leader.election.enable=true in Configs", _ON_Z, shows=_HAS_TOPIC,
        hides=_IS_ON),
    Row(UNCLEAN_OFF, (2, 5), None, BOTH, _OFF_B, _DESCRIBE_B,
        "no unclean.leader.election.enable=true in Configs", _ON_B, shows=_HAS_TOPIC,
        hides=_IS_ON),
)  # fmt: skip


def row_of(action: str, release: Release | None, mode: str | None) -> Row | None:
    """The row of an action for a release and a mode; the newest release's where it is not known,
    with the mode that it has. None where the table has none."""
    at = release or (99,)
    for row in ROWS:
        in_time = row.since <= at and (row.until is None or at < row.until)
        if row.action == action and in_time and (mode is None or mode in row.modes):
            return row
    return None
