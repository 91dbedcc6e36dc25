"""Where a term began, where no line of its leader tells."""

from replication.protocol.ground import events as ev
from replication.protocol.judgement.term_starts import term_start
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
