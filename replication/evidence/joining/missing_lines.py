"""How it shows that lines of a broker are missing: of what it did, by all else, none tells."""

from collections.abc import Collection, Iterator, Sequence

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.partition_evidence import PartitionEvidence
from replication.protocol.ground.events import LeadershipRecorded

_AS_LEADER = ("became_leader", "leader_and_isr_received")
_AS_FOLLOWER = ("became_follower", "leader_and_isr_received")
_ROLES = frozenset((*_AS_LEADER, *_AS_FOLLOWER))
# What only the first line about a replica's log tells.
_AT_FIRST = ("log_created",)
_OPENED = ("log_created", "log_loaded")
# Within so long after it a broker has taken its role, ms.
_AT_ONCE = 60_000


UNREAD_LINES = "some of its lines cannot be read"
UNTOLD_STOP = "a copy is of a clean stop of which none of its lines tells"


def is_covered(evidence: PartitionEvidence, broker: int) -> bool:
    """Whether a broker's lines are here from a start on, and nothing shows that any are missing."""
    begins = any(f.kind == "process_started" for f in evidence.lines.get(broker, ()))
    return begins and what_is_unsure(evidence, broker) is None


def what_is_unsure(evidence: PartitionEvidence, broker: int) -> str | None:
    """Why not all lines of a broker may be here, or read aright; None where nothing shows it."""
    unsure = evidence.unsure_lines.get(broker)
    if unsure is None and broker in evidence.damaged_lines:
        unsure = UNREAD_LINES
    if unsure is None and any(c.broker == broker and _is_untold(c) for c in evidence.copies):
        unsure = UNTOLD_STOP
    return unsure or missing_lines(evidence, broker)


def _is_untold(copy: Copy) -> bool:
    """Whether a copy is of a clean stop that the lines do not tell: see placement.py."""
    return copy.clean and not copy.order_known


def missing_lines(evidence: PartitionEvidence, broker: int) -> str | None:
    """What shows that lines of a broker are missing; None where nothing does."""
    changed = _changed_unseen(evidence, broker)
    if changed:
        return f"it changed the ISR in leader epoch {changed[0]}, of which no line of its tells"
    led = _led_unseen(evidence, broker)
    if led:
        return f"it led in leader epoch {led[0]}, of which no line of its tells"
    followed = _followed_unseen(evidence, broker)
    if followed is not None:
        return f"its log knows of leader epoch {followed}, and its lines name none so high"
    untold = _followed_untold(evidence, broker)
    if untold is not None:
        return f"it followed in leader epoch {untold}, and its lines tell of its leaderships alone"
    if _is_without_a_role(evidence, broker):
        return "it opened the log, and no line of its tells whether it led or followed then"
    return None


def remembered(evidence: PartitionEvidence) -> Iterator[LeadershipRecorded]:
    """What the controllers recorded of epochs whose lines are not forgotten."""
    facts = (record.fact for record in evidence.recorded)
    return (fact for fact in facts if fact.leader_epoch >= evidence.settled_below)


def _changed_unseen(evidence: PartitionEvidence, broker: int) -> list[int]:
    """Leader epochs in which the broker changed the ISR, and that none of its lines names, though
    they name a later one: of those in between some are missing.

    With ZooKeeper only the leader changes the ISR within an epoch (Partition.updateIsr): whatever
    the controller changes raises the epoch.
    """
    if evidence.described.controller != "zookeeper":
        return []
    named = set(_named(evidence, broker))
    versions: dict[int, set[int]] = {}
    for fact in remembered(evidence):
        if fact.leader == broker and fact.partition_epoch is not None:
            # A topic is created with version 0.
            first = {0} if fact.leader_epoch == 0 else set[int]()
            versions.setdefault(fact.leader_epoch, first).add(fact.partition_epoch)
    last = max(named, default=-1)
    return sorted(e for e, v in versions.items() if len(v) > 1 and e < last and e not in named)


def _led_unseen(evidence: PartitionEvidence, broker: int) -> list[int]:
    """Leader epochs in which it led, for some log knows of them, and that none of its lines names;
    or that it was to lead in before its lines tell of a role; all, where they tell of none."""
    recorded: dict[int, set[int | None]] = {}
    for fact in remembered(evidence):
        recorded.setdefault(fact.leader_epoch, set()).add(fact.leader)
    own = {e for e, leaders in recorded.items() if leaders - {None} == {broker}}
    led = own & {e for copy in evidence.copies for e in _known_to(copy)}
    lines = evidence.lines.get(broker, [])
    roles = set(_named(evidence, broker, _ROLES))
    if not roles:
        return sorted(own)
    if not _begin_with_its_log(lines):
        led |= {e for e in own if e < min(roles)}
    return sorted(led - set(_named(evidence, broker, _AS_LEADER)))


def _begin_with_its_log(lines: Sequence[LogLineFact]) -> bool:
    """Whether lines tell of a role from when the replica's log was made: that is for a role, and of
    another file than the lines of roles."""
    made = [line.at for line in lines if line.kind in _AT_FIRST]
    roles = [line.at for line in lines if line.kind in _ROLES]
    if not made or None in made or None in roles:
        return bool(made)
    return any(abs((at or 0) - (role or 0)) < _AT_ONCE for at in made for role in roles)


def _followed_unseen(evidence: PartitionEvidence, broker: int) -> int | None:
    """The last leader epoch that its log knows of, where its lines name none so high, though they
    would: of a release that tells of each leader that it follows."""
    known = [e for c in evidence.copies if c.broker == broker for e in _known_to(c)]
    known = [e for e in known if e >= evidence.settled_below]
    named = list(_named(evidence, broker))
    tells = evidence.described.controller == "kraft" or any(
        line.kind in _AS_FOLLOWER for line in evidence.lines.get(broker, ())
    )
    last = max(known, default=-1)
    return last if tells and last > max(named, default=-1) else None


def _followed_untold(evidence: PartitionEvidence, broker: int) -> int | None:
    """The last leader epoch that its log knows of without having led in it, or in whose ISR it was
    beside another leader, where its lines tell of leaderships and of nothing that it followed: up
    to 2.5 that is in another file."""
    kinds = {line.kind for line in evidence.lines.get(broker, ())}
    if evidence.described.controller != "zookeeper" or "became_leader" not in kinds:
        return None
    if kinds.intersection(_AS_FOLLOWER):
        return None
    known = {e for c in evidence.copies if c.broker == broker for e in _known_to(c)}
    for fact in remembered(evidence):
        if fact.leader not in (None, broker) and broker in (fact.isr or ()):
            known.add(fact.leader_epoch)
    led = set(_named(evidence, broker, _AS_LEADER))
    return max((e for e in known - led if e >= evidence.settled_below), default=None)


def _is_without_a_role(evidence: PartitionEvidence, broker: int) -> bool:
    """Whether no line tells that it led or followed, though it opened the log; or its log is seen
    to grow before one does: these lines are in another file (state-change.log)."""
    first: int | None = None
    opened = False
    for line in evidence.lines.get(broker, ()):
        end = 0 if line.kind in _AT_FIRST else line.fields.get("log_end_offset")
        first = end if first is None else first
        if first is not None and isinstance(end, int) and end > first:
            return True
        if line.kind in _ROLES:
            return False
        opened |= line.kind in _OPENED
    return opened


def _named(
    evidence: PartitionEvidence, broker: int, kinds: Collection[str] | None = None
) -> Iterator[int]:
    """The leader epochs that its lines name, of these kinds or any."""
    for line in evidence.lines.get(broker, ()):
        leader_epoch = line.fields.get("leader_epoch")
        if isinstance(leader_epoch, int) and (kinds is None or line.kind in kinds):
            yield leader_epoch


def _known_to(copy: Copy) -> Iterator[int]:
    """The leader epochs that a copy of a log shows."""
    yield from (span[0] for span in copy.directory.spans if span[0] is not None)
    yield from (leader_epoch for leader_epoch, _ in copy.directory.epoch_entries or ())
