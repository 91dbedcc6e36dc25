"""A losing history as scenario text, with what the machine makes of it, and in words."""

from replication.foresight.failures import Failure
from replication.foresight.moves import Move, act
from replication.foresight.search import History
from replication.foresight.settings import Settings
from replication.foresight.worlds import (
    ACKS_1,
    KINDS,
    PROMISED,
    READ,
    Node,
    lost,
    names_of,
    start,
)
from replication.machine.scenario import run_scenario
from replication.machine.states import Record, valid_leader

WORDS = {
    "produce": "a client writes {1} to {0} ({acks})",
    "fetch": "{0} fetches from its leader",
    "isr": "{remove} lags, and the leader drops it from the ISR",
    "fence": "the controller notices that {0} is away",
    "unfence": "the controller counts {0} as alive again",
    "start": "{0} starts",
    "isolate": "{0} is cut off from the others and the controller",
    "rejoin": "{0} reaches the others again",
    "deliver": "{0} hears who the leader is",
    "drain": "{0} asks for its controlled shutdown",
    "stop": "{0} stops cleanly",
    "crash": "{0} crashes: {kind}",
    "elect": "{cause}",
    "consume": "a consumer reads {0} from offset {offset}",
}
KINDS_OF_CRASH = {
    "process": "its process ends, its disk keeps all",
    "power": "it loses power, its disk keeps what lies below offset {to}",
    "disk": "its disk is lost",
}
CAUSES = {
    "preferred": "the controller moves the leadership to the preferred replica",
    "unclean": "somebody forces an unclean election",
}


def drawn(settings: Settings, failure: Failure, history: History, kind: str) -> str:
    """The history as a scenario file that `replication-analyzer scenario` runs: its commands, and
    the logs after each."""
    lines = [[f"# Loses a record of the kind {kind}: {failure.sentence}."]]
    names = names_of(settings.replicas)
    lines[0] += [
        given(settings),
        *(
            f"{n}{'*' if place == history.leader else ' '} e0  |"
            for place, n in enumerate(names, 1)
        ),
        "----",
    ]
    for move in told(settings, failure, history, kind):
        lines.append([*(f"# {in_words(line)}" for line in move), *move, "----"])
    if kind in PROMISED:
        lines.append(["check", "----"])
    return run_scenario("\n\n".join("\n".join(stanza) for stanza in lines) + "\n")[1]


def given(settings: Settings) -> str:
    """The line that begins a scenario under these settings."""
    elr = ""
    if settings.controller == "kraft" and settings.behaviour.has("eligible_leader_replicas_known"):
        elr = f" elr={'on' if settings.eligible else 'off'}"
    spoken = settings.inter_broker_version
    return (
        f"given isr={','.join(names_of(settings.replicas))} kafka={settings.kafka_version}"
        + (f" inter_broker={spoken}" if spoken else "")
        + f" controller={settings.controller}{elr} unclean={'yes' if settings.unclean else 'no'}"
        f" min_insync_replicas={settings.min_insync_replicas}"
    )


def told(settings: Settings, failure: Failure, history: History, kind: str) -> list[Move]:
    """The moves as they are drawn: with a producer or a consumer of the kind."""
    if kind == ACKS_1:
        # A leader writes at acks=1 what it writes at acks=all, and answers for it at once.
        return [
            tuple(line.replace("acks=all", "acks=1") for line in move) for move in history.moves
        ]
    if kind != READ:
        return list(history.moves)
    nodes = replayed(settings, failure, history)
    record = lost_record(nodes[-1], READ)
    moves: list[Move] = []
    is_read = False
    for node, move in zip(nodes[1:], history.moves, strict=True):
        moves.append(move)
        if not is_read and record in node.promised[KINDS.index(READ)]:
            moves.append((f"consume {_shown_by(node, record)} offset={record[0]}",))
            is_read = True
    return moves


def _shown_by(node: Node, record: Record) -> str:
    """The leader that shows a record to consumers."""
    offset, leader_epoch, content = record
    for b in node.world.brokers.values():
        holds = node.logs[b.replica].get(offset) == (leader_epoch, content)
        if b.role == "leader" and b.running and holds and b.high_watermark > offset:
            return node.world.name(b.replica)
    raise AssertionError(record)


def replayed(settings: Settings, failure: Failure, history: History) -> list[Node]:
    """Every state of a history, the first and the last among them."""
    nodes = [start(settings, failure, 9, history.leader)]
    for move in history.moves:
        then = act(nodes[-1], move, "")
        assert then is not None, move
        nodes.append(then)
    return nodes


def lost_record(node: Node, kind: str) -> Record:
    """A record of the kind that the leader lacks."""
    leader = valid_leader(node.world)
    assert leader is not None
    assert kind in lost(node)
    log = node.logs[leader.replica]
    records = node.promised[KINDS.index(kind)]
    return next((o, e, x) for o, e, x in sorted(records) if log.get(o) != (e, x))


def in_words(line: str) -> str:
    """One command of a history for people."""
    verb, *rest = line.split()
    at = dict(word.split("=", 1) for word in rest if "=" in word)
    values = {**at}
    if "acks" in at:
        values["acks"] = f"acks={at['acks']}"
    if verb == "crash":
        values["kind"] = KINDS_OF_CRASH[at["kind"]].format(**at)
    if verb == "elect":
        values["cause"] = CAUSES[at["cause"]]
    words = WORDS[verb].format(*rest, **values)
    if "directory" in at:
        words += ", and somebody deletes the partition's directory"
    return words
