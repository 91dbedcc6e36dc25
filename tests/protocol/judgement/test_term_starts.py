"""Where a term began, where no line of its leader tells."""

import pytest

from replication.protocol.ground import events as ev
from replication.protocol.ground.model import EpochEntry, Span
from replication.protocol.judgement.same_record import may_have_written
from replication.protocol.judgement.term_starts import term_start, term_starts
from tests.protocol.judgement.told import copy, elected, given, told


def test_what_a_leader_wrote_once_it_led_again_tells_nothing_of_its_first_start() -> None:
    """ZooKeeper leaves a lone leader its epoch: it comes back empty, and writes from 0 on."""

    def began(*again: ev.Fact) -> int | None:
        facts = [
            *given(1, 2, 3),
            elected(1, 0, "initial"),
            ev.BecameLeader(1, 0, 0, 0),
            elected(2, 1),
            ev.BecameLeader(2, 1),
            *again,
            copy(2, (0, 5, 1, 0)),
        ]
        return term_start(told(facts), told(facts).history.terms[1])

    stop = ev.ReplicaStopped(2, "process_crash")
    assert began() == 0
    assert began(stop, ev.ReplicaStarted(2, 0, 0, None, False), ev.BecameLeader(2, 1)) is None
    assert began(stop, ev.BecameLeader(2, 1)) is None
    assert began(stop, ev.BecameLeader(2, 1, 3)) == 0


def test_where_lines_are_missing_a_leader_may_have_fetched_since_it_loaded_its_log() -> None:
    """Of its files of lines one reaches back to its start, and another not."""

    def began(*covered: int) -> int | None:
        loaded = ev.ReplicaStarted(1, 0, 4, None, True)
        return told([*given(*covered), loaded, ev.BecameLeader(1, 2)]).history.terms[0].start_offset

    assert began(1) == 4
    assert began() is None


@pytest.mark.parametrize(
    ("policy", "filed", "cut", "earliest"),
    [
        ("delete", False, False, 12),
        ("compact", False, False, 5),
        (None, False, False, 5),
        ("compact", True, False, 12),
        ("compact", True, True, 5),
    ],
)
def test_of_a_compacted_epoch_the_first_records_may_be_gone(
    policy: str | None, filed: bool, cut: bool, earliest: int
) -> None:
    """What is left of epoch 2 begins at 12, of epoch 1 it ends at 5. Its leader's own epoch file
    would tell, unless it has fetched the epoch anew."""
    held = (Span(0, 5, 1, 0), Span(12, 20, 2, 0))
    file = (EpochEntry(1, 0), EpochEntry(2, 12))
    facts = [
        *given(),
        ev.PartitionDescribed((1, 2, 3), cleanup_policy=policy),
        elected(1, 1),
        elected(2, 2),
        *([ev.Truncated(2, 4, 20, "leader_epoch")] if cut else []),
        ev.ReplicaLogObserved(2, 0, 20, held, None, None, file if filed else None, True),
    ]
    state = told(facts)
    state.settings.cleanup_policy = policy
    starts = term_starts(state)
    assert (starts.starts[1], starts.earliest[1]) == (12, earliest)
    assert may_have_written(state, starts, 6) == ([1] if earliest == 12 else [1, 2])
