"""What happens to one broker: it fetches, stops, starts, is cut off, upgraded, drops who lags.

How it acts on its replica is leader's, follower's and replica's. Commands raise Impossible, with a
reason for people, when they cannot happen.
"""

from collections.abc import Iterable

from replication.machine.controller import after_unclean_registration, fence, unfence
from replication.machine.follower import ask, fetch_once, reach_leader, take, truncate_in_rounds
from replication.machine.leader import propose
from replication.machine.machine_state import (
    Impossible,
    Response,
    World,
)
from replication.machine.registered import leading_broker
from replication.machine.registration import notify, settle
from replication.machine.replica import begin_process, end_process
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import clipped
from replication.protocol.ground.versions import Behaviour
from replication.protocol.rules.broker_registration import broker_registration
from replication.protocol.rules.isr_shrink import Progress, isr_shrink
from replication.protocol.rules.last_caught_up import FetchMemory


def fetch(
    world: World,
    replica: int,
    *,
    response: str = "ok",
    max_records: int | None = None,
    at_once: bool = False,
) -> None:
    """A follower fetches once. response: ok, lost, or delayed until receive()."""
    follower = world.broker(replica)
    answer = fetch_once(world, follower, max_records=max_records, at_once=at_once)
    settle(world)
    if answer is None or response == "lost":
        return
    if response == "delayed":
        follower.in_flight = answer
    else:
        take(world, follower, answer)


def send_fetch(world: World, replica: int) -> None:
    """A follower's fetch is on its way until arrive()."""
    request = ask(world, world.broker(replica))
    if request is not None:
        world.requests[replica] = request


def arrive(world: World, replica: int) -> None:
    """A fetch that was on its way reaches its leader."""
    follower = world.broker(replica)
    answer = reach_leader(world, follower)
    settle(world)
    if answer is not None:
        take(world, follower, answer)


def receive(world: World, replica: int) -> None:
    """The delayed response of a follower's fetch arrives."""
    follower = world.broker(replica)
    answer: Response | None = follower.in_flight
    if answer is None:
        raise Impossible(f"no response to {world.name(replica)} is delayed")
    follower.in_flight = None
    take(world, follower, answer)


def truncate(world: World, replica: int) -> None:
    """A follower tries again to learn where to cut its log."""
    truncate_in_rounds(world, world.broker(replica))


def stop(
    world: World,
    replica: int,
    reason: str = "clean",
    *,
    surviving: int | None = None,
    high_watermark_checkpoint: int | None = None,
    epochs_lost: bool = False,
    directory_deleted: bool = False,
) -> None:
    """A broker ends: clean, process_crash, power_loss (to surviving) or disk_loss."""
    broker = world.broker(replica)
    end_process(
        world,
        broker,
        reason,
        surviving=surviving,
        high_watermark_checkpoint=high_watermark_checkpoint,
        epochs_lost=epochs_lost,
        directory_deleted=directory_deleted,
    )


def start(world: World, replica: int, *, deliver: bool = True) -> None:
    """A broker starts, registers, and learns the registration (unless deliver is False)."""
    broker = world.broker(replica)
    if broker.running:
        raise Impossible(f"{world.name(replica)} runs already")
    # In KRaft a new life is not registered before the session of the last one has run out.
    noticed = world.behaviour.controller == "kraft" or world.behaviour.has("restart_is_noticed")
    if noticed and replica in world.controller.active:
        fence(world, replica)
    last = broker.broker_epoch
    begin_process(world, broker)
    unclean = broker_registration(last, last if broker.clean else None)
    if world.behaviour.eligible_leader_replicas and unclean:
        after_unclean_registration(world, replica)
    if replica not in world.controller.active:
        unfence(world, replica)
    if deliver:
        notify(world, [replica])


def write_high_watermark_checkpoint(world: World, replica: int) -> None:
    """A broker writes its high watermark to the checkpoint file, as it does every 5 s."""
    broker = world.broker(replica)
    broker.checkpointed_high_watermark = broker.high_watermark


def isolate(world: World, replica: int, isolated: bool = True) -> None:
    """Cuts a broker off from the others and the controller, or joins it again."""
    world.broker(replica).isolated = isolated


def upgrade(world: World, replica: int, behaviour: Behaviour) -> None:
    """A stopped broker gets another release."""
    broker = world.broker(replica)
    if broker.running:
        raise Impossible(f"{world.name(replica)} must be stopped to be upgraded")
    broker.behaviour = behaviour


def compact(world: World, replica: int, offsets: Iterable[int]) -> None:
    """A broker's log cleaner removes records whose keys have later ones."""
    broker = world.broker(replica)
    if "compact" not in world.cleanup_policy:
        raise Impossible("the topic is not compacted: given says no cleanup=compact")
    log = broker.log
    for offset in offsets:
        if not log.log_start_offset <= offset < broker.high_watermark:
            raise Impossible(f"the cleaner does not reach offset {offset}")
        left = [
            *clipped(log.spans, 0, offset),
            *clipped(log.spans, offset + 1, log.log_end_offset),
        ]
        log.replace(left, log.log_start_offset, log.log_end_offset)
    world.emit(
        ev.ReplicaLogObserved(
            replica, log.log_start_offset, log.log_end_offset, tuple(log.spans),
            None, None, broker.epoch_entries, True,
        )
    )  # fmt: skip


def propose_isr(world: World, remove: Iterable[int] = (), add: Iterable[int] = ()) -> None:
    """The leader proposes an ISR; members to remove have lagged, as far as it can see."""
    leader = leading_broker(world)
    removed = frozenset(remove)
    for replica in removed:
        if replica not in leader.followers:
            raise Impossible(f"{world.name(replica)} is no follower of the leader")
        leader.followers[replica].memory = FetchMemory(0)
    propose(world, leader, (leader.isr - removed) | frozenset(add))
    settle(world)


def check_lag(world: World) -> None:
    """The leader drops members of its ISR that lag, by the rule (every half lag limit)."""
    leader = leading_broker(world)
    progress = {
        r: Progress(f.log_end_offset, f.memory.last_caught_up_ms)
        for r, f in leader.followers.items()
        if r in leader.isr
    }
    lagging = isr_shrink(
        progress,
        leader.log.log_end_offset,
        world.now_ms,
        leader.behaviour.replica_lag_time_max_ms,
        leader.behaviour.replica_lag_max_messages,
        leader.behaviour,
    )
    if lagging:
        propose(world, leader, leader.isr - lagging)
    settle(world)
