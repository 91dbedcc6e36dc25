"""Small worlds to set an actor to work in."""

from replication.machine.machine_state import World
from replication.machine.partition_machine import Given, PartitionMachine
from replication.protocol.ground.model import Span
from replication.protocol.ground.versions import behaviour


def world_of(
    release: str = "3.9.1",
    *,
    ends: tuple[int, ...] = (2, 2, 2),
    isr: tuple[int, ...] = (1, 2, 3),
    high_watermark: int = 2,
    kraft: bool = True,
    min_insync_replicas: int = 1,
    wait: bool = False,
) -> World:
    """Replicas 1, 2 ... with logs of epoch 0 up to these ends; 1 leads. wait: ISR changes do."""
    rows = [
        Given(n, (Span(0, end, 0, 0),) if end else (), min(high_watermark, end), 0, 0, n == 1)
        for n, end in enumerate(ends, 1)
    ]
    machine = PartitionMachine(
        behaviour(release, controller="kraft" if kraft else None),
        rows,
        isr,
        min_insync_replicas=min_insync_replicas,
        unclean_leader_election=False,
        contents=("a",),
    )
    machine.world.isr_changes_wait = wait
    return machine.world
