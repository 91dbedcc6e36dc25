"""When the controller moves leaderships back to their preferred replicas."""

from collections.abc import Mapping, Sequence


def preferred_leader_imbalance(
    leaders: Mapping[str, int | None],
    assignments: Mapping[str, Sequence[int]],
    broker: int,
    leader_imbalance_per_broker_percentage: int = 10,
) -> tuple[str, ...]:
    """Decides which partitions get a preferred election for a broker, in the order given.

    leaders and assignments are keyed by partition; a partition's preferred leader is the head of
    its assignment, which is never empty. The answer is empty while at most the allowed percentage
    of the broker's preferred partitions is led by others.

    Shown by leader_imbalance.txt.

    Versions: auto.leader.rebalance.enable, checked every leader.imbalance.check.interval.seconds
    (300); the percentage is per broker, default 10.
    Followed: nothing. Gave way to: nothing.
    Leaves unchanged: partitions whose preferred replica is not live or not in the ISR: the
    election rules refuse them.
    Unknown: nothing.
    """
    preferred = [p for p, replicas in assignments.items() if replicas[0] == broker]
    elsewhere = tuple(p for p in preferred if leaders.get(p) != broker)
    if 100 * len(elsewhere) > leader_imbalance_per_broker_percentage * len(preferred):
        return elsewhere
    return ()
