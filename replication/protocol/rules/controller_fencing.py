"""Whether a broker obeys a notification of leadership."""


def controller_fencing(
    controller_epoch: int,
    known_controller_epoch: int,
    leader_epoch: int,
    known_leader_epoch: int | None,
    partition_epoch: int,
    known_partition_epoch: int,
) -> str:
    """Decides: apply, stale_controller, stale_leader_epoch, stale_partition_epoch or repeated.

    Shown by late_notifications.txt and zombie_leader.txt.

    Versions: the controller epoch fences a deposed ZooKeeper controller's requests; in KRaft the
    metadata log does, so both arguments are equal. From 3.3 (KAFKA-13790) the partition epoch is
    held against the known one; with ZooKeeper, where every change that brokers are told raises the
    leader epoch, an equal one is a repetition. known_leader_epoch is None after a start, and
    nothing else is known then.
    Followed: nothing. Gave way to: nothing. A broker that gets no notification stays what it was:
    a zombie leader goes on writing in its old epoch.
    Leaves unchanged: everything, unless the answer is apply.
    Unknown: nothing. (2.8 to 3.2, where KRaft was a preview, take a repetition as a new start of
    the leader: its epoch's start offset and its followers' caught-up times are set anew.)
    """
    if controller_epoch < known_controller_epoch:
        return "stale_controller"
    if known_leader_epoch is None or leader_epoch > known_leader_epoch:
        return "apply"
    if leader_epoch < known_leader_epoch:
        return "stale_leader_epoch"
    if partition_epoch < known_partition_epoch:
        return "stale_partition_epoch"
    return "repeated" if partition_epoch == known_partition_epoch else "apply"
