"""Whether a broker's new registration counts as an unclean shutdown (KIP-966)."""


def broker_registration(
    previous_broker_epoch: int | None, clean_shutdown_broker_epoch: int | None
) -> bool:
    """Decides whether the controller treats a broker as back from an unclean shutdown.

    previous_broker_epoch: the controller's for its last life, None for a first registration, after
    which nothing can follow: no ISR and no ELR names such a broker. clean_shutdown_broker_epoch:
    what the broker read from its clean-shutdown file, None if absent.

    Versions: with eligible leader replicas (4.0-IV1). An unclean broker leaves all ISRs and ELRs,
    and partitions it led are elected anew.
    Followed: trusting the log a broker comes back with (s10_last_replica_standing.txt). Gave way
    to: nothing.
    Leaves unchanged: the broker's logs.
    Unknown: nothing.
    """
    return clean_shutdown_broker_epoch != previous_broker_epoch
