"""The promises of docs/protocol_releases.md 5, each a question to a small world or to its steps.

SAID is what it says of each release in clean operation (no unclean election, storage lost on at
most min.insync.replicas - 1 members); EXPLAINED is why exploring differs from it.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from replication.machine.machine_state import Broker, World
from replication.machine.states import Logs, Record, copied, logs_of, valid_leader
from tests.protocol.world_states import Node

GENERATIONS = (
    "0.10.2.2", "1.1.1", "2.0.0", "2.0.1", "2.1.0", "2.4.1", "2.6.1", "2.8.0", "2.8.1", "3.5.1",
    "3.7.0", "4.1.0",
)  # fmt: skip


def committed_prefixes_agree(node: Node) -> bool:
    """Below both high watermarks two replicas hold the same records; a zombie's does not count."""
    world = node.machine.world
    leader = valid_leader(world)
    marks = {
        r: b.high_watermark
        for r, b in world.brokers.items()
        if b.running and (b.role == "follower" or b is leader)
    }
    return all(
        _agree(node.logs[a], node.logs[b], min(marks[a], marks[b]))
        for a, b in itertools.combinations(marks, 2)
    )


def _agree(a: dict[int, tuple[int, int]], b: dict[int, tuple[int, int]], below: int) -> bool:
    return all(a[o] == b[o] for o in a.keys() & b.keys() if o < below)


def epoch_and_offset_name_a_record(node: Node) -> bool:
    """One offset and leader epoch in two logs: the same record, and equal logs below it."""
    for a, b in itertools.combinations(node.logs.values(), 2):
        shared = sorted(a.keys() & b.keys(), reverse=True)
        top = next((o for o in shared if a[o][0] == b[o][0] >= 0), None)
        if top is not None and not _agree(a, b, top + 1):
            return False
    return True


def leader_high_watermark_monotonic(before: Node, after: Node) -> bool:
    for b in after.machine.world.brokers.values():
        old = before.machine.world.brokers[b.replica]
        if _leads_on(old, b) and b.high_watermark < old.high_watermark:
            return False
    return True


def _leads_on(old: Broker, new: Broker) -> bool:
    """Within one leadership: a restart begins another."""
    same = new.role == old.role == "leader" and new.leader_epoch == old.leader_epoch
    return same and new.broker_epoch == old.broker_epoch


def high_watermark_within_log(node: Node) -> bool:
    brokers = node.machine.world.brokers.values()
    return all(b.high_watermark <= b.log.log_end_offset for b in brokers if b.running)


def log_start_within_high_watermark(node: Node) -> bool:
    brokers = node.machine.world.brokers.values()
    return all(b.log.log_start_offset <= b.high_watermark for b in brokers if b.running)


def isr_reaches_high_watermark(node: Node) -> bool:
    """In a leader's view; of a member that it has not heard of yet it has none."""
    for leader in node.machine.world.brokers.values():
        if leader.role != "leader":
            continue
        for replica in (leader.isr | (leader.proposed or frozenset())) - {leader.replica}:
            known = leader.followers[replica].log_end_offset
            if known is not None and known < leader.high_watermark:
                return False
    return True


def epochs_rise_along_a_log(node: Node) -> bool:
    for log in node.logs.values():
        epochs = [log[o][0] for o in sorted(log)]
        if any(a > b for a, b in itertools.pairwise(epochs)):
            return False
    return True


def epoch_cache_rises(node: Node) -> bool:
    """Strictly in both columns, and within the log."""
    for b in node.machine.world.brokers.values():
        for a, c in itertools.pairwise(b.epoch_entries):
            if a.leader_epoch >= c.leader_epoch or a.start_offset >= c.start_offset:
                return False
        last = b.epoch_entries[-1].start_offset if b.epoch_entries else 0
        if b.running and last > b.log.log_end_offset:
            return False
    return True


def committed_records_survive(node: Node) -> bool:
    """The leader that the controller names has every record committed before."""
    return _has_all(node, node.committed)


def acknowledged_records_survive(node: Node) -> bool:
    """The same for what was acknowledged with acks=all."""
    return _has_all(node, node.acknowledged)


def reads_stay_true(node: Node) -> bool:
    """No leader shows another record where a consumer has read one."""
    leader = valid_leader(node.machine.world)
    if leader is None:
        return True
    log = node.logs[leader.replica]
    return all(log.get(o, (e, x)) == (e, x) for o, e, x in node.read if o < leader.high_watermark)


def _has_all(node: Node, records: frozenset[Record]) -> bool:
    leader = valid_leader(node.machine.world)
    if leader is None:
        return True
    log, begins = node.logs[leader.replica], leader.log.log_start_offset
    return all(log.get(o) == (e, x) for o, e, x in records if o >= begins)


def leader_in_isr(node: Node) -> bool:
    c = node.machine.world.controller
    return c.leader is None or c.leader in c.isr


def eligible_replicas_are_outside(node: Node) -> bool:
    """Eligible leader replicas are no members of the ISR, and none are kept at min.insync."""
    world = node.machine.world
    c = world.controller
    least = min(world.min_insync_replicas, len(world.assigned_replicas))
    return not (c.eligible & set(c.isr)) and not (c.eligible and len(c.isr) >= least)


def high_watermark_waits_for_min_insync(before: Node, after: Node) -> bool:
    world = after.machine.world
    least = min(world.min_insync_replicas, len(world.assigned_replicas))
    for b in world.brokers.values():
        old = before.machine.world.brokers[b.replica]
        if _leads_on(old, b) and b.high_watermark > old.high_watermark and len(b.isr) < least:
            return False
    return True


def leader_never_truncates(before: Node, after: Node) -> bool:
    for b in after.machine.world.brokers.values():
        old = before.machine.world.brokers[b.replica]
        if _leads_on(old, b) and b.log.log_end_offset < old.log.log_end_offset:
            return False
    return True


def truncation_spares_committed(before: Node, after: Node) -> bool:
    """A follower that runs on, or restarts with all it had, cuts nothing that was committed."""
    for b in after.machine.world.brokers.values():
        old = before.machine.world.brokers[b.replica]
        if not (b.running and old.running):
            continue
        now, begins = after.logs[b.replica], b.log.log_start_offset
        for offset, record in before.logs[b.replica].items():
            gone = now.get(offset) != record and offset >= begins
            if gone and (offset, *record) in before.committed:
                return False
    return True


def replicas_converge(node: Node) -> bool:
    """Once every broker runs, hears and has fetched all, no two logs differ anywhere."""
    if not _differ(node.logs):
        return True
    machine = copied(node.machine)
    leader = machine.world.controller.leader
    if leader is None or not machine.world.brokers[leader].running:
        return True
    for b in machine.world.brokers.values():
        if not b.running:
            machine.start(b.replica)
    machine.deliver(machine.world.assigned_replicas)
    for _ in range(4):
        for b in machine.world.brokers.values():
            if b.role == "follower" and b.running:
                machine.fetch(b.replica)
    return not _differ(_unless_offline(machine.world))


def _unless_offline(world: World) -> Logs:
    return logs_of(world) if world.controller.leader is not None else {}


def _differ(logs: Logs) -> bool:
    return any(
        a[o] != b[o]
        for a, b in itertools.combinations(logs.values(), 2)
        for o in a.keys() & b.keys()
    )


@dataclass(frozen=True)
class Promise:
    """One row of 4.1. said: a letter per generation: y must hold, n can be broken, - not said.

    state or step: the question, to a state or to the step between two.
    """

    row: str
    name: str
    said: str
    state: Callable[[Node], bool] | None = None
    step: Callable[[Node, Node], bool] | None = None


def _of_state(row: str, said: str, question: Callable[[Node], bool]) -> Promise:
    return Promise(row, question.__name__, said.replace(" ", ""), state=question)


def _of_step(row: str, said: str, question: Callable[[Node, Node], bool]) -> Promise:
    return Promise(row, question.__name__, said.replace(" ", ""), step=question)


PROMISES = (
    _of_state("I1", "n n n n y y y n n y y y", committed_prefixes_agree),
    _of_state("I2", "- n y y y y y y y y y y", epoch_and_offset_name_a_record),
    _of_state("-", "- - - - - - - - - - - -", replicas_converge),
    _of_step("I3", "y y y y y y y y y y y y", leader_high_watermark_monotonic),
    _of_state("I6", "n n n n n y y y y y y y", high_watermark_within_log),
    _of_state("I7", "n n n n n y y y y y y y", log_start_within_high_watermark),
    _of_state("I8", "y y y y y y y y y y y y", isr_reaches_high_watermark),
    _of_state("I9", "- n y y y y y y y y y y", epochs_rise_along_a_log),
    _of_state("I12", "- n n y y y y y y y y y", epoch_cache_rises),
    _of_state("I13", "n n n y y y y y y y y y", committed_records_survive),
    _of_state("I14", "n n n y y y y y y y y y", acknowledged_records_survive),
    _of_state("I15", "y y y y y y y y y y y y", leader_in_isr),
    _of_state("I16", "- - - - - - - - - - - y", eligible_replicas_are_outside),
    _of_state("I17", "n n n n y y y n n y y y", reads_stay_true),
    _of_step("I18", "- - - - - - - - - - y y", high_watermark_waits_for_min_insync),
    _of_step("I19", "y y y y y y y y y y y y", leader_never_truncates),
    _of_step("I19", "n n n y y y y y y y y y", truncation_spares_committed),
)


@dataclass(frozen=True)
class Difference:
    """Where exploring clean worlds and 4.1 disagree, and why."""

    names: tuple[str, ...]
    versions: tuple[str, ...]
    why: str
    sort: str = "clean"


# A broker that leads on in a higher epoch keeps what it knew of its followers (docs/protocol.md 2).
_STALE_FOLLOWERS = (
    "a leader that never heard of another's epoch, and leads again, keeps the log ends it knew "
    "(section 1, same broker leads on); a follower may have been cut in between, and counts for "
    "records it no longer has: docs/kafka_leader_missed_epoch.md"
)
_DIVERGING_FETCH = (
    "KAFKA-13141 (S15): 4.1 names it for I1 and I17 only, and it breaks these as well"
)
_WITHIN_A_STEP = (
    "S16: the high watermark lies over foreign records only while one response is handled, "
    "which is one command here; s16_high_watermark_before_truncation.txt shows it"
)
_LATER = ("2.0.1", "2.1.0", "2.4.1", "2.6.1", "2.8.1", "3.5.1", "3.7.0", "4.1.0")
EXPLAINED = (
    Difference(
        ("isr_reaches_high_watermark",),
        ("0.10.2.2",),
        "a member of the ISR that hears of another leader cuts to its own high watermark, below "
        "the leader's, and fetches from there; it stays a member",
    ),
    Difference(
        ("isr_reaches_high_watermark",),
        ("1.1.1", "2.0.0"),
        "S8 (KAFKA-7415): a leader without records in its epoch answers `undefined`, and a member "
        "of the ISR cuts to its own high watermark, below the leader's",
    ),
    Difference(
        ("isr_reaches_high_watermark", "committed_records_survive", "acknowledged_records_survive",
         "truncation_spares_committed"),
        _LATER,
        _STALE_FOLLOWERS,
    ),
    Difference(
        ("isr_reaches_high_watermark", "committed_records_survive", "acknowledged_records_survive",
         "truncation_spares_committed"),
        ("2.8.0",),
        _DIVERGING_FETCH,
    ),
    Difference(
        ("epoch_and_offset_name_a_record",),
        ("2.0.0",),
        "until 2.0.1 a follower that has not the common epoch, only later ones, finds `undefined` "
        "in its own cache and cuts nothing: column (c) speaks of 2.0.1",
    ),
    Difference(
        ("epoch_and_offset_name_a_record",),
        ("2.0.1",),
        "until 2.1 a fetch names no epoch (KIP-320): a follower that has heard of no election "
        "appends the new leader's records over a fork, its cache then ends with the leader's own "
        "epoch, and it never cuts: kip_320_fetch_over_a_fork.txt",
    ),
    Difference(
        ("high_watermark_within_log",),
        ("0.10.2.2",),
        "a truncation goes to the high watermark itself; only an out-of-range reset goes below, "
        "which takes an unclean election: broken in the worlds beyond",
    ),
    Difference(
        ("epochs_rise_along_a_log",),
        ("1.1.1",),
        "takes four unclean elections and six records: s03b_repeated_unclean_elections.txt",
    ),
    Difference(
        ("reads_stay_true",),
        ("2.0.1",),
        "S4: what a zombie keeps is read only once it leads: more elections than these worlds have",
    ),
    Difference(("committed_prefixes_agree", "reads_stay_true"), ("2.8.1",), _WITHIN_A_STEP),
)  # fmt: skip


def differences(broken: dict[str, set[str]]) -> list[tuple[Promise, str, bool]]:
    """(promise, release, whether it was broken) where the outcome by release is not what 4.1 says.

    broken: release -> names of the promises that a clean world broke.
    """
    return [
        (promise, version, promise.name in broken[version])
        for promise in PROMISES
        for version, letter in zip(GENERATIONS, promise.said, strict=True)
        if version in broken and letter == ("y" if promise.name in broken[version] else "n")
    ]


def why(promise: Promise, version: str, sort: str) -> str | None:
    """The explanation of a difference in a sort of worlds, None where there is none."""
    found = (
        d.why
        for d in EXPLAINED
        if promise.name in d.names and version in d.versions and d.sort == sort
    )
    return next(found, None)
