"""An assignment and an ISR that one line shows together are one record only under KRaft."""

import pytest

from replication.protocol.ground import events as ev
from tests.protocol.judgement.told import verdict

NAME = "isr_within_assignment"


def recorded(partition_epoch: int, isr: tuple[int, ...], assigned: tuple[int, ...]) -> ev.Fact:
    kind = "initial" if partition_epoch == 0 else "same_leader"
    return ev.LeadershipRecorded(3, partition_epoch, isr, partition_epoch, kind, assigned)


def described(controller: str) -> ev.Fact:
    return ev.PartitionDescribed(
        (3, 2),
        1,
        False,
        "delete",
        "1.1.1" if controller == "zookeeper" else "3.9.1",
        None,
        controller,
    )


# A reassignment of [3, 2] to [1, 3] ends: the request names the new replicas, the ISR is as it was.
ENDS = (recorded(0, (3, 2), (1, 3, 2)), recorded(1, (3, 2, 1), (1, 3)))


@pytest.mark.parametrize(
    ("controller", "facts", "expected"),
    [
        ("zookeeper", ENDS, "HOLDS"),
        ("zookeeper", (recorded(7, (3, 2, 1), (1, 3)),), "HOLDS"),
        ("kraft", ENDS, "VIOLATED"),
        ("zookeeper", (recorded(0, (3,), (3, 2)), recorded(1, (3, 4), (3, 2))), "VIOLATED"),
    ],
    ids=["leaves", "the state before is missing", "one record", "never assigned"],
)
def test_who_leaves_is_taken_out_of_the_isr_after_the_assignment_changed(
    controller: str, facts: tuple[ev.Fact, ...], expected: str
) -> None:
    assert verdict([described(controller), *facts], NAME) == expected
