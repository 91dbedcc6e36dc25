"""The kinds of failure that a cluster is asked about: what each does to brokers, how often."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """One kind of failure. sentence: what happens, for people. bound: how much of it is looked at.

    crashes: processes that end with their disks intact (clean: some by a clean stop). stops:
    brokers that are stopped cleanly, each once, and started when all are.
    power: brokers that lose power, one after the other; together: which brokers lose power at the
    same moment ("rack" or "all"). disks: brokers that lose their disk. freezes: brokers that are
    cut off from the others and the controller, and go on. forced: unclean elections that somebody
    asks for. deleted: brokers stopped cleanly whose directory somebody deletes meanwhile.
    """

    name: str
    sentence: str
    bound: str
    crashes: int = 0
    clean: bool = False
    stops: int = 0
    power: int = 0
    together: str = ""
    disks: int = 0
    freezes: int = 0
    forced: int = 0
    deleted: int = 0

    def lags(self, replicas: int) -> int:
        """How many replicas may lag: who ends leaves the ISR, too."""
        return max(0, replicas - max(1, self.crashes, min(self.stops, 2)))


FAILURES = (
    Failure(
        "one_broker",
        "one broker crashes or is stopped; its disk keeps all",
        "1 crash or stop",
        crashes=1,
        clean=True,
    ),
    Failure(
        "two_brokers",
        "two brokers crash, one after the other or at once; their disks keep all",
        "2 crashes",
        crashes=2,
    ),
    Failure(
        "one_rack",
        "all brokers of one rack lose power at the same moment",
        "1 rack without power",
        together="rack",
    ),
    Failure(
        "power_of_one",
        "one broker loses power; what was not flushed is gone",
        "1 power loss",
        power=1,
    ),
    Failure(
        "power_of_all",
        "all brokers lose power at the same moment; what was not flushed is gone",
        "1 power loss of all brokers",
        together="all",
    ),
    Failure("one_disk", "one broker's disk is lost; it comes back empty", "1 disk", disks=1),
    Failure(
        "frozen_broker",
        "one broker is cut off from the others, goes on believing what it believed, and is back",
        "1 broker cut off",
        freezes=1,
    ),
    Failure(
        "wrong_start_order",
        "all brokers are stopped cleanly and started again in any order",
        "1 clean stop of each broker",
        stops=9,
    ),
    Failure(
        "unclean_forced",
        "one broker crashes, and somebody forces an unclean election",
        "1 crash, 1 forced election",
        crashes=1,
        forced=1,
    ),
    Failure(
        "directory_deleted",
        "one broker is stopped cleanly, and somebody deletes the partition's directory",
        "1 directory deleted",
        deleted=1,
    ),
)
BY_NAME = {failure.name: failure for failure in FAILURES}
