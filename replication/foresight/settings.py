"""The settings of a topic that decide what it can lose."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from replication.protocol.ground.events import PartitionDescribed
from replication.protocol.ground.versions import Behaviour, behaviour


@dataclass(frozen=True, slots=True)
class Settings:
    """What one partition lives by. kafka_version: the brokers' release; controller: zookeeper or
    kraft. unclean: unclean.leader.election.enable. eligible: whether the controller keeps eligible
    leader replicas (KIP-966). flushed: whether a record is on the disk before it is answered
    (flush.messages=1). racks: a number for each replica, in the order of the assignment, that those
    of one rack share; empty where no racks are known.
    """

    kafka_version: str
    replicas: int
    min_insync_replicas: int
    unclean: bool
    controller: str
    inter_broker_version: str | None = None
    eligible: bool = False
    flushed: bool = False
    racks: tuple[int, ...] = ()

    @property
    def behaviour(self) -> Behaviour:
        """The rules of this release. ValueError, in words, for a combination that is none."""
        return behaviour(
            self.kafka_version,
            self.inter_broker_version,
            controller=self.controller,
            eligible_leader_replicas=self.eligible,
        )

    def with_eligible(self, eligible: bool) -> "Settings":
        """The same with or without eligible leader replicas."""
        return replace(self, eligible=eligible)

    def without_racks(self) -> "Settings":
        """The same for a failure that no rack matters to."""
        return replace(self, racks=())


def last_told(facts: Iterable[PartitionDescribed]) -> PartitionDescribed:
    """A later description adds what an earlier one leaves out, and where both name one setting the
    later one counts."""
    told = PartitionDescribed()
    for fact in facts:
        told = replace(told, **{n: v for n, v in asdict(fact).items() if v is not None})
    return told
