"""What the names of a broker's threads tell, where a layout prints them."""

import re

# Those that bear their broker's own id: ControllerChannelManager, SocketServer, DelayedOperation,
# NodeToControllerChannelManager, TransactionMarkerChannelManager, BrokerLifecycleManager,
# SharedServer, QuorumController.
_OWN = re.compile(
    r"^(?:Controller-(\d{1,9})-to-broker-|(?:data-plane-|control-plane-)?kafka-network-thread-"
    r"(\d{1,9})-|ExpirationReaper-(\d{1,9})-|broker-(\d{1,9})-(?:to-controller|txn-marker|lifecycle)"
    r"|kafka-(\d{1,9})-(?:raft|metadata|snapshot)|quorum-controller-(\d{1,9})-)"
)
_FETCHER = re.compile(r"^ReplicaFetcherThread-\d{1,9}-(\d{1,9})$")


def broker_of_thread(thread: str | None) -> int | None:
    """The broker that the thread is of, where its name says so."""
    found = _OWN.search(thread) if thread else None
    return int(next(filter(None, found.groups()))) if found else None


def leader_of_thread(thread: str | None) -> int | None:
    """The broker that a fetcher's thread fetches from: any but its own."""
    found = _FETCHER.search(thread) if thread else None
    return int(found[1]) if found else None
